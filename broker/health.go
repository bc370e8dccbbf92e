package broker

import (
	"sync"
	"time"
)

// A provider that fails to make a session several times in a row is held back: it is tried after all others for a while,
// twice as long each time.
const (
	forgiven  = 3
	firstHold = 5 * time.Second
	lastHold  = 2 * time.Minute
)

// health knows how providers fared of late, beyond what they say of themselves.
type health struct {
	mu  sync.Mutex
	all map[string]*fare
}

type fare struct {
	failures int // sessions in a row that it did not make
	until    time.Time
	millis   float64 // a moving average of its calls
}

func newHealth() health { return health{all: map[string]*fare{}} }

// of gives how a provider fared; h.mu is held.
func (h *health) of(id string) *fare {
	f := h.all[id]
	if f == nil {
		f = &fare{}
		h.all[id] = f
	}
	return f
}

// held says that a provider is held back now.
func (h *health) held(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.all[id]
	return f != nil && time.Now().Before(f.until)
}

// latency is how long a provider's calls took of late, in milliseconds; 0 when there were none.
func (h *health) latency(id string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.all[id]; f != nil {
		return int64(f.millis + 0.5)
	}
	return 0
}

// took notes how long a call took.
func (h *health) took(id string, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, ms := h.of(id), float64(d.Microseconds())/1000
	if f.millis == 0 {
		f.millis = ms
		return
	}
	f.millis += (ms - f.millis) / 8
}

// failed notes that a provider made no session, and says whether it is held back from now on.
func (h *health) failed(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.of(id)
	f.failures++
	if f.failures < forgiven {
		return false
	}
	before := time.Now().Before(f.until)
	f.until = time.Now().Add(min(firstHold<<min(f.failures-forgiven, 10), lastHold))
	return !before
}

// well notes that a provider made a session, and says whether it was held back until then.
func (h *health) well(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.of(id)
	was := f.failures >= forgiven
	f.failures, f.until = 0, time.Time{}
	return was
}

// made learns from an attempt to make a session: who fails again and again is held back, and whoever listens is told.
func (b *Broker) made(id string, err error) {
	switch {
	case err == nil:
		if b.health.well(id) {
			b.changed(id, "ready")
		}
	case passesOn(err) && b.health.failed(id):
		b.log.Warn("provider is held back", "provider", id)
		b.changed(id, "backoff")
	}
}
