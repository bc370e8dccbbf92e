package plugins

import (
	"context"
	"sync"

	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/wire"
)

// ringSize is how many events wait for one subscriber before the oldest are dropped.
const ringSize = 1024

// EventLagged is the type of the event that tells a slow subscriber how many it missed, as {count}.
const EventLagged = "events.lagged"

// Emit sends an event to everyone who listens. The payload is any JSON-able map; it names session_id, and page_id where
// there is a page. It never waits: a subscriber that falls behind loses its oldest events and is told how many. What is
// emitted while nobody listens yet is kept, within the same bound, for the first who does.
func (s *Server) Emit(eventType string, payload map[string]any) {
	if payload == nil {
		payload = map[string]any{}
	}
	body, err := wire.ToStruct(payload)
	if err != nil {
		s.logger.Error("an event cannot be written as JSON", "event", eventType, "error", err)
		return
	}
	s.events.publish(&browserv1.Event{Type: eventType, Payload: body})
}

// hub hands events to rings, one a subscriber, and keeps a backlog while there is none.
type hub struct {
	mu      sync.Mutex
	rings   map[*ring]struct{}
	backlog *ring
}

func newHub() *hub { return &hub{rings: map[*ring]struct{}{}, backlog: newRing(ringSize)} }

func (h *hub) publish(e *browserv1.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.rings) == 0 {
		h.backlog.push(e)
		return
	}
	for r := range h.rings {
		r.push(e)
	}
}

func (h *hub) subscribe() *ring {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := newRing(ringSize)
	if len(h.rings) == 0 {
		r, h.backlog = h.backlog, r
	}
	h.rings[r] = struct{}{}
	return r
}

func (h *hub) unsubscribe(r *ring) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.rings, r)
}

// ring holds the newest events for one reader.
type ring struct {
	mu      sync.Mutex
	buf     []*browserv1.Event
	first   int
	n       int
	dropped int
	ready   chan struct{} // holds a token when there may be something to take
}

func newRing(size int) *ring {
	return &ring{buf: make([]*browserv1.Event, size), ready: make(chan struct{}, 1)}
}

func (r *ring) push(e *browserv1.Event) {
	r.mu.Lock()
	if r.n == len(r.buf) {
		r.first = (r.first + 1) % len(r.buf)
		r.n--
		r.dropped++
	}
	r.buf[(r.first+r.n)%len(r.buf)] = e
	r.n++
	r.mu.Unlock()
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// take gives the next event, or nil when there is none now. What was dropped is told before what came after it.
func (r *ring) take() *browserv1.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dropped > 0 {
		e := &browserv1.Event{Type: EventLagged, Payload: &structpb.Struct{Fields: map[string]*structpb.Value{
			"count": structpb.NewNumberValue(float64(r.dropped)),
		}}}
		r.dropped = 0
		return e
	}
	if r.n == 0 {
		return nil
	}
	e := r.buf[r.first]
	r.buf[r.first] = nil
	r.first = (r.first + 1) % len(r.buf)
	r.n--
	return e
}

// next waits for the next event; nil when ctx has ended.
func (r *ring) next(ctx context.Context) *browserv1.Event {
	for {
		if e := r.take(); e != nil {
			return e
		}
		select {
		case <-r.ready:
		case <-ctx.Done():
			return nil
		}
	}
}
