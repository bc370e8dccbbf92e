package plugins

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// Handle registers the function for one normalized method, which is found by the type of its request. Registering it is
// what lists it in provider.describe. It panics when the types are no method, when the method is not a provider's to
// answer, and when it is registered twice.
//
// fn is called from many goroutines at once. The request has passed the catalog's field checks and must not be kept after
// fn returns.
func Handle[Req, Resp proto.Message](s *Server, fn func(context.Context, Req) (Resp, error)) {
	var req Req
	var resp Resp
	m, ok := catalog.ByRequest(req)
	if !ok {
		panic(fmt.Sprintf("plugins: %T is no request of a normalized method", req))
	}
	if got, want := resp.ProtoReflect().Descriptor().FullName(), m.Response.Descriptor().FullName(); got != want {
		panic(fmt.Sprintf("plugins: %s answers with %s, not with %s", m.Name, want, got))
	}
	s.HandleMethod(m, func(ctx context.Context, r proto.Message) (proto.Message, error) {
		typed, ok := r.(Req)
		if !ok {
			return nil, fault.New(fault.InternalError, "%s came with a %T", m.Name, r)
		}
		return fn(ctx, typed)
	})
}

// HandleMethod is Handle for a function that is generic over methods, such as that of a provider which forwards calls. The
// request and the response have the method's types.
func (s *Server) HandleMethod(m *catalog.Method, fn func(context.Context, proto.Message) (proto.Message, error)) {
	s.mustBeOpen("HandleMethod")
	switch m.Name {
	case methodDescribe:
		panic("plugins: provider.describe is answered by the server; use OnDescribe to add to it")
	case methodConfigure:
		panic("plugins: provider.configure is answered by the server; use OnConfigure")
	}
	if !m.Routed() {
		panic(fmt.Sprintf("plugins: %s is not a provider's to answer", m.Name))
	}
	if h, ok := s.methods[m.Name]; ok && !h.own {
		panic(fmt.Sprintf("plugins: %s is registered twice", m.Name))
	}
	s.methods[m.Name] = handler{method: m, call: fn}
}

// Handles says whether a method has a function.
func (s *Server) Handles(name string) bool {
	_, ok := s.methods[name]
	return ok
}

type customHandler struct {
	method *browserv1.CustomMethod
	call   func(context.Context, *browserv1.CustomRequest) (*structpb.Value, error)
}

// HandleCustom registers one of the provider's own methods, beyond the normalized ones. Its name is namespaced ("cdp.send")
// and it is reached by provider.command alone, where the policy allows it. Stability is experimental unless it is said. A
// nil value is written as null.
func (s *Server) HandleCustom(m *browserv1.CustomMethod, fn func(context.Context, *browserv1.CustomRequest) (*structpb.Value, error)) {
	s.mustBeOpen("HandleCustom")
	if _, ok := catalog.Lookup(m.GetName()); ok {
		panic(fmt.Sprintf("plugins: %s is a normalized method; use Handle", m.GetName()))
	}
	if ns, word, ok := strings.Cut(m.GetName(), "."); !ok || ns == "" || word == "" {
		panic(fmt.Sprintf("plugins: custom method %q has no namespace, as in cdp.send", m.GetName()))
	}
	if _, ok := s.custom[m.GetName()]; ok {
		panic(fmt.Sprintf("plugins: custom method %s is registered twice", m.GetName()))
	}
	m = proto.Clone(m).(*browserv1.CustomMethod)
	if m.GetStability() == browserv1.Stability_STABILITY_UNSPECIFIED {
		m.Stability = browserv1.Stability_STABILITY_EXPERIMENTAL
	}
	s.custom[m.GetName()] = customHandler{method: m, call: fn}
	s.order = append(s.order, m.GetName())
}
