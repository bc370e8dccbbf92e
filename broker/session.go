package broker

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/droverhq/drover/broker/egress"
	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// session is one session of one principal on one life of a provider. Everything but the fields under mu is set before
// others see it.
type session struct {
	id     string // the broker's, which the caller knows
	native string // the provider's own
	owner  string // who.ID
	who    Principal
	client string // client_session_id
	life   Provider
	ask    *browserv1.EnsureSessionRequest // what it was made for, as the caller said it
	down   *browserv1.EnsureSessionRequest // the same, as the provider was asked
	answer *browserv1.EnsureSessionResponse
	facts  policy.Session
	seat   policy.Candidate // its provider, with the one browser that it has
	lacks  []string         // methods that the provider lacks with this browser
	made   time.Time

	proxy *egress.Proxy // by which it reaches everything, where a guard holds

	lane lane
	// ctx ends, with a fault as its cause, when the session is lost or closed; calls under way end with it.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// released is closed when the provider was told to forget the session after it was lost.
	released chan struct{}

	mu     sync.Mutex
	used   time.Time
	calls  int       // under way
	holder *Caller   // the connection that it ends with
	left   time.Time // since when the holder is gone; zero while it is there
	lost   *fault.Error
	closed bool
}

// sessions holds every session by its id, and the live one of every name.
type sessions struct {
	mu    sync.Mutex
	byID  map[string]*session
	ours  map[foreign]*session
	names map[name]*slot
}

// foreign is a session's id in the words of its provider.
type foreign struct {
	life Provider
	id   string
}

// name is what a principal calls a session.
type name struct{ owner, client string }

// slot is held by whoever ensures the session of a name, so that two who ask at once share one.
type slot struct {
	held    chan struct{} // holds one token while it is free
	waiters int           // under sessions.mu
	live    *session
	// What the last attempt that failed was asked and got; told to those who waited for it meanwhile.
	failed   *browserv1.EnsureSessionRequest
	err      error
	attempts int
}

func newSessions() sessions {
	return sessions{byID: map[string]*session{}, ours: map[foreign]*session{}, names: map[name]*slot{}}
}

// find gives the caller's session of an id. One that is lost, and one that is not the caller's, is session_not_found.
func (t *sessions) find(c *Caller, id string) (*session, error) {
	t.mu.Lock()
	s := t.byID[id]
	t.mu.Unlock()
	if s == nil || s.owner != c.Principal.ID {
		return nil, notFound(id)
	}
	if lost := s.lostError(); lost != nil {
		return nil, lost
	}
	return s, nil
}

func notFound(id string) *fault.Error {
	return fault.New(fault.SessionNotFound, "there is no session %q", id).Field("session_id").Hint("make one with session.ensure")
}

// lostError gives what a call on a lost or closed session gets; nil while it is usable.
func (s *session) lostError() *fault.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return notFound(s.id)
	case s.lost != nil:
		return fault.New(fault.SessionNotFound, "the session %q is lost: %s", s.id, s.lost.Message).Reason("session_lost").
			Field("session_id").Provider(s.life.ID()).Hint("call session.ensure again; it makes a new one")
	}
	return nil
}

func (t *sessions) add(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[s.id] = s
	t.ours[foreign{s.life, s.native}] = s
}

// native finds the session of a provider's own id; nil where there is none.
func (t *sessions) native(life Provider, id string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ours[foreign{life, id}]
}

func (t *sessions) remove(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, s.id)
	if f := (foreign{s.life, s.native}); t.ours[f] == s {
		delete(t.ours, f)
	}
	key := name{s.owner, s.client}
	if sl := t.names[key]; sl != nil && sl.live == s {
		sl.live = nil
		if sl.waiters == 0 {
			delete(t.names, key)
		}
	}
}

// all gives the sessions that a test accepts, in the order they were made.
func (t *sessions) all(want func(*session) bool) []*session {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*session
	for _, s := range t.byID {
		if want(s) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *session) int {
		if c := a.made.Compare(b.made); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
	return out
}

// live gives the session of a held slot.
func (t *sessions) live(sl *slot) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return sl.live
}

// settle notes what came of an attempt on a held slot: a session, or what was asked and why there is none. A caller that
// gave up says nothing of what others would get.
func (t *sessions) settle(sl *slot, s *session, ask *browserv1.EnsureSessionRequest, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sl.attempts++
	sl.failed, sl.err = ask, err
	if s != nil {
		sl.live = s
	}
}

// hold waits until the caller may ensure the session of a name, and tells how many attempts there were before it waited.
func (t *sessions) hold(ctx context.Context, key name) (*slot, int, error) {
	t.mu.Lock()
	sl := t.names[key]
	if sl == nil {
		sl = &slot{held: make(chan struct{}, 1)}
		sl.held <- struct{}{}
		t.names[key] = sl
	}
	sl.waiters++
	before := sl.attempts
	t.mu.Unlock()
	select {
	case <-sl.held:
		return sl, before, nil
	case <-ctx.Done():
		t.forget(key, sl)
		return nil, 0, context.Cause(ctx)
	}
}

func (t *sessions) release(key name, sl *slot) {
	sl.held <- struct{}{}
	t.forget(key, sl)
}

func (t *sessions) forget(key name, sl *slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sl.waiters--
	if sl.waiters == 0 && sl.live == nil && t.names[key] == sl {
		delete(t.names, key)
	}
}

// enter counts a call and marks the session as used by this connection; the function ends the call.
func (s *session) enter(c *Caller) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.used = time.Now()
	if c.binding != Unbound || !s.left.IsZero() {
		s.take(c)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls--
		s.used = time.Now()
	}
}

// take makes the session end with this connection, or with none; s.mu is held.
func (s *session) take(c *Caller) {
	s.holder, s.left = nil, time.Time{}
	if c.binding != Unbound {
		s.holder = c
	}
}

// bind gives a context that ends with the session too, with the session's cause.
func (s *session) bind(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// describe gives the session as session.list shows it.
func (s *session) describe() *browserv1.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := browserv1.SessionState_SESSION_STATE_READY
	if s.lost != nil {
		state = browserv1.SessionState_SESSION_STATE_LOST
	}
	return &browserv1.Session{
		SessionId: s.id, ClientSessionId: s.client, ProviderId: s.life.ID(), BrowserFamily: s.answer.GetBrowserFamily(),
		State: state, CreatedAt: timestamppb.New(s.made), LastUsedAt: timestamppb.New(s.used),
	}
}

func newSessionID() string { return "s_" + strings.ToLower(rand.Text()) }

// profileName is what a provider knows a persistent session by: it stays the same from one session of a name to the
// next, differs from one principal to the next, and is safe as a file name.
func profileName(key name) string {
	sum := sha256.Sum256([]byte(key.owner + "\x00" + key.client))
	return "p_" + hex.EncodeToString(sum[:16])
}
