package broker

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// closeWait bounds how long a provider may take to end a session that nobody waits for.
const closeWait = 10 * time.Second

// close ends a session for its caller. A lost one is only forgotten.
func (b *Broker) close(ctx context.Context, c *call, r *browserv1.CloseSessionRequest) (proto.Message, error) {
	b.sessions.mu.Lock()
	s := b.sessions.byID[r.GetSessionId()]
	b.sessions.mu.Unlock()
	if s == nil || (s.owner != c.who.Principal.ID && !b.admin(c.who)) {
		return nil, notFound(r.GetSessionId())
	}
	c.provider = s.life.ID()
	if err := b.allow(c, s, nil, ""); err != nil {
		return nil, err
	}
	placed(ctx)
	c.sent = true
	return b.end(context.WithoutCancel(ctx), s, "closed") // the caller may go; the session ends all the same
}

// end closes a session: it is gone for callers before its provider is asked, and calls under way end with session_not_found.
// What a provider says to it comes back, but for a session that it does not have any more: that is closed.
func (b *Broker) end(ctx context.Context, s *session, reason string) (*browserv1.CloseSessionResponse, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, notFound(s.id)
	}
	s.closed = true
	lost := s.lost != nil
	s.mu.Unlock()
	b.sessions.remove(s)
	defer s.leave()
	s.cancel(fault.New(fault.SessionNotFound, "the session %q was closed", s.id).Field("session_id"))
	done := &browserv1.CloseSessionResponse{Closed: true, Disposition: browserv1.Disposition_DISPOSITION_CLOSED}
	if lost {
		return done, nil
	}
	b.hub.publish(audience{owner: s.owner, session: s.id}, event(eventClosed, map[string]any{
		"session_id": s.id, "client_session_id": s.client, "provider_id": s.life.ID(), "reason": reason,
	}))
	ctx, cancel := context.WithTimeout(ctx, closeWait)
	defer cancel()
	resp, err := b.pass(ctx, s.life, closeMethod, &browserv1.CloseSessionRequest{SessionId: s.native})
	switch fault.CodeOf(err) {
	case 0:
	case fault.SessionNotFound, fault.BrowserNotRunning:
		return done, nil // gone is what was asked for
	default:
		b.log.Warn("provider did not close a session", "provider", s.life.ID(), "code", fault.Word(fault.CodeOf(err)))
		return nil, err
	}
	if r, ok := resp.(*browserv1.CloseSessionResponse); ok {
		return r, nil
	}
	return done, nil
}

// release has a provider forget a session that is lost, in the background; s.released is closed then.
func (b *Broker) release(s *session) {
	b.work.run(func() {
		defer close(s.released)
		b.discard(b.ctx, s.life, s.native)
	})
}

// discard has a provider end a session that no caller knows of.
func (b *Broker) discard(ctx context.Context, p Provider, native string) {
	select {
	case <-p.Done():
		return
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, closeWait)
	defer cancel()
	_, err := p.Call(ctx, closeMethod, &browserv1.CloseSessionRequest{SessionId: native})
	switch fault.CodeOf(err) {
	case 0, fault.SessionNotFound, fault.BrowserNotRunning:
	default:
		b.log.Warn("provider did not close a session", "provider", p.ID(), "code", fault.Word(fault.CodeOf(err)))
	}
}

// closeAll closes sessions side by side, and returns when they are closed or ctx ends.
func (b *Broker) closeAll(ctx context.Context, all []*session, reason string) {
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() {
			_, _ = b.end(ctx, s, reason) // logged where it fails
		})
	}
	done := make(chan struct{})
	b.work.run(func() {
		wg.Wait()
		close(done)
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// disconnect does what a connection's binding says to the sessions that it held last.
func (b *Broker) disconnect(ctx context.Context, c *Caller) {
	var mine []*session
	for _, s := range b.sessions.all(func(s *session) bool { return s.owner == c.Principal.ID }) {
		s.mu.Lock()
		if s.holder == c {
			s.left = time.Now()
			mine = append(mine, s)
		}
		s.mu.Unlock()
	}
	if c.binding == Bound {
		b.closeAll(ctx, mine, "disconnected")
	}
}

// reap closes, from time to time, sessions that nobody uses: idle ones, and those whose connection has been gone for the
// grace time. Lost ones are forgotten after the idle time.
func (b *Broker) reap() {
	for {
		keep := b.policy.Load().Config().Sessions
		timer := time.NewTimer(min(max(min(keep.Idle, keep.Grace)/10, 10*time.Millisecond), 15*time.Second))
		select {
		case <-timer.C:
		case <-b.ctx.Done():
			timer.Stop()
			return
		}
		now := time.Now()
		for _, s := range b.sessions.all(func(*session) bool { return true }) {
			s.mu.Lock()
			idle := s.calls == 0 && now.Sub(s.used) >= keep.Idle
			left := s.calls == 0 && !s.left.IsZero() && now.Sub(s.left) >= keep.Grace
			s.mu.Unlock()
			switch {
			case idle:
				b.retire(s, "idle")
			case left:
				b.retire(s, "disconnected")
			}
		}
	}
}

func (b *Broker) retire(s *session, reason string) {
	b.work.run(func() {
		_, _ = b.end(b.ctx, s, reason) // logged where it fails
	})
}

// list gives the caller's own sessions, or those of everybody to a client with the label admin.
func (b *Broker) list(c *call, r *browserv1.ListSessionsRequest) (proto.Message, error) {
	if r.GetAll() {
		if err := b.adminOnly(c, "sees the sessions of others"); err != nil {
			return nil, err.Field("all")
		}
	}
	resp := &browserv1.ListSessionsResponse{}
	for _, s := range b.sessions.all(func(s *session) bool { return r.GetAll() || s.owner == c.who.Principal.ID }) {
		d := s.describe()
		if r.GetAll() {
			d.Client = proto.String(s.who.Name)
		}
		resp.Sessions = append(resp.Sessions, d)
	}
	return resp, nil
}
