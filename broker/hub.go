package broker

import (
	"context"
	"maps"
	"slices"
	"sync"

	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// ringSize is how many events wait for a subscriber before the oldest is dropped.
const ringSize = 512

// Events that the broker makes itself; the protocol's section "Events" has them all.
const (
	eventLagged   = "events.lagged"
	eventLost     = "session.lost"
	eventClosed   = "session.closed"
	eventState    = "provider.state_changed"
	eventCustom   = "custom.event"
	eventProgress = "call.progress"
)

// eventTypes are the protocol's events; true for those that a provider may send.
var eventTypes = map[string]bool{
	"page.navigated": true, "page.opened": true, "page.closed": true, "page.crashed": true,
	"dialog.opened": true, "dialog.closed": true, "download.started": true, "download.finished": true,
	"console.message": true, eventCustom: true, eventProgress: true, eventLost: true,
	eventClosed: false, eventState: false, eventLagged: false,
}

// EventTypes lists the types that can be subscribed to.
func EventTypes() []string { return slices.Sorted(maps.Keys(eventTypes)) }

// hub carries events to subscribers. It never waits for one.
type hub struct {
	mu   sync.Mutex
	subs map[*Subscription]struct{}
}

// Subscription is a bounded queue of events for one connection. One goroutine reads it.
type Subscription struct {
	hub      *hub
	caller   *Caller
	types    map[string]bool // nil for all
	sessions map[string]bool // nil for all of the caller's

	mu     sync.Mutex
	queue  []*browserv1.Event
	lagged int
	closed bool
	more   chan struct{} // holds one token when there is something to read
}

// Subscribe starts a subscription to events of these types (all when empty) in these sessions (all of the caller's when
// empty). An unknown type is invalid_request, a session that is not the caller's session_not_found.
func (c *Caller) Subscribe(types, sessions []string) (*Subscription, error) {
	s := &Subscription{hub: &c.broker.hub, caller: c, more: make(chan struct{}, 1)}
	for i, t := range types {
		if _, ok := eventTypes[t]; !ok {
			err := fault.New(fault.InvalidRequest, "types[%d]: there is no event %q", i, t).Field("types")
			if n := wire.Nearest(t, slices.Sorted(maps.Keys(eventTypes))); n != "" {
				err.Hint("did you mean %q?", n).With("nearest", n)
			}
			return nil, err
		}
		if s.types == nil {
			s.types = map[string]bool{}
		}
		s.types[t] = true
	}
	for _, id := range sessions {
		if _, err := c.broker.sessions.find(c, id); err != nil {
			return nil, err
		}
		if s.sessions == nil {
			s.sessions = map[string]bool{}
		}
		s.sessions[id] = true
	}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.subs[s] = struct{}{}
	return s, nil
}

// Next waits for the next event. When events were dropped, events.lagged comes first and says how many. After Close, and
// when ctx ends, it returns an error.
func (s *Subscription) Next(ctx context.Context) (*browserv1.Event, error) {
	for {
		if ev, err := s.take(); ev != nil || err != nil {
			return ev, err
		}
		select {
		case <-s.more:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *Subscription) take() (*browserv1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, fault.New(fault.NotReady, "the subscription is closed").Reason("cancelled")
	case s.lagged > 0:
		ev := event(eventLagged, map[string]any{"count": s.lagged})
		s.lagged = 0
		return ev, nil
	case len(s.queue) > 0:
		ev := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		return ev, nil
	}
	return nil, nil
}

// Close ends the subscription; a waiting Next returns.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	delete(s.hub.subs, s)
	s.hub.mu.Unlock()
	s.mu.Lock()
	s.closed, s.queue = true, nil
	s.mu.Unlock()
	s.signal()
}

func (s *Subscription) signal() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *Subscription) put(ev *browserv1.Event) {
	s.mu.Lock()
	if len(s.queue) >= ringSize {
		s.queue[0] = nil
		s.queue = s.queue[1:]
		s.lagged++
	}
	s.queue = append(s.queue, ev)
	s.mu.Unlock()
	s.signal()
}

// audience is who hears an event; its zero value is everybody.
type audience struct {
	owner   string  // this principal
	session string  // those who listen to this session
	caller  *Caller // this connection
}

func (h *hub) publish(to audience, ev *browserv1.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		switch {
		case s.types != nil && !s.types[ev.GetType()],
			to.owner != "" && s.caller.Principal.ID != to.owner,
			to.caller != nil && s.caller != to.caller,
			to.session != "" && s.sessions != nil && !s.sessions[to.session]:
			continue
		}
		s.put(ev)
	}
}

// event makes an event; what a payload cannot hold is left out, for an event is never worth a failure.
func event(kind string, payload map[string]any) *browserv1.Event {
	s, err := wire.ToStruct(payload)
	if err != nil {
		s = &structpb.Struct{}
	}
	return &browserv1.Event{Type: kind, Payload: s}
}
