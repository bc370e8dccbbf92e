// Package brokertest has a scripted provider in this process, for tests of the broker and its faces: no gRPC, no process,
// no time of its own, so that it works inside a synctest bubble.
package brokertest

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// Answer answers a call of a fake.
type Answer func(ctx context.Context, req proto.Message) (proto.Message, error)

// Fake is a provider that does as it is told. Set the fields before it is used.
type Fake struct {
	// Description is what it says of itself; nil until it runs, when Shy is set.
	Description *browserv1.DescribeResponse
	// State is how it is.
	State *browserv1.StatusResponse
	// Shy says that nothing is known of it before it was acquired.
	Shy bool
	// Deaf says that it does not remember calls, for a benchmark.
	Deaf bool
	// Fails is the error of Acquire; nil for none.
	Fails error

	id string

	mu       sync.Mutex
	answers  map[string]Answer
	customs  []*browserv1.CustomRequest
	calls    []Call
	life     *life
	lives    int
	sessions map[string]string // native id by client_session_id, of the life
	last     int
}

// Call is a call that a fake got.
type Call struct {
	Method  string
	Request proto.Message
}

var (
	_ broker.Source   = (*Fake)(nil)
	_ broker.Provider = (*life)(nil)
)

// New makes a fake with every normalized method, one browser of each family and the features that are given.
func New(id string, families []string, features ...string) *Fake {
	d := &browserv1.DescribeResponse{
		ProviderId: id, ProviderLabel: id, ProviderVersion: "1.0.0", ProtocolVersion: catalog.Version, BrowserFamilies: families,
		CertificationTier: browserv1.CertificationTier_CERTIFICATION_TIER_CANDIDATE,
		Capabilities:      &browserv1.Capabilities{Features: features},
	}
	for _, m := range catalog.All() {
		switch {
		case !m.Routed():
		case m.Core():
			d.Capabilities.CoreMethods = append(d.Capabilities.CoreMethods, m.Name)
		default:
			d.Capabilities.OptionalMethods = append(d.Capabilities.OptionalMethods, m.Name)
		}
	}
	labels := map[string]string{"chromium": "Chromium", "firefox": "Firefox", "webkit": "WebKit"}
	for _, f := range families {
		d.Browsers = append(d.Browsers, &browserv1.Browser{Family: f, Label: labels[f], Version: "1"})
	}
	return &Fake{
		Description: d, State: &browserv1.StatusResponse{Availability: browserv1.Availability_AVAILABILITY_READY, State: "ready"},
		id: id, answers: map[string]Answer{}, sessions: map[string]string{},
	}
}

// On has calls of a method answered in another way.
func (f *Fake) On(method string, a Answer) *Fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[method] = a
	return f
}

// Calls lists the requests of a method that came.
func (f *Fake) Calls(method string) []proto.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []proto.Message
	for _, c := range f.calls {
		if c.Method == method {
			out = append(out, c.Request)
		}
	}
	return out
}

// Customs lists the calls of custom methods that came.
func (f *Fake) Customs() []*browserv1.CustomRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.customs)
}

// Lives is how often it was started.
func (f *Fake) Lives() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lives
}

// Kill ends the life that runs, as if its process had been killed.
func (f *Fake) Kill() {
	f.mu.Lock()
	l := f.life
	f.life, f.sessions = nil, map[string]string{}
	f.mu.Unlock()
	if l != nil {
		close(l.done)
	}
}

// Emit sends an event of the life that runs.
func (f *Fake) Emit(ev *browserv1.Event) {
	f.mu.Lock()
	l := f.life
	f.mu.Unlock()
	l.events <- ev
}

// Native gives the fake's own id of its latest session.
func (f *Fake) Native() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return "native-" + strconv.Itoa(f.last)
}

// ID is the provider_id.
func (f *Fake) ID() string { return f.id }

// Describe is what it says of itself.
func (f *Fake) Describe() (*browserv1.DescribeResponse, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Description == nil || f.Shy && f.lives == 0 {
		return nil, false
	}
	return f.Description, true
}

// Status is how it is.
func (f *Fake) Status() *browserv1.StatusResponse {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.State
}

// Acquire gives the life that runs, or starts one.
func (f *Fake) Acquire(ctx context.Context) (broker.Provider, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Fails != nil {
		return nil, f.Fails
	}
	if f.life == nil {
		f.lives++
		f.life = &life{fake: f, done: make(chan struct{}), events: make(chan *browserv1.Event)}
	}
	return f.life, nil
}

// life is one life of a fake.
type life struct {
	fake   *Fake
	done   chan struct{}
	events chan *browserv1.Event
}

func (l *life) ID() string                            { return l.fake.id }
func (l *life) Describe() *browserv1.DescribeResponse { return l.fake.Description }
func (l *life) Done() <-chan struct{}                 { return l.done }

func (l *life) Call(ctx context.Context, m *catalog.Method, req proto.Message) (proto.Message, error) {
	f := l.fake
	f.mu.Lock()
	if !f.Deaf {
		f.calls = append(f.calls, Call{m.Name, proto.Clone(req)})
	}
	a := f.answers[m.Name]
	f.mu.Unlock()
	select {
	case <-l.done:
		return nil, gone(f.id)
	default:
	}
	if a == nil {
		a = f.plain(m)
	}
	resp, err := a(ctx, req)
	select {
	case <-l.done:
		return nil, gone(f.id)
	default:
		return resp, err
	}
}

func gone(id string) error {
	return fault.New(fault.BrowserNotRunning, "the provider %s has exited", id).Reason("provider_exited").Provider(id)
}

// plain is what a fake answers that was told nothing else.
func (f *Fake) plain(m *catalog.Method) Answer {
	return func(_ context.Context, req proto.Message) (proto.Message, error) {
		switch r := req.(type) {
		case *browserv1.EnsureSessionRequest:
			return f.ensure(r), nil
		case *browserv1.CloseSessionRequest:
			return &browserv1.CloseSessionResponse{Closed: true, Disposition: browserv1.Disposition_DISPOSITION_CLOSED}, nil
		case *browserv1.OpenRequest:
			return &browserv1.OpenResponse{PageId: "page-1", Url: r.GetUrl(), Title: "A page"}, nil
		}
		return m.NewResponse(), nil
	}
}

func (f *Fake) ensure(r *browserv1.EnsureSessionRequest) *browserv1.EnsureSessionResponse {
	f.mu.Lock()
	defer f.mu.Unlock()
	id, again := f.sessions[r.GetClientSessionId()]
	if !again {
		f.last++
		id = "native-" + strconv.Itoa(f.last)
		f.sessions[r.GetClientSessionId()] = id
	}
	b := &browserv1.Browser{}
	for _, o := range f.Description.GetBrowsers() {
		if b.GetFamily() == "" || o.GetFamily() == r.GetBrowserPreference() || o.GetLabel() == r.GetBrowserPreference() {
			b = o
		}
	}
	return &browserv1.EnsureSessionResponse{
		SessionId: id, BrowserFamily: b.GetFamily(), BrowserLabel: b.GetLabel(), DefaultPageId: "page-1", Created: !again,
	}
}

func (l *life) Custom(_ context.Context, req *browserv1.CustomRequest) (*browserv1.CustomResponse, error) {
	l.fake.mu.Lock()
	defer l.fake.mu.Unlock()
	l.fake.customs = append(l.fake.customs, proto.CloneOf(req))
	return &browserv1.CustomResponse{}, nil
}

func (l *life) Events(ctx context.Context) iter.Seq2[*browserv1.Event, error] {
	return func(yield func(*browserv1.Event, error) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case <-l.done:
				return
			case ev := <-l.events:
				if !yield(ev, nil) {
					return
				}
			}
		}
	}
}
