package plugins

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// Call answers one normalized method: it checks the fields, sets the deadline, calls the registered function and turns
// whatever goes wrong into a fault. It is what every connection uses, and may be used without one.
func (s *Server) Call(ctx context.Context, m *catalog.Method, req proto.Message) (proto.Message, error) {
	ctx, end := s.span(ctx, m.Name)
	resp, err := s.answer(ctx, m, req)
	end(err)
	return resp, err
}

func (s *Server) answer(ctx context.Context, m *catalog.Method, req proto.Message) (proto.Message, error) {
	h, ok := s.methods[m.Name]
	if !ok {
		return nil, fault.New(fault.UnsupportedMethod, "the provider %s has no %s", s.info.ID, m.Name).
			Hint("provider.describe lists what it has").Method(m.Name)
	}
	if err := s.over(); err != nil {
		return nil, err
	}
	if err := m.Check(req); err != nil {
		return nil, err
	}
	timeout := catalog.Timeout(m, req)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ctx, done := s.enter(ctx, catalog.SessionID(req), catalog.PageID(req))
	defer done()

	var resp proto.Message
	err := s.guard(m.Name, func() (err error) {
		resp, err = h.call(ctx, req)
		return err
	})
	if err != nil {
		return nil, s.failed(ctx, m, timeout, err)
	}
	if resp == nil || !resp.ProtoReflect().IsValid() {
		return nil, fault.New(fault.InternalError, "the provider's function for %s gave neither a response nor an error", m.Name).Method(m.Name)
	}
	return resp, nil
}

// Custom calls one of the provider's own methods. Its deadline is the context's.
func (s *Server) Custom(ctx context.Context, req *browserv1.CustomRequest) (*browserv1.CustomResponse, error) {
	h, ok := s.custom[req.GetMethod()]
	if !ok {
		return nil, fault.New(fault.UnsupportedMethod, "the provider %s has no custom method %s", s.info.ID, req.GetMethod()).
			Hint("provider.describe lists its custom_methods").Method(req.GetMethod())
	}
	if err := s.over(); err != nil {
		return nil, err
	}
	ctx, end := s.span(ctx, req.GetMethod())
	resp, err := s.answerCustom(ctx, h, req)
	end(err)
	return resp, err
}

func (s *Server) answerCustom(ctx context.Context, h customHandler, req *browserv1.CustomRequest) (*browserv1.CustomResponse, error) {
	ctx, done := s.enter(ctx, req.GetSessionId(), req.GetPageId())
	defer done()
	var value *structpb.Value
	err := s.guard(req.GetMethod(), func() (err error) {
		value, err = h.call(ctx, req)
		return err
	})
	switch {
	case err == nil:
	case s.life.Err() != nil && ctx.Err() != nil:
		return nil, fault.From(s.over())
	default:
		return nil, fault.From(err)
	}
	if value == nil {
		value = structpb.NewNullValue()
	}
	return &browserv1.CustomResponse{Result: value}, nil
}

// enter ties a call to the provider's life and lets Progress find its way back.
func (s *Server) enter(ctx context.Context, session, page string) (context.Context, func()) {
	ctx = withCall(ctx, s, session, page)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// over says why the provider's life is over; nil while it is not.
func (s *Server) over() error { return context.Cause(s.life) }

// guard runs fn and makes an error of a panic. The log gets the stack, and the value only where the runtime made it:
// another value could hold page text.
func (s *Server) guard(method string, fn func() error) (err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		value := fmt.Sprintf("%T", r)
		if re, ok := r.(runtime.Error); ok {
			value = re.Error()
		}
		s.logger.Error("a provider function panicked", "method", method, "panic", value, "stack", string(debug.Stack()))
		err = fault.New(fault.InternalError, "the provider's function for %s panicked (%s)", method, value).
			Reason("panic").Hint("the provider's log has the stack").Method(method)
	}()
	return fn()
}

// failed gives the fault for an error of a function. A fault that says something of its own stays as it is; everything
// that comes of a context that ended is told by why it ended.
func (s *Server) failed(ctx context.Context, m *catalog.Method, timeout time.Duration, err error) error {
	var own *fault.Error
	if errors.As(err, &own) && own.ReasonWord() != "deadline_exceeded" && own.ReasonWord() != "cancelled" {
		return own
	}
	switch {
	case s.life.Err() != nil && ctx.Err() != nil:
		return fault.From(s.over())
	case errors.Is(ctx.Err(), context.DeadlineExceeded) || (own != nil && own.ReasonWord() == "deadline_exceeded"):
		e := TimedOut(m, timeout).Cause(err)
		if own != nil {
			e.Message = own.Message
		}
		return e
	default:
		return fault.From(err)
	}
}

// TimedOut gives the fault of a call that ran out of time: navigation_timeout for methods that navigate, not_ready for the
// rest, reason deadline_exceeded. The same call may be tried again unless it may have acted already.
func TimedOut(m *catalog.Method, timeout time.Duration) *fault.Error {
	code := fault.NotReady
	if m.Spec.GetNavigates() {
		code = fault.NavigationTimeout
	}
	e := fault.New(code, "%s did not finish within %d ms", m.Name, timeout.Milliseconds()).Reason("deadline_exceeded").
		With("timeout_ms", timeout.Milliseconds()).Method(m.Name)
	if !m.Spec.GetNavigates() && !m.Spec.GetReadOnly() && !m.Spec.GetIdempotent() {
		return e.Retry("").Hint("it may have acted already, so look at the page before trying again")
	}
	return e.Hint("try again with a larger timeout_ms")
}
