package broker_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/brokertest"
	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// house is a broker with fakes behind it.
type house struct {
	t      *testing.T
	broker *broker.Broker
}

// build makes a broker over fakes; config is HCL, empty for none.
func build(t *testing.T, config string, fakes ...*brokertest.Fake) *house {
	t.Helper()
	c := policy.Default()
	if config != "" {
		var err error
		if c, err = policy.Load("test.hcl", []byte(config)); err != nil {
			t.Fatal(err)
		}
	}
	sources := make([]broker.Source, len(fakes))
	for i, f := range fakes {
		sources[i] = f
	}
	h := &house{t: t, broker: broker.New(broker.Options{Policy: policy.New(c), Sources: sources, Version: "test"})}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
		defer cancel()
		h.broker.Close(ctx)
	})
	return h
}

// user is a caller of a principal of this name.
func (h *house) user(name string) *user {
	return h.connect(name, broker.Unbound)
}

func (h *house) connect(name string, b broker.Binding) *user {
	return &user{t: h.t, Caller: h.broker.Connect(broker.Principal{ID: "token:" + name, Name: name}, b)}
}

type user struct {
	t *testing.T
	*broker.Caller
}

// try calls a method that is found by its request.
func (u *user) try(ctx context.Context, req proto.Message) (proto.Message, error) {
	m, ok := catalog.ByRequest(req)
	if !ok {
		u.t.Fatalf("no method takes %T", req)
	}
	return u.Call(ctx, m, proto.Clone(req))
}

// aside makes a call that is only in the way of others.
func (u *user) aside(req proto.Message) {
	m := methodOf(u.t, req)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = u.Call(u.t.Context(), m, req)
	}()
	u.t.Cleanup(func() { <-done })
}

// do calls a method that must succeed.
func do[Resp proto.Message](u *user, req proto.Message) Resp {
	u.t.Helper()
	resp, err := u.try(u.t.Context(), req)
	if err != nil {
		u.t.Fatalf("%T: %v", req, err)
	}
	return resp.(Resp)
}

// fails calls a method that must fail with a code and a reason.
func (u *user) fails(req proto.Message, code fault.Code, reason string) *fault.Error {
	u.t.Helper()
	resp, err := u.try(u.t.Context(), req)
	if err == nil {
		u.t.Fatalf("%T succeeded: %v", req, resp)
	}
	return isFault(u.t, err, code, reason)
}

func isFault(t *testing.T, err error, code fault.Code, reason string) *fault.Error {
	t.Helper()
	e := fault.From(err)
	if e == nil || e.Code != code || e.ReasonWord() != reason {
		t.Fatalf("got %v, want %s/%s", err, fault.Word(code), reason)
	}
	return e
}

// ensure makes or finds the session of a name.
func (u *user) ensure(name string, more ...func(*browserv1.EnsureSessionRequest)) *browserv1.EnsureSessionResponse {
	u.t.Helper()
	r := &browserv1.EnsureSessionRequest{ClientSessionId: name}
	for _, f := range more {
		f(r)
	}
	return do[*browserv1.EnsureSessionResponse](u, r)
}

func open(session, url string) *browserv1.OpenRequest {
	return &browserv1.OpenRequest{SessionId: session, Url: url}
}

func click(session, page string) *browserv1.ClickRequest {
	r := &browserv1.ClickRequest{SessionId: session, Target: &browserv1.Target{Selector: proto.String("button")}}
	if page != "" {
		r.PageId = &page
	}
	return r
}

func cdp() *brokertest.Fake { return brokertest.New("cdp", []string{"chromium"}, "element_refs") }
func bidi() *brokertest.Fake {
	return brokertest.New("bidi", []string{"firefox", "chromium"}, "element_refs", "pdf")
}

func methodOf(t *testing.T, req proto.Message) *catalog.Method {
	t.Helper()
	m, ok := catalog.ByRequest(req)
	if !ok {
		t.Fatalf("no method takes %T", req)
	}
	return m
}
