package cdp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/chromedp/cdproto"
	browserdomain "github.com/chromedp/cdproto/browser"
	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/droverhq/drover/proto/fault"
)

// browser is one browser that is driven: started by this provider, or attached to. Several sessions may share it, each
// with a browser context of its own.
type browser struct {
	p        *Provider
	core     *chromedp.Browser // commands to the browser itself
	link     *link
	proc     *process // nil when attached to
	product  product
	attached bool
	persist  bool // the profile belongs to one session; the browser ends with it
	lock     *profileLock

	cancel context.CancelFunc // ends core
	lost   chan struct{}      // closed when the connection is gone
	wg     sync.WaitGroup

	// mu guards what follows and the state of every session, page and frame of this browser.
	mu       sync.Mutex
	sessions map[*session]struct{}
	contexts map[protocol.BrowserContextID]*session
	pages    map[target.SessionID]*page
	adopting map[target.ID]*session // targets of the default context that a session is attaching to
	spawning []*session             // sessions that wait for a new target in the default context
}

// only is the filter for targets of one kind; workers, tabs and the browser itself are left alone.
func only(kind string) target.Filter {
	return target.Filter{{Type: kind}}
}

func yes() *bool { v := true; return &v }

// connect makes a browser over a connection. Commands may be sent at once; they wait in the pipe until it is up.
func (p *Provider) connect(conn chromedp.Transport, found product, proc *process, lock *profileLock) (*browser, error) {
	b := &browser{
		p: p, proc: proc, product: found, lock: lock, attached: proc == nil, persist: lock != nil, lost: make(chan struct{}),
		sessions: map[*session]struct{}{}, contexts: map[protocol.BrowserContextID]*session{},
		pages: map[target.SessionID]*page{}, adopting: map[target.ID]*session{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	b.link = newLink(conn, b.onEvent)
	quiet := func(string, ...any) {}
	core, err := chromedp.NewBrowserTransport(ctx, b.link, chromedp.WithBrowserLogf(quiet), chromedp.WithBrowserErrorf(quiet))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("connecting to the browser: %w", err)
	}
	b.core = core
	b.wg.Go(b.watch)
	p.ending.Go(b.wg.Wait)
	return b, nil
}

// watch waits for the end of the connection and then fails everything that depended on it.
func (b *browser) watch() {
	<-b.core.LostConnection
	b.mu.Lock()
	sessions := b.sessions
	b.sessions = map[*session]struct{}{}
	var pages []*page
	for _, pg := range b.pages {
		pages = append(pages, pg)
	}
	for _, pg := range pages {
		pg.interruptLocked(errBrowserGone())
	}
	close(b.lost)
	b.mu.Unlock()
	b.cancel()
	for s := range sessions {
		s.lose()
	}
	b.p.forget(b)
	if b.proc != nil {
		grace, cancel := context.WithTimeout(context.Background(), exitGrace)
		defer cancel()
		b.proc.stop(grace)
	}
	b.lock.release()
}

// exitGrace is how long a browser gets to end by itself, once its pipe is closed, before it is killed.
const exitGrace = 1500 * time.Millisecond

// close ends a started browser with everything it left behind, or lets go of an attached one. It takes at most about
// two seconds more than ctx.
func (b *browser) close(ctx context.Context) {
	b.p.forget(b)
	// For a browser on a pipe the end of the pipe means to close; watch sees to it that it does.
	_ = b.link.Close()
	if b.proc != nil {
		b.proc.stop(ctx)
	}
	b.cancel()
	b.wg.Wait()
}

// onEvent sees every browser-level event in order, on the reader's goroutine.
func (b *browser) onEvent(m *cdproto.Message) {
	switch string(m.Method) {
	case target.AttachedToTarget.Method:
		if e, ok := decode[target.EventAttachedToTarget](m); ok {
			b.onAttached(e)
		}
	case target.DetachedFromTarget.Method:
		if e, ok := decode[target.EventDetachedFromTarget](m); ok {
			b.onDetached(e.SessionID)
		}
	case browserdomain.DownloadWillBegin.Method:
		if e, ok := decode[browserdomain.EventDownloadWillBegin](m); ok {
			b.onDownload(e)
		}
	case browserdomain.DownloadProgress.Method:
		if e, ok := decode[browserdomain.EventDownloadProgress](m); ok {
			b.onProgress(e)
		}
	}
}

// onAttached gives a new page to the session that it belongs to; a target of nobody's is let go.
func (b *browser) onAttached(e *target.EventAttachedToTarget) {
	info := e.TargetInfo
	b.mu.Lock()
	_, found := b.adopting[info.TargetID]
	s := b.ownerLocked(info)
	if info.Type != "page" || s == nil || s.closed {
		b.mu.Unlock()
		ch := b.link.open(e.SessionID, func(*channel, *cdproto.Message) {})
		ch.post("Runtime.runIfWaitingForDebugger", protocol.Empty{})
		b.detach(e.SessionID)
		return
	}
	pg := newPage(s, info)
	pg.found = found
	pg.blank = pg.blank && !found
	b.pages[e.SessionID] = pg
	s.addLocked(pg)
	pg.ch = b.link.open(e.SessionID, pg.onEvent)
	b.mu.Unlock()
	pg.setUp(pg.ch, true)
	s.emit("page.opened", pg, map[string]any{"url": info.URL})
}

// ownerLocked finds the session of a target: by its browser context, by the session that is adopting or making it in
// the default context, or by the page that opened it.
func (b *browser) ownerLocked(info *target.Info) *session {
	if s := b.contexts[info.BrowserContextID]; s != nil {
		return s
	}
	if s := b.adopting[info.TargetID]; s != nil {
		delete(b.adopting, info.TargetID)
		return s
	}
	if info.OpenerID != "" {
		for _, pg := range b.pages {
			if pg.target == info.OpenerID {
				return pg.s
			}
		}
		return nil
	}
	if len(b.spawning) > 0 {
		s := b.spawning[0]
		b.spawning = b.spawning[1:]
		return s
	}
	return nil
}

func (b *browser) onDetached(id target.SessionID) {
	b.link.drop(id)
	b.mu.Lock()
	pg := b.pages[id]
	delete(b.pages, id)
	if pg != nil {
		pg.s.removeLocked(pg)
		pg.interruptLocked(pg.notFound())
	}
	b.mu.Unlock()
	if pg != nil {
		pg.s.emit("page.closed", pg, nil)
	}
}

// detach lets go of a target without waiting.
func (b *browser) detach(id target.SessionID) {
	b.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, _ = protocol.Call(ctx, b.core, target.DetachFromTarget, target.DetachFromTargetParams{SessionID: id})
		b.link.drop(id)
	})
}

// gone says whether the connection is lost.
func (b *browser) gone() bool {
	select {
	case <-b.link.down:
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

// ask sends a command to the browser itself. A lost connection is browser_not_running.
func ask[P, R any](ctx context.Context, b *browser, cmd protocol.Command[P, R], params P) (R, error) {
	res, err := protocol.Call(ctx, b.core, cmd, params)
	if err != nil && b.gone() {
		return res, errBrowserGone().Cause(err)
	}
	return res, err
}
