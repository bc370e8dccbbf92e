package broker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// eventRetry is how long the broker waits before it opens the event stream of a provider again.
const eventRetry = time.Second

// lives are the provider lives that the broker watches.
type lives struct {
	mu    sync.Mutex
	known map[Provider]struct{}
}

// adopt watches a life from its first call on: its events go to the hub, and its end loses its sessions.
func (b *Broker) adopt(p Provider) {
	b.lives.mu.Lock()
	defer b.lives.mu.Unlock()
	if _, ok := b.lives.known[p]; ok {
		return
	}
	b.lives.known[p] = struct{}{}
	ctx, cancel := context.WithCancel(b.ctx)
	b.work.run(func() { b.listen(ctx, p) })
	b.work.run(func() {
		defer cancel()
		select {
		case <-p.Done():
		case <-ctx.Done():
			return
		}
		b.lives.mu.Lock()
		delete(b.lives.known, p)
		b.lives.mu.Unlock()
		for _, s := range b.sessions.all(func(s *session) bool { return s.life == p }) {
			b.lose(s, exited(p))
		}
	})
}

func exited(p Provider) *fault.Error {
	return fault.New(fault.BrowserNotRunning, "the process of the provider %s is gone", p.ID()).Reason("provider_exited").Provider(p.ID())
}

// whileAlive gives a context that ends with the life too.
func whileAlive(ctx context.Context, p Provider) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-p.Done():
			cancel(exited(p))
		case <-over:
		}
	})
	return ctx, func() {
		close(over)
		wg.Wait()
		cancel(nil)
	}
}

// listen carries a life's events to the hub until the life ends. A stream that breaks is opened again.
func (b *Broker) listen(ctx context.Context, p Provider) {
	for {
		for ev, err := range p.Events(ctx) {
			if fault.CodeOf(err) == fault.UnsupportedMethod {
				return
			}
			if err != nil {
				break
			}
			b.hear(p, ev)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.Done():
			return
		case <-time.After(eventRetry):
		}
	}
}

// hear passes a provider's event on to whom it concerns, with the broker's ids. What the protocol does not know, and what
// is about nobody's session, goes nowhere.
func (b *Broker) hear(p Provider, ev *browserv1.Event) {
	if !eventTypes[ev.GetType()] || ev.GetPayload() == nil {
		return
	}
	if ev.GetType() == eventProgress {
		b.progress(ev)
		return
	}
	native := ev.GetPayload().GetFields()["session_id"].GetStringValue()
	s := b.sessions.native(p, native)
	if s == nil {
		return
	}
	switch ev.GetType() {
	case eventLost:
		why := ev.GetPayload().GetFields()["message"].GetStringValue()
		if why == "" {
			why = "its browser is gone"
		}
		b.lose(s, fault.New(fault.BrowserNotRunning, "%s", why).Reason("provider_exited"))
		return
	case eventCustom:
		c := &call{who: &Caller{Principal: s.who}, method: commandMethod}
		if b.allow(c, s, nil, ev.GetPayload().GetFields()["name"].GetStringValue()) != nil {
			return
		}
	case "page.closed":
		s.lane.forget(ev.GetPayload().GetFields()["page_id"].GetStringValue())
	}
	b.meter.heard(ev.GetType(), ev.GetPayload())
	out := proto.CloneOf(ev)
	out.GetPayload().GetFields()["session_id"] = structpb.NewStringValue(s.id)
	b.hub.publish(audience{owner: s.owner, session: s.id}, out)
}

// progress passes the report of a call on to the connection that made it, under its own id.
func (b *Broker) progress(ev *browserv1.Event) {
	b.calls.mu.Lock()
	c := b.calls.byID[ev.GetPayload().GetFields()["id"].GetStringValue()]
	b.calls.mu.Unlock()
	if c == nil {
		return
	}
	out := proto.CloneOf(ev)
	out.GetPayload().GetFields()["id"] = c.theirs
	delete(out.GetPayload().GetFields(), "session_id")
	b.hub.publish(audience{caller: c.who}, out)
}

// lose marks a session as lost, once: calls under way end at once with the reason, and later ones are told so. Its provider
// is told to forget it.
func (b *Broker) lose(s *session, why *fault.Error) {
	s.mu.Lock()
	if s.lost != nil || s.closed {
		s.mu.Unlock()
		return
	}
	s.lost = why
	s.used = time.Now()
	s.mu.Unlock()
	s.cancel(why)
	b.release(s)
	b.log.Warn("session lost", "provider", s.life.ID(), "reason", why.ReasonWord())
	b.hub.publish(audience{owner: s.owner, session: s.id}, event(eventLost, map[string]any{
		"session_id": s.id, "client_session_id": s.client, "provider_id": s.life.ID(), "reason": why.ReasonWord(), "message": why.Message,
	}))
}

// sessionFault is what the caller gets for an error of a session's provider: the session's own end where that came first,
// and a session that is lost where the provider no longer has it.
func (b *Broker) sessionFault(ctx context.Context, s *session, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("call %s: %w", s.life.ID(), context.Cause(ctx))
	}
	select {
	case <-s.life.Done():
		b.lose(s, exited(s.life))
		return exited(s.life)
	default:
	}
	e := fault.From(err)
	switch e.Code {
	case fault.SessionNotFound:
		b.lose(s, fault.New(fault.BrowserNotRunning, "the provider no longer has it").Reason("provider_exited"))
		if lost := s.lostError(); lost != nil {
			return lost.Cause(err)
		}
	case fault.BrowserNotRunning:
		reason := e.ReasonWord()
		if reason == "" {
			reason = "provider_exited"
		}
		e = e.Clone().Reason(reason)
		b.lose(s, e)
	default:
	}
	if strings.Contains(e.Message, s.native) {
		e = e.Clone()
		e.Message = strings.ReplaceAll(e.Message, s.native, s.id)
	}
	return e
}
