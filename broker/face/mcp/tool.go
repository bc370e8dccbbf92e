package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// ProfileAll is the profile of every tool.
const ProfileAll = "all"

// DefaultProfile is what a client gets that asks for none: the tools that most tasks need.
const DefaultProfile = "core"

// tool is one method of the catalog as an MCP tool.
type tool struct {
	method *catalog.Method
	name   string
	// lean and whole are what clients are shown: what most tasks need, or everything.
	lean, whole *mcp.Tool
}

// tools are made once; servers share them.
var tools = sync.OnceValue(func() []*tool {
	var out []*tool
	for _, m := range catalog.All() {
		if m.Spec.GetMcpTool() == "" {
			continue
		}
		t := &tool{method: m, name: m.Spec.GetMcpTool()}
		t.lean, t.whole = t.show(false), t.show(true)
		out = append(out, t)
	}
	return out
})

// Profiles lists the profiles of tools that the catalog declares.
func Profiles() []string {
	out := []string{ProfileAll}
	for _, t := range tools() {
		if p := t.method.Spec.GetMcpProfile(); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// ParseProfiles reads a list such as "core,network"; empty is the default. An unknown one is invalid_request.
func ParseProfiles(list string) ([]string, error) {
	if strings.TrimSpace(list) == "" {
		return []string{DefaultProfile}, nil
	}
	known := Profiles()
	var out []string
	for p := range strings.SplitSeq(list, ",") {
		p = strings.TrimSpace(p)
		if !slices.Contains(known, p) {
			err := fault.New(fault.InvalidRequest, "there is no profile %q; there are %s", p, strings.Join(known, ", ")).Field("profile")
			if n := wire.Nearest(p, known); n != "" {
				return nil, err.Hint("did you mean %q?", n)
			}
			return nil, err
		}
		if p == ProfileAll {
			return []string{ProfileAll}, nil
		}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out, nil
}

func (t *tool) in(profiles []string) bool {
	return slices.Contains(profiles, ProfileAll) || slices.Contains(profiles, t.method.Spec.GetMcpProfile())
}

func (t *tool) show(whole bool) *mcp.Tool {
	return &mcp.Tool{
		Name: t.name, Description: t.describe(whole), Annotations: t.annotations(),
		InputSchema: t.inputSchema(whole), OutputSchema: t.outputSchema(whole),
	}
}

// describe is the comment of the rpc, or its first sentence, with the names that models know.
func (t *tool) describe(whole bool) string {
	doc := t.method.Doc
	if !whole {
		doc, _, _ = strings.Cut(doc, ". ")
		doc, _, _ = strings.Cut(doc, ";")
		doc = strings.TrimSuffix(doc, ".") + "."
	}
	return renamed(doc) + exclusive(t.method.Request.Descriptor(), whole)
}

// annotations sets all four hints: the SDK takes a missing one for true where that is the careful reading.
func (t *tool) annotations() *mcp.ToolAnnotations {
	spec := t.method.Spec
	destructive, open := spec.GetDestructive(), t.method.NeedsSession() || t.passes()
	return &mcp.ToolAnnotations{
		ReadOnlyHint: spec.GetReadOnly(), IdempotentHint: spec.GetIdempotent(), DestructiveHint: &destructive, OpenWorldHint: &open,
	}
}

// reads says that the tool gives the page's outline.
func (t *tool) reads() bool { return outlineField(t.method) }

func outlineField(m *catalog.Method) bool {
	return m.Response.Descriptor().Fields().ByName("outline") != nil
}

// acts says that the tool may change a page, so that its reply can come with what changed.
func (t *tool) acts() bool {
	return t.method.NeedsSession() && !t.method.Spec.GetReadOnly() && !t.makes() && !t.ends() && !t.passes() &&
		t.method.Spec.GetMcpProfile() == DefaultProfile && t.method.Response.Descriptor().Fields().ByName("page_id") != nil
}

// budgeted says that the reply may be long.
func (t *tool) budgeted() bool {
	if t.reads() || t.acts() {
		return true
	}
	fds := t.method.Response.Descriptor().Fields()
	for i := range fds.Len() {
		fd := fds.Get(i)
		if t.method.NeedsSession() && fd.Name() != "warnings" && (fd.IsList() || fd.IsMap() || anyValue(fd)) {
			return true
		}
	}
	return t.passes()
}

// makes says that the tool makes the session, ends that it closes it, passes that it calls a provider's own method.
func (t *tool) makes() bool  { return isRequest[*browserv1.EnsureSessionRequest](t.method) }
func (t *tool) ends() bool   { return isRequest[*browserv1.CloseSessionRequest](t.method) }
func (t *tool) passes() bool { return isRequest[*browserv1.CommandRequest](t.method) }

func isRequest[T any](m *catalog.Method) bool {
	_, ok := any(m.NewRequest()).(T)
	return ok
}

var methodNames = sync.OnceValue(func() *strings.Replacer {
	var pairs []string
	names := map[string]string{}
	for _, m := range catalog.All() {
		if tool := m.Spec.GetMcpTool(); tool != "" {
			names[m.Name] = tool
		}
	}
	// Longer names first, so that no name is taken for the beginning of another.
	keys := make([]string, 0, len(names))
	for k := range names {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return len(b) - len(a) })
	for _, k := range keys {
		pairs = append(pairs, k, names[k])
	}
	pairs = append(pairs, "client_session_id", "name")
	return strings.NewReplacer(pairs...)
})

// renamed puts the names of tools in place of the names of methods, which a model does not know.
func renamed(text string) string { return methodNames().Replace(text) }

// offered answers a call of a tool that is not listed: what it was most likely meant to be, or why it is not there.
func (s *server) offered(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call, ok := req.(*mcp.CallToolRequest)
		if !ok {
			return next(ctx, method, req)
		}
		name := call.Params.Name
		s.mu.Lock()
		_, listed := s.listed[name]
		s.mu.Unlock()
		if listed {
			return next(ctx, method, req)
		}
		err := unknown(name)
		if i := slices.IndexFunc(tools(), func(t *tool) bool { return t.name == name }); i >= 0 {
			err = tools()[i].missing(s.hello.Profiles)
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
}

// missing says why the tool is not listed.
func (t *tool) missing(profiles []string) error {
	switch profile := t.method.Spec.GetMcpProfile(); {
	case !t.in(profiles):
		return fmt.Errorf("%s belongs to the profile %s, and this connection has %s; the person starts the server with another one", t.name, profile, strings.Join(profiles, ", "))
	case t.passes():
		return fmt.Errorf("%s is not offered: the policy allows no method of a provider's own here", t.name)
	default:
		return fmt.Errorf("%s is not offered: no provider here can do it", t.name)
	}
}

// unknown is the answer to a tool that there is not.
func unknown(name string) error {
	names := make([]string, 0, len(tools()))
	for _, t := range tools() {
		names = append(names, t.name)
	}
	if n := wire.Nearest(name, names); n != "" {
		return fmt.Errorf("there is no tool %q; did you mean %q?", name, n)
	}
	return fmt.Errorf("there is no tool %q", name)
}
