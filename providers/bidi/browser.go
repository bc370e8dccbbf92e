package bidi

import (
	"context"
	"sync"
	"time"

	"github.com/droverhq/drover/proto/fault"
)

// browser is one browser that is driven: started by this provider, or attached to. Several sessions may share it, each
// with a user context of its own.
type browser struct {
	p        *Provider
	conn     *conn    // nil until connect
	proc     *process // the browser, or its driver; nil when attached to
	driver   string   // the address of the driver's session; "" where there is no driver
	profile  string   // the folder of a browser that a driver started
	product  product
	caps     capabilities
	attached bool
	persist  bool // the profile belongs to one session; the browser ends with it
	lock     *profileLock

	lost  chan struct{} // closed when the connection is gone
	ended sync.Once
	wg    sync.WaitGroup

	// mu guards what follows and the state of every session, page and frame of this browser.
	mu       sync.Mutex
	sessions map[*session]struct{}
	users    map[string]*session    // by user context
	frames   map[string]*frame      // by browsing context
	realms   map[string]*frame      // the documents' own realms
	strays   map[string]contextInfo // pages of the common user context that no session has
	leaving  chan struct{}          // closed when the browser was asked to end and had its time
	focused  *page                  // the page that was brought to the front last
}

func (p *Provider) newBrowser(found product) *browser {
	b := &browser{
		p: p, product: found, lost: make(chan struct{}), sessions: map[*session]struct{}{}, users: map[string]*session{},
		frames: map[string]*frame{}, realms: map[string]*frame{}, strays: map[string]contextInfo{},
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.browsers[b] = struct{}{}
	return b
}

func (b *browser) firefox() bool { return b.product.family == familyFirefox }

// connect connects to the browser's endpoint.
func (b *browser) connect(ctx context.Context, address string) error {
	c, err := dial(ctx, address, b.onEvent)
	if err != nil {
		return err
	}
	b.conn = c
	b.wg.Go(b.watch)
	return nil
}

// subscribe has the browser send the events that this provider lives by.
func (b *browser) subscribe(ctx context.Context) error {
	events := subscribed
	if !b.firefox() {
		events = append([]string{crashEvent}, events...)
	}
	_, err := do(ctx, b.conn, sessionSubscribe, subscription{Events: events})
	return err
}

// watch waits for the end of the connection and then fails everything that depended on it.
func (b *browser) watch() {
	<-b.conn.down
	b.p.unshare(b)
	b.mu.Lock()
	sessions := b.sessions
	b.sessions = map[*session]struct{}{}
	var pages []*page
	for s := range sessions {
		pages = append(pages, s.pages...)
	}
	b.mu.Unlock()
	for s := range sessions {
		s.lose() // First, so that a call after one that ended here meets no session.
	}
	b.mu.Lock()
	close(b.lost)
	for _, pg := range pages {
		pg.interruptLocked(errBrowserGone())
	}
	b.mu.Unlock()
	b.mu.Lock()
	leaving := b.leaving
	b.mu.Unlock()
	if leaving != nil {
		<-leaving // It has a moment to write its profile.
	}
	b.reap(context.Background(), 0)
	b.p.forget(b)
}

// reap ends the process of a browser whose connection is gone and waits until nothing of it is left.
func (b *browser) reap(ctx context.Context, grace time.Duration) {
	if b.proc == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	b.proc.stop(ctx)
	cancel()
	if b.profile != "" {
		killUsers(b.profile) // The driver was killed before its browser.
	}
	b.lock.release()
}

// close ends a started browser with everything it left behind, or lets go of an attached one. It takes at most about
// two seconds more than ctx.
func (b *browser) close(ctx context.Context) {
	b.p.unshare(b)
	b.ended.Do(func() {
		if b.conn != nil && !b.gone() {
			b.bye(ctx)
		}
		if b.conn != nil {
			b.conn.close()
		} else {
			b.reap(ctx, 0)
		}
	})
	b.wg.Wait()
	b.p.forget(b)
}

// bye asks the browser to end, or to forget the session. One with a profile that is kept gets the time to write it.
func (b *browser) bye(ctx context.Context) {
	grace := 1500 * time.Millisecond
	if b.persist {
		grace = 4 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	leaving := make(chan struct{})
	defer close(leaving)
	b.mu.Lock()
	b.leaving = leaving
	b.mu.Unlock()
	switch {
	case b.attached:
		_, _ = do(ctx, b.conn, sessionEnd, nothing{})
	case b.persist:
		_, _ = do(ctx, b.conn, browserClose, nothing{})
		b.written(ctx)
	case b.driver != "":
		b.quit(ctx)
	}
}

// written waits until the browser's process has ended by itself, for it writes its profile on the way out.
func (b *browser) written(ctx context.Context) {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for b.driver == "" || len(usersOf(b.profile)) > 0 {
		select {
		case <-b.proc.done:
			return
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// gone says whether the connection is lost.
func (b *browser) gone() bool {
	select {
	case <-b.lost:
		return true
	default:
		return false
	}
}

// errBrowserGone is the answer to a call that was under way when its browser went.
func errBrowserGone() *fault.Error {
	return fault.New(fault.BrowserNotRunning, "the browser went away").Reason("provider_exited").
		Hint("call session.ensure for a new session")
}
