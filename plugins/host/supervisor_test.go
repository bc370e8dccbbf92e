package host

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// launcher stands in for Launch: it makes in-process instances, or fails as it is told.
type launcher struct {
	mu    sync.Mutex
	fails []error // the next starts, one each; nil succeeds
	times []time.Time
	last  *Instance
	ready browserv1.Availability
}

func (l *launcher) launch(ctx context.Context, spec Spec) (*Instance, error) {
	l.mu.Lock()
	l.times = append(l.times, time.Now())
	var err error
	if len(l.fails) > 0 {
		err, l.fails = l.fails[0], l.fails[1:]
	}
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	s := plugins.NewServer(plugins.Info{ID: "fake"})
	plugins.Handle(s, func(context.Context, *browserv1.StatusRequest) (*browserv1.StatusResponse, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return &browserv1.StatusResponse{Availability: l.ready}, nil
	})
	plugins.Handle(s, func(context.Context, *browserv1.EnsureSessionRequest) (*browserv1.EnsureSessionResponse, error) {
		return &browserv1.EnsureSessionResponse{SessionId: "s1"}, nil
	})
	plugins.Handle(s, func(context.Context, *browserv1.CloseSessionRequest) (*browserv1.CloseSessionResponse, error) {
		return &browserv1.CloseSessionResponse{Closed: true}, nil
	})
	i, err := attachFake(ctx, s, spec)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.last = i
	l.mu.Unlock()
	return i, nil
}

// attachFake serves s in this process. plugintest does the same, but cannot be imported here.
func attachFake(ctx context.Context, s *plugins.Server, spec Spec) (*Instance, error) {
	l := bufconn.Listen(1 << 16)
	g := s.NewGRPC()
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///fake", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		return nil, err
	}
	return Attach(ctx, spec, conn, func() { s.Close(context.Background()); g.Stop(); <-served })
}

// die ends the running instance as the end of its process would.
func (l *launcher) die() {
	l.mu.Lock()
	i := l.last
	l.mu.Unlock()
	i.kill()
}

func (l *launcher) starts() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.times)
}

// harness is a supervisor over a launcher, and what it said.
type harness struct {
	*Supervisor
	l     *launcher
	mu    sync.Mutex
	trail []string
}

func supervise(t *testing.T, opts Options, l *launcher) *harness {
	t.Helper()
	if opts.Spec.Path == "" {
		opts.Spec.Path = filepath.Join(t.TempDir(), "drover-provider-fake")
		if err := os.WriteFile(opts.Spec.Path, []byte("binary"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if l.ready == 0 {
		l.ready = browserv1.Availability_AVAILABILITY_READY
	}
	h := &harness{l: l}
	opts.Spec.ID = "fake"
	opts.launch = l.launch
	opts.OnChange = func(c Change) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.trail = append(h.trail, string(c.To))
	}
	h.Supervisor = Supervise(opts)
	return h
}

func (h *harness) states() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.trail, " ")
}

func (h *harness) acquire(t *testing.T) *Instance {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	i, err := h.Acquire(ctx)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return i
}

func (h *harness) want(t *testing.T, s State) {
	t.Helper()
	synctest.Wait()
	if got := h.Status().State; got != s {
		t.Fatalf("state %s, want %s (trail: %s)", got, s, h.states())
	}
}

// A binary that was never seen is asked at once; one that is known runs only when it is needed.
func TestDescribeOnceThenOnDemand(t *testing.T) {
	cache := t.TempDir()
	path := filepath.Join(t.TempDir(), "drover-provider-fake")
	if err := os.WriteFile(path, []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	opts := Options{Spec: Spec{Path: path}, CacheDir: cache}
	synctest.Test(t, func(t *testing.T) {
		h := supervise(t, opts, &launcher{})
		defer h.Close()
		h.want(t, StateReady)
		// The fake has no digest, so the cache is filled by hand.
		digest, err := (&Digests{}).Of(path)
		if err != nil {
			t.Fatal(err)
		}
		descriptions{cache}.store(digest, opts.Spec.complete(), h.Status().Describe)
	})
	synctest.Test(t, func(t *testing.T) {
		h := supervise(t, opts, &launcher{})
		defer h.Close()
		h.want(t, StateStopped)
		d := h.Status().Describe
		if d.GetProviderId() != "fake" || !slices.Contains(d.GetCapabilities().GetCoreMethods(), "session.ensure") {
			t.Errorf("remembered %v", d)
		}
		if n := len(h.l.starts()); n != 0 {
			t.Errorf("%d starts before the first need", n)
		}
		h.acquire(t)
		h.want(t, StateReady)
	})
	if err := os.WriteFile(path, []byte("another binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := supervise(t, opts, &launcher{})
		defer h.Close()
		h.want(t, StateReady)
	})
}

// A binary that was never seen can be asked later, and is asked at once when it is needed.
func TestLookAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := supervise(t, Options{LookAfter: time.Minute}, &launcher{})
		defer h.Close()
		time.Sleep(time.Minute - 1)
		h.want(t, StateStopped)
		time.Sleep(time.Nanosecond)
		h.want(t, StateReady)
		if n := len(h.l.starts()); n != 1 {
			t.Errorf("%d starts", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := supervise(t, Options{LookAfter: time.Minute}, &launcher{})
		defer h.Close()
		h.want(t, StateStopped)
		h.acquire(t)
		time.Sleep(time.Hour)
		h.want(t, StateReady)
		if n := len(h.l.starts()); n != 1 {
			t.Errorf("%d starts", n)
		}
	})
}

// Starts that fail wait 1 s, 2 s, 4 s … up to a minute; meanwhile Acquire fails at once and says how long.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := fault.New(fault.BrowserNotRunning, "it said: boom").Reason("provider_start_failed")
		l := &launcher{fails: slices.Repeat([]error{boom}, 9)}
		h := supervise(t, Options{}, l)
		defer h.Close()
		h.want(t, StateBackoff)
		_, err := h.Acquire(t.Context())
		e := fault.From(err)
		if e.Code != fault.NotReady || e.ReasonWord() != "provider_backoff" || e.Details["after_ms"] != 1000 || !strings.Contains(e.Message, "boom") {
			t.Errorf("acquire in backoff: %+v", e)
		}
		time.Sleep(10 * time.Minute)
		h.want(t, StateReady)
		starts := l.starts()
		var waits []time.Duration
		for n := 1; n < len(starts); n++ {
			waits = append(waits, starts[n].Sub(starts[n-1]))
		}
		s := time.Second
		if want := []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s, 60 * s}; !slices.Equal(waits, want) {
			t.Errorf("waits %v, want %v", waits, want)
		}
	})
}

// A process that died after a while is started again by the next Acquire; one that keeps dying early has to wait.
func TestDeaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &launcher{}
		h := supervise(t, Options{}, l)
		defer h.Close()
		first := h.acquire(t)
		time.Sleep(time.Minute)
		l.die()
		h.want(t, StateStopped)
		if st := h.Status(); fault.ReasonOf(st.LastExit) != "provider_exited" || st.Err != nil { // it can start, so nothing is wrong
			t.Errorf("status says %v, last exit %v", st.Err, st.LastExit)
		}
		if second := h.acquire(t); second == first || second.Err() != nil || first.Err() == nil {
			t.Error("the instance came back")
		}
		for range forgivenDeaths {
			l.die()
			h.want(t, StateStopped)
			h.acquire(t)
		}
		l.die()
		h.want(t, StateBackoff)
		if _, err := h.Acquire(t.Context()); fault.ReasonOf(err) != "provider_backoff" {
			t.Errorf("acquire: %v", err)
		}
		time.Sleep(time.Second)
		h.want(t, StateStopped)
		h.acquire(t)
	})
}

// An Acquire that comes right after the death, before the supervisor heard of it, gets a living instance.
func TestAcquireRightAfterDeath(t *testing.T) {
	h := supervise(t, Options{}, &launcher{})
	defer h.Close()
	for range forgivenDeaths {
		h.acquire(t)
		h.l.die()
		if i := h.acquire(t); i.Err() != nil {
			t.Fatalf("got a dead instance: %v", i.Err())
		}
	}
}

func TestIdleStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := supervise(t, Options{Idle: time.Minute}, &launcher{})
		defer h.Close()
		i := h.acquire(t)
		time.Sleep(50 * time.Second)
		if h.acquire(t) != i { // and with that the minute begins anew
			t.Fatal("another instance")
		}
		time.Sleep(50 * time.Second)
		h.want(t, StateReady)
		ensure, _ := catalog.Lookup("session.ensure")
		if _, err := i.Call(t.Context(), ensure, &browserv1.EnsureSessionRequest{ClientSessionId: "c"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // a session that only exists keeps its process
		h.want(t, StateReady)
		closing, _ := catalog.Lookup("session.close")
		if _, err := i.Call(t.Context(), closing, &browserv1.CloseSessionRequest{SessionId: "s1"}); err != nil {
			t.Fatal(err)
		}
		release := i.Hold()
		time.Sleep(time.Hour)
		h.want(t, StateReady)
		release()
		time.Sleep(2*time.Minute + time.Second)
		h.want(t, StateStopped)
		if next := h.acquire(t); next == i {
			t.Error("the stopped instance came back")
		}
	})
}

func TestDrainAndRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := supervise(t, Options{}, &launcher{})
		defer h.Close()
		i := h.acquire(t)
		release := i.Hold()
		drained := make(chan error, 1)
		go func() { drained <- h.Drain(t.Context()) }()
		h.want(t, StateDraining)
		if _, err := h.Acquire(t.Context()); fault.CodeOf(err) != fault.NotReady || fault.ReasonOf(err) != "draining" {
			t.Errorf("acquire while draining: %v", err)
		}
		if i.Err() != nil {
			t.Error("ended while it was held")
		}
		release()
		if err := <-drained; err != nil {
			t.Errorf("drain: %v", err)
		}
		h.want(t, StateStopped)
		if _, err := h.Acquire(t.Context()); fault.ReasonOf(err) != "draining" {
			t.Errorf("acquire after drain: %v", err)
		}
		next, err := h.Restart(t.Context())
		if err != nil || next == i || next.Err() != nil {
			t.Fatalf("restart: %v", err)
		}
		again, err := h.Restart(t.Context())
		if err != nil || again == next || next.Err() == nil || h.acquire(t) != again {
			t.Errorf("restart of a running one: %v", err)
		}
	})
}

func TestDrainEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := supervise(t, Options{}, &launcher{})
		defer h.Close()
		i := h.acquire(t)
		defer i.Hold()()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := h.Drain(ctx); fault.ReasonOf(err) != "deadline_exceeded" {
			t.Errorf("drain: %v", err)
		}
		if i.Err() == nil {
			t.Error("still running")
		}
	})
}

// The provider's own word decides between ready, degraded and unavailable, at the start and later.
func TestStatusDecidesTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &launcher{ready: browserv1.Availability_AVAILABILITY_UNAVAILABLE}
		h := supervise(t, Options{}, l)
		defer h.Close()
		h.want(t, StateUnavailable)
		i := h.acquire(t)
		l.mu.Lock()
		l.ready = browserv1.Availability_AVAILABILITY_DEGRADED
		l.mu.Unlock()
		if _, err := Ask[*browserv1.StatusResponse](t.Context(), i, &browserv1.StatusRequest{}); err != nil {
			t.Fatal(err)
		}
		h.want(t, StateDegraded)
		if got, want := h.states(), "starting describing unavailable degraded"; got != want {
			t.Errorf("went %q, want %q", got, want)
		}
	})
}

// A binary that is not there is unavailable with steps, and is found when it comes.
func TestMissingBinary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drover-provider-fake")
	h := supervise(t, Options{Spec: Spec{Path: path}}, &launcher{})
	defer h.Close()
	st := h.Status()
	if st.State != StateUnavailable || len(st.ManualSteps) == 0 {
		t.Errorf("status %+v", st)
	}
	_, err := h.Acquire(t.Context())
	if fault.CodeOf(err) != fault.SetupRequired || fault.ReasonOf(err) != "provider_missing" {
		t.Errorf("acquire: %v", err)
	}
	if err := os.WriteFile(path, []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	h.acquire(t)
	if st := h.Status(); st.State != StateReady || st.Err != nil || st.ManualSteps != nil {
		t.Errorf("status %+v", st)
	}
}

// A refused configuration is no reason to start again and again.
func TestRefusedConfigNeedsAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &launcher{fails: []error{fault.New(fault.InvalidRequest, "headles: no such setting").Reason("config_invalid")}}
		h := supervise(t, Options{}, l)
		defer h.Close()
		time.Sleep(time.Hour)
		h.want(t, StateUnavailable)
		if n := len(l.starts()); n != 1 {
			t.Errorf("%d starts", n)
		}
		h.acquire(t)
	})
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		h := supervise(t, Options{}, &launcher{})
		defer h.Close()
		h.acquire(t)
		slow := Supervise(Options{Spec: Spec{ID: "slow", Path: h.Status().Path}, launch: func(ctx context.Context, _ Spec) (*Instance, error) {
			select {
			case <-block:
			case <-ctx.Done():
			}
			return nil, errors.New("not this time")
		}})
		defer slow.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := slow.Acquire(ctx)
		if e := fault.From(err); e.ReasonWord() != "deadline_exceeded" || e.Details["provider_state"] != string(StateStarting) {
			t.Errorf("%+v", e)
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := supervise(t, Options{}, &launcher{})
		i := h.acquire(t)
		h.Close()
		if i.Err() == nil || h.Status().State != StateStopped {
			t.Error("something is left")
		}
		if _, err := h.Acquire(t.Context()); fault.CodeOf(err) != fault.NotReady {
			t.Errorf("acquire: %v", err)
		}
		h.Close()
	})
}
