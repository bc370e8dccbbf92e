package policy

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"google.golang.org/protobuf/types/known/structpb"
)

// provider reads one provider block; what the broker does not know itself is the body, which only the provider can judge.
func (l *loader) provider(s *providerSpec) {
	p := &Provider{
		ID: s.ID, Plugin: s.Plugin, Path: s.Path, Env: s.Env, MTLS: s.MTLS == nil || *s.MTLS,
		Disabled: s.Enabled != nil && !*s.Enabled, Where: place(s.At), places: map[string]string{},
	}
	if p.Plugin == "" {
		p.Plugin = p.ID
	}
	switch {
	case s.ID == ownID:
		l.wrong(s.LabelAt, "Reserved name", "%q is the broker's own name; call the provider something else.", s.ID)
	case !providerID.MatchString(s.ID):
		l.wrong(s.LabelAt, "Not a provider name", "%q cannot be the name of a provider: letters, digits, - _ and . only, at most 64.", s.ID)
	case s.Plugin != "" && !providerID.MatchString(s.Plugin):
		l.wrong(s.PlugAt, "Not a plugin name", "%q cannot be the NAME of a binary drover-provider-NAME.", s.Plugin)
	}
	if first := l.config.Provider(s.ID); first != nil {
		l.wrong(s.LabelAt, "Duplicate provider", "There is a provider %q at %s already.", s.ID, first.Where)
	}
	l.absolute(s.Path, s.PathAt, "path")
	for i, name := range s.Env {
		if !envName.MatchString(name) {
			l.wrong(s.EnvAt, "Not a variable", "%q cannot be the name of an environment variable; env lists names, not values.", name)
		} else if slices.Contains(s.Env[:i], name) {
			l.wrong(s.EnvAt, "Duplicate variable", "%q stands twice in env.", name)
		}
	}
	if body, ok := s.Body.(*hclsyntax.Body); ok {
		p.Body = l.body(p, body, "")
	}
	p.Browser = p.Body.GetFields()["browser"].GetStringValue()
	l.config.Providers = append(l.config.Providers, p)
}

// reserved are the arguments of a provider block that the broker reads itself.
var reserved = []string{"plugin", "path", "env", "mtls", "enabled"}

// body gives a block's content as an object: an argument is a member, a block a member that holds an object, or a list of
// them when it stands several times; a label is one more level.
func (l *loader) body(p *Provider, b *hclsyntax.Body, above string) *structpb.Struct {
	out := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	names := make([]string, 0, len(b.Attributes))
	for name := range b.Attributes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if above == "" && slices.Contains(reserved, name) {
			continue
		}
		attr := b.Attributes[name]
		p.places[join(above, name)] = place(attr.NameRange)
		v, diags := attr.Expr.Value(nil)
		l.diags = append(l.diags, diags...)
		if diags.HasErrors() {
			continue
		}
		val, err := valueOf(v)
		if err != nil {
			l.wrong(attr.Expr.Range(), "Not a value", "%s cannot be given to a provider: %v.", join(above, name), err)
			continue
		}
		out.Fields[name] = val
	}
	for _, block := range b.Blocks {
		at := join(above, block.Type)
		if _, taken := b.Attributes[block.Type]; taken {
			l.wrong(block.DefRange(), "Argument and block of one name", "%s is an argument already.", at)
			continue
		}
		p.places[at] = place(block.DefRange())
		below := structpb.NewStructValue(l.body(p, block.Body, at))
		for _, label := range slices.Backward(block.Labels) {
			below = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{label: below}})
		}
		switch old := out.Fields[block.Type]; {
		case old == nil:
			out.Fields[block.Type] = below
		case old.GetListValue() != nil:
			old.GetListValue().Values = append(old.GetListValue().Values, below)
		default:
			out.Fields[block.Type] = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{old, below}})
		}
	}
	return out
}

func valueOf(v cty.Value) (*structpb.Value, error) {
	if !v.IsWhollyKnown() {
		return nil, fmt.Errorf("it is not known")
	}
	data, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return nil, err
	}
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		return nil, err
	}
	return structpb.NewValue(plain)
}

func place(r hcl.Range) string { return r.Filename + ":" + strconv.Itoa(r.Start.Line) }

func join(above, name string) string {
	if above == "" {
		return name
	}
	return above + "." + name
}

func parent(path string) string {
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)]
}

func hostPort(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}
