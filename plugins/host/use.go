package host

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// use knows whether an instance is needed: by calls in flight, by sessions that were ensured and not closed, and by holds.
type use struct {
	mu       sync.Mutex
	calls    int
	holds    int
	sessions map[string]struct{}
	last     time.Time     // when it was last needed
	quiet    chan struct{} // closed when nothing needs it any more; nil while nobody waits
}

func newUse() *use { return &use{sessions: map[string]struct{}{}, last: time.Now()} }

// enter counts a call in flight until the function that it gives is called.
func (u *use) enter() func() {
	u.change(func() { u.calls++ })
	return func() { u.change(func() { u.calls-- }) }
}

// done notes what a call did to the sessions.
func (u *use) done(req, resp proto.Message) {
	switch r := resp.(type) {
	case *browserv1.EnsureSessionResponse:
		u.change(func() { u.sessions[r.GetSessionId()] = struct{}{} })
	case *browserv1.CloseSessionResponse:
		if c, ok := req.(*browserv1.CloseSessionRequest); ok {
			u.change(func() { delete(u.sessions, c.GetSessionId()) })
		}
	}
}

// failed notes that a session is gone that could not be closed for want of it.
func (u *use) failed(req proto.Message, err error) {
	if c, ok := req.(*browserv1.CloseSessionRequest); ok && fault.CodeOf(err) == fault.SessionNotFound {
		u.change(func() { delete(u.sessions, c.GetSessionId()) })
	}
}

func (u *use) change(f func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f()
	u.last = time.Now()
	if u.needed() || u.quiet == nil {
		return
	}
	close(u.quiet)
	u.quiet = nil
}

func (u *use) needed() bool { return u.calls > 0 || u.holds > 0 || len(u.sessions) > 0 }

// idle gives how long nothing has needed the instance; 0 while something does.
func (u *use) idle() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.needed() {
		return 0
	}
	return max(time.Since(u.last), 1)
}

// touch starts the idle time anew.
func (u *use) touch() { u.change(func() {}) }

// wait waits until nothing needs the instance.
func (u *use) wait(ctx context.Context) error {
	for {
		u.mu.Lock()
		if !u.needed() {
			u.mu.Unlock()
			return nil
		}
		if u.quiet == nil {
			u.quiet = make(chan struct{})
		}
		quiet := u.quiet
		u.mu.Unlock()
		select {
		case <-quiet:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Hold keeps a supervisor from stopping the instance for being idle, until the function that it gives is called.
func (i *Instance) Hold() (release func()) {
	i.use.change(func() { i.use.holds++ })
	var once sync.Once
	return func() { once.Do(func() { i.use.change(func() { i.use.holds-- }) }) }
}

// Sessions is how many sessions were ensured through this instance and not closed.
func (i *Instance) Sessions() int {
	i.use.mu.Lock()
	defer i.use.mu.Unlock()
	return len(i.use.sessions)
}
