package mcp

import (
	"context"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/droverhq/drover/broker"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

var (
	describeMethod = must("provider.describe")
	statusMethod   = must("provider.status")
	commandMethod  = must("provider.command")
)

// refresh lists the tools of the profiles that some provider can serve, and the setup prompt while no provider is ready.
// Clients hear of a difference by list_changed.
func (s *server) refresh(ctx context.Context) {
	caller := s.face.o.Broker.Connect(s.who, broker.Unbound)
	able := methods(ctx, caller)
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []string
	for _, t := range tools() {
		version := ""
		show := t.lean
		if slices.Contains(s.hello.Profiles, ProfileAll) {
			show = t.whole
		}
		switch {
		case !t.in(s.hello.Profiles) || !able.serve(t):
		case t.passes():
			if names := s.passthrough(ctx, caller, able.custom); len(names) > 0 {
				version = strings.Join(names, ", ")
				with := *show
				with.Description += " Allowed here: " + version + "."
				show = &with
			}
		default:
			version = "1"
		}
		had := s.listed[t.name]
		if version == had {
			continue
		}
		if version == "" {
			gone = append(gone, t.name)
			delete(s.listed, t.name)
			continue
		}
		s.listed[t.name] = version
		s.mcp.AddTool(s.shown(show), s.handler(t))
	}
	if len(gone) > 0 {
		s.mcp.RemoveTools(gone...)
	}
	s.offerSetup()
}

// shown gives a tool as the clients see it.
func (s *server) shown(t *mcp.Tool) *mcp.Tool {
	if !s.hello.Text {
		return t
	}
	without := *t
	without.OutputSchema = nil
	return &without
}

// abilities are what the providers that have been asked can do together.
type abilities struct {
	methods map[string]bool // empty while none has been asked
	custom  []custom
}

// custom is a provider's own method.
type custom struct{ provider, method string }

func methods(ctx context.Context, caller *broker.Caller) abilities {
	a := abilities{methods: map[string]bool{}}
	resp, err := caller.Call(ctx, describeMethod, &browserv1.DescribeRequest{})
	d, ok := resp.(*browserv1.DescribeResponse)
	if err != nil || !ok {
		return a
	}
	for _, p := range d.GetProviders() {
		caps := p.GetCapabilities()
		for _, name := range slices.Concat(caps.GetCoreMethods(), caps.GetOptionalMethods()) {
			a.methods[name] = true
		}
		for _, m := range caps.GetCustomMethods() {
			a.custom = append(a.custom, custom{p.GetProviderId(), m.GetName()})
		}
	}
	return a
}

// serve says whether a tool can be of use: its method is the broker's own, or some provider has it. While no provider has
// been asked, any may have it.
func (a abilities) serve(t *tool) bool {
	return !t.method.Routed() || t.method.Core() || len(a.methods) == 0 || a.methods[t.method.Name]
}

// passthrough lists the custom methods that the policy lets this principal call.
func (s *server) passthrough(ctx context.Context, caller *broker.Caller, all []custom) []string {
	var out []string
	for _, m := range all {
		x, err := s.face.o.Broker.Explain(ctx, caller, commandMethod, &browserv1.CommandRequest{ProviderId: m.provider, ProviderMethod: m.method})
		if err == nil && x.Allowed && !slices.Contains(out, m.method) {
			out = append(out, m.method)
		}
	}
	slices.Sort(out)
	return out
}
