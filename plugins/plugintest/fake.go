package plugintest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// Step is what a fake does with one call. Parts that are set happen in the order of the fields; the zero value answers with
// an empty response at once.
type Step struct {
	// Progress is reported first, a stage each.
	Progress []string
	// Emit sends events.
	Emit []*browserv1.Event
	// Delay waits, but not longer than the call's context.
	Delay time.Duration
	// Hang waits for the end of the call's context.
	Hang bool
	// Deaf waits for ever, whatever becomes of the context, until the fake is closed.
	Deaf bool
	// Exit ends the process with this status; for a fake in a process of its own.
	Exit int
	// Panic panics with this text.
	Panic string
	// Fault is the answer.
	Fault error
	// Reply is the answer; its type is the method's.
	Reply proto.Message
	// Do makes the answer.
	Do func(context.Context, proto.Message) (proto.Message, error)
}

// Call is a call that a fake got.
type Call struct {
	Method  string
	Request proto.Message
}

// Fake is a provider that follows a script. It has the methods that On or Answers named, besides its own.
type Fake struct {
	server *plugins.Server
	shut   chan struct{}

	mu       sync.Mutex
	steps    map[string][]Step
	calls    []Call
	arrived  chan struct{} // closed and made anew at each call
	sessions int
}

// NewFake makes a fake without a script. All of its methods may be called while it serves, but for a method that is new to
// it.
func NewFake(info plugins.Info) *Fake {
	f := &Fake{server: plugins.NewServer(info), shut: make(chan struct{}), steps: map[string][]Step{}, arrived: make(chan struct{})}
	f.server.OnClose(func(context.Context) { close(f.shut) })
	return f
}

// NewSessions makes a fake that has the core methods and answers them plausibly, with session, page and snapshot ids that
// are never used twice.
func NewSessions(info plugins.Info) *Fake {
	f := NewFake(info)
	for _, m := range catalog.All() {
		if m.Core() && m.Routed() && m.Noun() != "provider" {
			f.On(m.Name)
		}
	}
	f.On("session.ensure", Step{Do: f.ensure})
	f.On("session.close", Step{Reply: &browserv1.CloseSessionResponse{Closed: true, Disposition: browserv1.Disposition_DISPOSITION_CLOSED}})
	return f
}

// Server gives the provider, for Connect, Main or plugins.Serve.
func (f *Fake) Server() *plugins.Server { return f.server }

// On sets what the fake does at the calls of a method, one step a call; the last one is for all further calls. Without steps
// it answers with empty responses. It gives the fake back.
func (f *Fake) On(method string, steps ...Step) *Fake {
	m, ok := catalog.Lookup(method)
	if !ok {
		panic(fmt.Sprintf("plugintest: there is no method %q", method))
	}
	if len(steps) == 0 {
		steps = []Step{{}}
	}
	f.mu.Lock()
	_, known := f.steps[method]
	f.steps[method] = slices.Clone(steps)
	f.mu.Unlock()
	if !known {
		f.server.HandleMethod(m, func(ctx context.Context, req proto.Message) (proto.Message, error) {
			return f.call(ctx, m, req)
		})
	}
	return f
}

// OnCustom adds a custom method that answers with its own params.
func (f *Fake) OnCustom(name string) *Fake {
	f.server.HandleCustom(&browserv1.CustomMethod{Name: name, Description: "Answers with its params."},
		func(_ context.Context, r *browserv1.CustomRequest) (*structpb.Value, error) {
			return structpb.NewStructValue(r.GetParams()), nil
		})
	return f
}

// Calls lists the calls that came, in order; those of one method, or all without a name.
func (f *Fake) Calls(method string) []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Call
	for _, c := range f.calls {
		if method == "" || c.Method == method {
			out = append(out, c)
		}
	}
	return out
}

// Await waits until at least n calls of a method came.
func (f *Fake) Await(ctx context.Context, method string, n int) error {
	for {
		f.mu.Lock()
		arrived := f.arrived
		f.mu.Unlock()
		if len(f.Calls(method)) >= n {
			return nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *Fake) call(ctx context.Context, m *catalog.Method, req proto.Message) (proto.Message, error) {
	f.mu.Lock()
	f.calls = append(f.calls, Call{Method: m.Name, Request: proto.Clone(req)})
	close(f.arrived)
	f.arrived = make(chan struct{})
	step := f.steps[m.Name][0]
	if len(f.steps[m.Name]) > 1 {
		f.steps[m.Name] = f.steps[m.Name][1:]
	}
	f.mu.Unlock()
	return f.run(ctx, m, step, req)
}

func (f *Fake) run(ctx context.Context, m *catalog.Method, s Step, req proto.Message) (proto.Message, error) {
	for _, stage := range s.Progress {
		plugins.Progress(ctx, stage, "the fake is at "+stage)
	}
	for _, e := range s.Emit {
		f.server.Emit(e.GetType(), e.GetPayload().AsMap())
	}
	if err := f.wait(ctx, s); err != nil {
		return nil, err
	}
	switch {
	case s.Exit != 0:
		os.Exit(s.Exit)
	case s.Panic != "":
		panic(s.Panic)
	case s.Fault != nil:
		return nil, s.Fault
	case s.Do != nil:
		return s.Do(ctx, req)
	case s.Reply != nil:
		return proto.Clone(s.Reply), nil
	}
	return m.NewResponse(), nil
}

func (f *Fake) wait(ctx context.Context, s Step) error {
	if s.Deaf {
		<-f.shut
	}
	if s.Delay > 0 {
		t := time.NewTimer(s.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if s.Hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (f *Fake) ensure(_ context.Context, req proto.Message) (proto.Message, error) {
	r, ok := req.(*browserv1.EnsureSessionRequest)
	if !ok {
		return nil, fault.New(fault.InternalError, "a %T", req)
	}
	f.mu.Lock()
	f.sessions++
	n := strconv.Itoa(f.sessions)
	f.mu.Unlock()
	info := f.server.Info()
	family := "chromium"
	if len(info.Families) > 0 {
		family = info.Families[0]
	}
	return &browserv1.EnsureSessionResponse{
		SessionId: "s" + n, DefaultPageId: "p" + n, BrowserFamily: family, BrowserLabel: info.Label,
		Isolation: r.GetIsolation(), Created: true, Features: info.Features,
	}, nil
}
