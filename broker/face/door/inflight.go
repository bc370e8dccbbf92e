package door

import "sync"

// Inflight counts what is under way, for those who wait until nothing is. The zero value is ready for use.
type Inflight struct {
	mu   sync.Mutex
	n    int
	idle []chan struct{}
}

// Enter counts one more until leave is called, which has to happen once.
func (f *Inflight) Enter() (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.n--; f.n > 0 {
			return
		}
		for _, done := range f.idle {
			close(done)
		}
		f.idle = nil
	}
}

// Idle gives a channel that is closed when nothing is under way, which may be now.
func (f *Inflight) Idle() <-chan struct{} {
	done := make(chan struct{})
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n == 0 {
		close(done)
	} else {
		f.idle = append(f.idle, done)
	}
	return done
}
