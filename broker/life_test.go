package broker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/broker"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// next waits for the next event of a subscription, a minute at most.
func next(t *testing.T, s *broker.Subscription) *browserv1.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ev, err := s.Next(ctx)
	if err != nil {
		t.Fatalf("no event came: %v", err)
	}
	return ev
}

// quiet tests that no event comes.
func quiet(t *testing.T, s *broker.Subscription) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if ev, err := s.Next(ctx); err == nil {
		t.Fatalf("an event came: %v", ev)
	}
}

func listen(t *testing.T, u *user, types ...string) *broker.Subscription {
	t.Helper()
	s, err := u.Subscribe(types, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func field(ev *browserv1.Event, name string) string {
	return ev.GetPayload().GetFields()[name].GetStringValue()
}

func stuck(ctx context.Context, _ proto.Message) (proto.Message, error) {
	<-ctx.Done()
	return nil, fault.From(context.Cause(ctx)) // as a host gives it
}

// When a provider's process dies, calls in flight fail at once, later ones are told that the session is lost, its owner hears
// of it, and the next ensure makes a new session on a new process. Nothing is bound to the new one silently.
func TestProviderDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cdp().On("page.click", stuck)
		h := build(t, "", f)
		u, other := h.user("ann"), h.user("bob")
		s := u.ensure("a").GetSessionId()
		heard, foreign := listen(t, u, "session.lost"), listen(t, other)
		flight := make(chan error, 1)
		go func() {
			_, err := u.try(t.Context(), click(s, ""))
			flight <- err
		}()
		synctest.Wait()
		start := time.Now()
		f.Kill()
		if e := isFault(t, <-flight, fault.BrowserNotRunning, "provider_exited"); !e.Retryable || e.Details["retry"] != "new_session" || e.Details["provider_id"] != "cdp" {
			t.Errorf("the call in flight got %v, %v", e, e.Details)
		}
		synctest.Wait()
		if e := u.fails(open(s, "https://example.com/"), fault.SessionNotFound, "session_lost"); !e.Retryable || e.Details["retry"] != "new_session" {
			t.Errorf("a later call got %v, %v", e, e.Details)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %v", took)
		}
		if ev := next(t, heard); field(ev, "session_id") != s || field(ev, "reason") != "provider_exited" {
			t.Errorf("the owner heard %v", ev)
		}
		quiet(t, foreign)
		list := do[*browserv1.ListSessionsResponse](u, &browserv1.ListSessionsRequest{}).GetSessions()
		if len(list) != 1 || list[0].GetState() != browserv1.SessionState_SESSION_STATE_LOST {
			t.Errorf("session.list gives %v", list)
		}
		again := u.ensure("a")
		if again.GetSessionId() == s || !again.GetCreated() || f.Lives() != 2 {
			t.Errorf("ensured again: %v, lives %d", again, f.Lives())
		}
		u.fails(open(s, "https://example.com/"), fault.SessionNotFound, "session_lost")
		do[*browserv1.OpenResponse](u, open(again.GetSessionId(), "https://example.com/"))
		do[*browserv1.CloseSessionResponse](u, &browserv1.CloseSessionRequest{SessionId: s})
		u.fails(open(s, "https://example.com/"), fault.SessionNotFound, "")
	})
}

// A browser that is gone loses its session too, by whatever way the provider says so.
func TestBrowserDies(t *testing.T) {
	for name, answer := range map[string]error{
		"browser_not_running": fault.New(fault.BrowserNotRunning, "Chromium is gone"),
		"session_not_found":   fault.New(fault.SessionNotFound, "no such session"),
	} {
		t.Run(name, func(t *testing.T) {
			f := cdp()
			f.On("page.click", func(context.Context, proto.Message) (proto.Message, error) { return nil, answer })
			forgotten := make(chan string, 2)
			f.On("session.close", func(_ context.Context, req proto.Message) (proto.Message, error) {
				forgotten <- req.(*browserv1.CloseSessionRequest).GetSessionId()
				return nil, fault.New(fault.SessionNotFound, "gone")
			})
			u := build(t, "", f).user("ann")
			s, native := u.ensure("a").GetSessionId(), f.Native()
			_, err := u.try(t.Context(), click(s, ""))
			if e := fault.From(err); !e.Retryable || e.Details["retry"] != "new_session" {
				t.Errorf("the call got %v, %v", e, e.Details)
			}
			u.fails(open(s, "https://example.com/"), fault.SessionNotFound, "session_lost")
			if told := <-forgotten; told != native {
				t.Errorf("the provider was told to forget %s", told)
			}
			f.Kill()
			if again := u.ensure("a"); again.GetSessionId() == s || !again.GetCreated() {
				t.Errorf("ensured again: %v", again)
			}
		})
	}
	t.Run("session.lost", func(t *testing.T) {
		f := cdp()
		u := build(t, "", f).user("ann")
		s := u.ensure("a").GetSessionId()
		heard := listen(t, u, "session.lost")
		payload, _ := structpb.NewStruct(map[string]any{"session_id": f.Native(), "message": "it crashed"})
		f.Emit(&browserv1.Event{Type: "session.lost", Payload: payload})
		if ev := next(t, heard); field(ev, "session_id") != s || field(ev, "reason") != "provider_exited" {
			t.Errorf("the owner heard %v", ev)
		}
		u.fails(open(s, "https://example.com/"), fault.SessionNotFound, "session_lost")
	})
	t.Run("found out by ensure", func(t *testing.T) {
		f := cdp()
		u := build(t, "", f).user("ann")
		s := u.ensure("a").GetSessionId()
		first := true
		f.On("session.ensure", func(context.Context, proto.Message) (proto.Message, error) {
			if first {
				first = false
				return nil, fault.New(fault.BrowserNotRunning, "Chromium is gone")
			}
			return &browserv1.EnsureSessionResponse{SessionId: "new"}, nil
		})
		if again := u.ensure("a"); again.GetSessionId() == s || !again.GetCreated() {
			t.Errorf("ensured again: %v", again)
		}
	})
	t.Run("made anew by the provider under the same name", func(t *testing.T) {
		f := cdp()
		u := build(t, "", f).user("ann")
		s := u.ensure("a").GetSessionId()
		f.On("session.ensure", func(context.Context, proto.Message) (proto.Message, error) {
			return &browserv1.EnsureSessionResponse{SessionId: "other"}, nil
		})
		if again := u.ensure("a"); again.GetSessionId() == s || !again.GetCreated() {
			t.Errorf("ensured again: %v", again)
		}
		told := false
		for _, c := range f.Calls("session.close") {
			told = told || c.(*browserv1.CloseSessionRequest).GetSessionId() == "other"
		}
		if !told {
			t.Error("the provider keeps a session that nobody knows of")
		}
	})
}

// Closing a session ends the calls that are under way in it, and is done though the caller does not wait for it.
func TestCloseEndsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cdp().On("page.click", stuck)
		u := build(t, "", f).user("ann")
		s := u.ensure("a").GetSessionId()
		heard := listen(t, u, "session.closed")
		flight := make(chan error, 1)
		go func() {
			_, err := u.try(t.Context(), click(s, ""))
			flight <- err
		}()
		synctest.Wait()
		if r := do[*browserv1.CloseSessionResponse](u, &browserv1.CloseSessionRequest{SessionId: s}); !r.GetClosed() {
			t.Errorf("closed: %v", r)
		}
		isFault(t, <-flight, fault.SessionNotFound, "")
		if ev := next(t, heard); field(ev, "session_id") != s {
			t.Errorf("the owner heard %v", ev)
		}
		if got := f.Calls("session.close")[0].(*browserv1.CloseSessionRequest).GetSessionId(); got != f.Native() {
			t.Errorf("the provider closed %s", got)
		}
		if again := u.ensure("a"); !again.GetCreated() || again.GetSessionId() == s {
			t.Errorf("ensured again: %v", again)
		}
	})
}

// A session that nobody uses is closed after the idle time and its owner hears why; a call under way keeps it.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cdp().On("page.wait", func(ctx context.Context, _ proto.Message) (proto.Message, error) {
			<-time.After(50 * time.Minute)
			return &browserv1.WaitResponse{}, nil
		})
		u := build(t, "", f).user("ann")
		s := u.ensure("a").GetSessionId()
		heard := listen(t, u, "session.closed")
		<-time.After(29 * time.Minute)
		do[*browserv1.OpenResponse](u, open(s, "https://example.com/"))
		do[*browserv1.WaitResponse](u, &browserv1.WaitRequest{SessionId: s, TextPresent: proto.String("x"), TimeoutMs: proto.Int32(3600000)})
		<-time.After(29 * time.Minute)
		do[*browserv1.OpenResponse](u, open(s, "https://example.com/"))
		used := time.Now()
		ev, err := heard.Next(t.Context())
		if err != nil || field(ev, "reason") != "idle" || field(ev, "session_id") != s {
			t.Errorf("heard %v, %v", ev, err)
		}
		if idle := time.Since(used); idle < 30*time.Minute || idle > 31*time.Minute {
			t.Errorf("it was closed after %v", idle)
		}
		synctest.Wait()
		u.fails(open(s, "https://example.com/"), fault.SessionNotFound, "")
		if len(f.Calls("session.close")) != 1 {
			t.Error("the provider was not told")
		}
	})
}

// The sessions of a bound connection end with it, those of a lingering one after the grace time unless another connection
// of the same principal has taken them up, those of an unbound one not at all.
func TestConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cdp()
		h := build(t, "", f)
		watcher := h.user("ann")
		heard := listen(t, watcher, "session.closed")

		bound := h.connect("ann", broker.Bound)
		s := bound.ensure("bound").GetSessionId()
		bound.Close(t.Context())
		watcher.fails(open(s, "https://example.com/"), fault.SessionNotFound, "")
		if ev := next(t, heard); field(ev, "reason") != "disconnected" {
			t.Errorf("heard %v", ev)
		}

		socket := h.connect("ann", broker.Lingering)
		left, taken, shared := socket.ensure("left").GetSessionId(), socket.ensure("taken").GetSessionId(), socket.ensure("shared").GetSessionId()
		socket.Close(t.Context())
		<-time.After(20 * time.Second)
		back := h.connect("ann", broker.Lingering)
		do[*browserv1.OpenResponse](back, open(taken, "https://example.com/"))
		do[*browserv1.OpenResponse](watcher, open(shared, "https://example.com/"))
		<-time.After(15 * time.Second)
		watcher.fails(open(left, "https://example.com/"), fault.SessionNotFound, "")
		do[*browserv1.OpenResponse](back, open(taken, "https://example.com/"))
		do[*browserv1.OpenResponse](watcher, open(shared, "https://example.com/"))
		back.Close(t.Context())
		<-time.After(time.Minute)
		watcher.fails(open(taken, "https://example.com/"), fault.SessionNotFound, "")
		do[*browserv1.OpenResponse](watcher, open(shared, "https://example.com/"))
	})
}

// At the end of the broker every session is closed, and it does not wait for a provider that does not answer longer than it
// was given.
func TestBrokerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, g := cdp(), bidi().On("session.close", stuck)
		h := build(t, "", f, g)
		u := h.user("ann")
		u.ensure("a")
		u.ensure("b", func(r *browserv1.EnsureSessionRequest) { r.BrowserPreference = proto.String("firefox") })
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		h.broker.Close(ctx)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
		if len(f.Calls("session.close")) != 1 || len(g.Calls("session.close")) != 1 {
			t.Error("a session was not closed")
		}
	})
}
