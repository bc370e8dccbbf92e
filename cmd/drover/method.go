package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/wire"
)

// methodCommand is the command of one method: which words stand where, and which flag sets which field. It is derived
// from the method's declaration alone.
type methodCommand struct {
	app    *app
	method *catalog.Method
	cmd    *cobra.Command
	places []place // the positional arguments
	fields *fieldFlags
	// What the few commands need that deal with files.
	file   string
	staged []string // the files of an upload, as the caller named them
}

// place is one positional argument.
type place struct {
	word     string
	field    protoreflect.FieldDescriptor // nil for FILE, which is no field
	into     string                       // the name in the request
	optional bool
	rest     bool // it takes all the arguments that are left
}

// groupOf says under which heading a noun's commands stand in the help.
var groupOf = map[string]string{
	"page": groupPages, "tab": groupPages, "dialog": groupPages, "upload": groupPages,
	"session": groupSessions, "provider": groupProviders,
}

// addMethods adds a command for every method that has words on the command line.
func (a *app) addMethods(root *cobra.Command) {
	for _, m := range catalog.All() {
		if m.Spec.GetCli() == "" {
			continue
		}
		path, args := splitWords(m.Spec.GetCli())
		parent := root
		for _, w := range path[:len(path)-1] {
			parent = a.subgroup(parent, w, m)
		}
		parent.AddCommand(a.methodCommand(m, path[len(path)-1], args, parent == root))
	}
}

// splitWords parts the words of a command from those that stand for arguments: "tab new [URL]".
func splitWords(cli string) (path, args []string) {
	for _, w := range strings.Fields(cli) {
		if bare := strings.Trim(w, "[]"); strings.ToUpper(bare) == bare {
			args = append(args, w)
		} else {
			path = append(path, w)
		}
	}
	return path, args
}

func (a *app) subgroup(parent *cobra.Command, word string, m *catalog.Method) *cobra.Command {
	for _, c := range parent.Commands() {
		if c.Name() == word {
			return c
		}
	}
	cmd := &cobra.Command{Use: word, Short: serviceDoc(m), GroupID: groupFor(m), RunE: a.group, Args: cobra.ArbitraryArgs}
	parent.AddCommand(cmd)
	return cmd
}

func groupFor(m *catalog.Method) string {
	if g, ok := groupOf[m.Noun()]; ok {
		return g
	}
	return groupData
}

// serviceDoc gives the comment of the service that a method belongs to, without the service's name.
func serviceDoc(m *catalog.Method) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(m.Path, "/"), "/")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(catalog.Comment(d), " ")
	return short(strings.ToUpper(rest[:1]) + rest[1:])
}

// short gives the first sentence of a comment without its full stop.
func short(doc string) string {
	if i := strings.Index(doc, ". "); i >= 0 {
		doc = doc[:i]
	}
	return strings.TrimSuffix(doc, ".")
}

func (a *app) methodCommand(m *catalog.Method, word string, args []string, top bool) *cobra.Command {
	mc := &methodCommand{app: a, method: m}
	cmd := &cobra.Command{
		Use: strings.Join(append([]string{word}, args...), " "), Short: short(m.Doc), Long: m.Doc,
		RunE: mc.run,
	}
	if top {
		cmd.GroupID = groupFor(m)
	}
	mc.cmd = cmd
	mc.fields = newFieldFlags(cmd)
	mc.readPlaces(args)
	taken := map[string]bool{}
	for _, p := range mc.places {
		taken[p.into] = true
	}
	mc.fields.add(m.Request.Descriptor(), taken)
	mc.addFileFlags()
	cmd.Args = mc.checkArgs
	cmd.ValidArgsFunction = mc.completeArg
	cmd.Example = mc.examples()
	return cmd
}

func (mc *methodCommand) readPlaces(words []string) {
	for _, w := range words {
		p := place{word: strings.Trim(w, "[]"), optional: strings.HasPrefix(w, "[")}
		p.into = strings.ToLower(p.word)
		p.field = lookUp(mc.method.Request.Descriptor(), p.into)
		if p.field != nil {
			p.rest = p.field.IsList()
			// One of several fields names the thing: the others may be given as flags instead.
			target := p.field.Message() != nil && p.field.Message().FullName() == targetName
			if wire.SpecOf(p.field).GetOneOf() != "" || target {
				p.optional = true
			}
		}
		mc.places = append(mc.places, p)
	}
}

// lookUp finds a field by its name on the wire, the fields of an inlined message included.
func lookUp(md protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if fd := md.Fields().ByName(protoreflect.Name(name)); fd != nil {
		return fd
	}
	for i := range md.Fields().Len() {
		if fd := md.Fields().Get(i); wire.SpecOf(fd).GetInline() {
			if in := fd.Message().Fields().ByName(protoreflect.Name(name)); in != nil {
				return in
			}
		}
	}
	return nil
}

func (mc *methodCommand) limits() (least, most int) {
	for _, p := range mc.places {
		if !p.optional {
			least++
		}
		if p.rest {
			most = -1
		}
		if most >= 0 {
			most++
		}
	}
	return least, most
}

func (mc *methodCommand) checkArgs(cmd *cobra.Command, args []string) error {
	least, most := mc.limits()
	var words []string
	for _, p := range mc.places {
		if !p.optional {
			words = append(words, p.word)
		}
	}
	return exact(least, most, strings.Join(words[min(len(args), len(words)):], " and "))(cmd, args)
}

// params gives the method's params from arguments and flags, as JSON-able values.
func (mc *methodCommand) params(args []string) (map[string]any, error) {
	out := map[string]any{}
	least, _ := mc.limits()
	spare := len(args) - least // arguments that are left for optional places
	for _, p := range mc.places {
		switch {
		case p.optional && (spare <= 0 || mc.fields.chosen(p.field)):
			continue
		case p.rest:
			v, err := parseList(p.field, args)
			if err != nil {
				return nil, err
			}
			out[p.into], args = v, nil
			continue
		case p.optional:
			spare--
		}
		word := args[0]
		args = args[1:]
		if p.field == nil {
			mc.file = word
			continue
		}
		v, err := parseOne(p.field, word)
		if err != nil {
			return nil, err
		}
		out[p.into] = v
	}
	if len(args) > 0 {
		return nil, usage("%q is one argument too many, because a flag says the same", args[0]).Hint("the command is %s", mc.cmd.UseLine())
	}
	if err := mc.fields.collect(out); err != nil {
		return nil, err
	}
	return out, mc.fillGlobals(out)
}

// fillGlobals puts the flags that every command takes into the fields that they stand for.
func (mc *methodCommand) fillGlobals(params map[string]any) error {
	g, fields := mc.app.global, mc.method.Request.Descriptor().Fields()
	put := func(name, value string) {
		if _, given := params[name]; !given && value != "" && fields.ByName(protoreflect.Name(name)) != nil {
			params[name] = value
		}
	}
	put("provider_id", g.provider)
	put("browser_preference", g.browser)
	put("client_session_id", g.session)
	if err := mc.app.addTimeout(mc.method, params); err != nil {
		return err
	}
	if files, ok := params["paths"].([]any); ok {
		for i, f := range files {
			abs, err := absolute(fmt.Sprint(f))
			if err != nil {
				return err
			}
			files[i] = abs
		}
	}
	return nil
}

// examples are derived too: what can be targeted is shown in its four ways.
func (mc *methodCommand) examples() string {
	words := "drover"
	path, _ := splitWords(mc.method.Spec.GetCli())
	for _, w := range path {
		words += " " + w
	}
	target := false
	for i := range mc.method.Request.Descriptor().Fields().Len() {
		fd := mc.method.Request.Descriptor().Fields().Get(i)
		target = target || wire.SpecOf(fd).GetInline() && fd.Message().FullName() == targetName
	}
	if !target {
		return ""
	}
	rest := ""
	for _, p := range mc.places {
		if p.into != "element_ref" {
			rest += " " + p.word
		}
	}
	lines := []string{"--selector '#order button'" + rest, "--text 'Place order'" + rest, "--xy 120,80" + rest}
	if len(mc.places) > 0 && mc.places[0].into == "element_ref" {
		lines = append([]string{"@d1e4" + rest}, lines...)
	} else {
		lines = append([]string{strings.TrimSpace(rest)}, "--selector '#order input'"+rest)
	}
	return "  " + words + " " + strings.Join(lines, "\n  "+words+" ")
}
