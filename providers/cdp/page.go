package cdp

import (
	"context"
	"errors"
	"time"

	"github.com/chromedp/cdproto"
	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	pagedomain "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/plugins/lane"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// page is one tab or window of a session. What changes is guarded by its browser's mu.
type page struct {
	s      *session
	b      *browser
	id     string
	opener string // the id of the page that opened it
	target target.ID
	ch     *channel
	driver *inpage.Page
	lane   lane.Lane
	ready  chan struct{} // closed when its domains are switched on and it runs

	frames    map[protocol.FrameID]*frame
	main      protocol.FrameID
	statuses  map[protocol.LoaderID]int // HTTP statuses of main documents
	elements  map[string]protocol.FrameID
	dialog    *browserv1.Dialog
	opening   int  // new pages that were asked for and are not there yet
	stirred   bool // a page that it opened has just closed
	crashed   bool
	closed    bool
	found     bool          // it was there before the session
	blank     bool          // its history begins with an empty page that nobody asked for
	changed   chan struct{} // closed and replaced whenever something changes
	guards    map[*guard]struct{}
	traffic   traffic
	console   console
	collected *collector // what cdp.events asked for
}

// guard is a call under way on a page.
type guard struct {
	cancel  context.CancelCauseFunc
	dialogs bool // a dialog interrupts it
}

// worldName is the isolated world that the engine runs in.
const worldName = "drover"

func newPage(s *session, info *target.Info) *page {
	pg := &page{
		s: s, b: s.b, target: info.TargetID, ready: make(chan struct{}), changed: make(chan struct{}),
		frames: map[protocol.FrameID]*frame{}, main: protocol.FrameID(info.TargetID),
		blank: info.URL == "about:blank" && info.OpenerID == "", statuses: map[protocol.LoaderID]int{}, elements: map[string]protocol.FrameID{}, guards: map[*guard]struct{}{},
	}
	pg.frames[pg.main] = &frame{id: pg.main, url: info.URL}
	for _, other := range s.pages {
		// A page that a click with a modifier opens names no opener.
		if other.target == info.OpenerID || info.OpenerID == "" && other.opening > 0 && s.creating == 0 {
			pg.opener = other.id
			other.opening = max(other.opening-1, 0)
			other.notifyLocked()
			break
		}
	}
	pg.driver = s.engine.NewPage(pg, pg)
	return pg
}

// setUp switches on what a target needs and lets it run. Everything goes out at once; the last answer makes a page ready.
func (p *page) setUp(ch *channel, top bool) {
	ch.post(pagedomain.Enable.Method, pagedomain.EnableParams{})
	if top && (p.found || p.s.p.remote != nil) {
		ch.send(pagedomain.GetFrameTree.Method, protocol.Empty{}, p.seed)
	}
	ch.post(pagedomain.SetLifecycleEventsEnabled.Method, pagedomain.SetLifecycleEventsEnabledParams{Enabled: true})
	ch.post("Runtime.enable", protocol.Empty{})
	ch.post(network.Enable.Method, network.EnableParams{})
	ch.post(pagedomain.AddScriptToEvaluateOnNewDocument.Method, pagedomain.AddScriptToEvaluateOnNewDocumentParams{
		Source: p.s.engine.Script(), WorldName: worldName, RunImmediately: yes(),
	})
	ch.post(target.SetAutoAttach.Method, target.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: yes(), Filter: only("iframe"),
	})
	if !top {
		ch.post("Runtime.runIfWaitingForDebugger", protocol.Empty{})
		return
	}
	ch.post("Inspector.enable", protocol.Empty{})
	if p.s.p.remote != nil {
		ch.post(emulation.SetFocusEmulationEnabled.Method, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	}
	if !p.b.attached {
		if !p.s.p.settings().headless() { // A window of the desktop would open and wait for a person.
			ch.post(pagedomain.SetInterceptFileChooserDialog.Method, pagedomain.SetInterceptFileChooserDialogParams{Enabled: true, Cancel: yes()})
		}
		ch.post(emulation.SetFocusEmulationEnabled.Method, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	}
	p.b.mu.Lock()
	size := p.s.viewport
	p.b.mu.Unlock()
	if size != nil {
		ch.post(emulation.SetDeviceMetricsOverride.Method, metrics(size))
	}
	ch.send("Runtime.runIfWaitingForDebugger", protocol.Empty{}, func(*cdproto.Message, error) { close(p.ready) })
}

// metrics is a viewport as the browser takes it; the scale of the screen stays.
func metrics(size *browserv1.Size) emulation.SetDeviceMetricsOverrideParams {
	return emulation.SetDeviceMetricsOverrideParams{Width: int64(size.GetWidth()), Height: int64(size.GetHeight())}
}

// waitReady waits until a new page can be used.
func (p *page) waitReady(ctx context.Context) error {
	select {
	case <-p.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return p.unfitLocked(false)
}

// wakeTime is how long a discarded tab gets to load again.
const wakeTime = 5 * time.Second

// wake shows a tab that was there before the session and has no document. When the browser had discarded it, to save
// memory, it loads its address again; when its renderer had crashed, it stays as it is.
func (p *page) wake(ctx context.Context) {
	p.b.mu.Lock()
	asleep := p.found && p.crashed && p.frames[p.main].moves == 0
	p.b.mu.Unlock()
	if !asleep {
		return
	}
	ctx, cancel := leaveTime(ctx, wakeTime)
	defer cancel()
	p.ch.post(pagedomain.BringToFront.Method, protocol.Empty{})
	_ = p.until(ctx, func() bool { return p.closed || !p.crashed && p.frames[p.main].loaded })
}

// notifyLocked wakes whoever waits for a change of the page.
func (p *page) notifyLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// until waits until ok, which is called with the browser's mu held, holds. It ends with the cause of ctx.
func (p *page) until(ctx context.Context, ok func() bool) error {
	for {
		p.b.mu.Lock()
		holds, changed := ok(), p.changed
		p.b.mu.Unlock()
		if holds {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// unfitLocked says why the page cannot serve a call now, or nil.
func (p *page) unfitLocked(dialogs bool) error {
	switch {
	case p.b.gone():
		return errBrowserGone()
	case p.closed:
		return p.notFound()
	case p.crashed:
		return p.errCrashed()
	case dialogs && p.dialog != nil:
		return errDialogOpen(p.dialog)
	}
	return nil
}

func (p *page) notFound() error {
	return fault.New(fault.PageNotFound, "the page %s was closed", p.id).Hint("tab.list tells those that are open")
}

func (p *page) errCrashed() error {
	return fault.New(fault.PageNotFound, "the page %s crashed", p.id).Reason("page_crashed").
		Hint("call page.reload, or tab.new for another page")
}

// watch gives a context that is cancelled, with the reason as its cause, when the page closes, crashes or loses its
// browser, and, with dialogs, when a dialog opens. It fails at once when that is so already.
func (p *page) watch(ctx context.Context, dialogs bool) (context.Context, func(), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	g := &guard{cancel: cancel, dialogs: dialogs}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if err := p.unfitLocked(dialogs); err != nil {
		cancel(nil)
		return nil, nil, err
	}
	p.guards[g] = struct{}{}
	return ctx, func() {
		p.b.mu.Lock()
		delete(p.guards, g)
		p.b.mu.Unlock()
		cancel(nil)
	}, nil
}

// interruptLocked ends every call under way on the page.
func (p *page) interruptLocked(err error) {
	for g := range p.guards {
		g.cancel(err)
	}
	p.notifyLocked()
}

// enter takes the page's lane and watches the page. leave must be called.
func (p *page) enter(ctx context.Context) (inner context.Context, leave func(), err error) {
	release, err := p.lane.Take(ctx)
	if err != nil {
		return nil, nil, p.busy(err)
	}
	p.wake(ctx)
	inner, done, err := p.watch(ctx, true)
	if err != nil {
		release()
		return nil, nil, err
	}
	p.calm(inner)
	return inner, func() { done(); release() }, nil
}

// calmGrace is how long a page gets to hear what a page that it opened told it last.
const calmGrace = 100 * time.Millisecond

// calm lets a page whose popup has just closed run the messages that the popup left, so that the next call sees them.
func (p *page) calm(ctx context.Context) {
	p.b.mu.Lock()
	stirred := p.stirred
	p.stirred = false
	p.b.mu.Unlock()
	if !stirred {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, calmGrace)
	defer cancel()
	_, _ = p.Eval(ctx, inpage.FrameID(p.main), "new Promise(r => requestIdleCallback(() => r(''), { timeout: 50 }))")
}

// busy tells why a call did not get its turn: an open dialog says more than the time that ran out.
func (p *page) busy(err error) error {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if unfit := p.unfitLocked(true); unfit != nil {
		return unfit
	}
	return err
}

// late tells, of a call that ran out of time, when a navigation or a script of the page held it up.
func (p *page) late(ctx context.Context) error {
	cause := context.Cause(ctx)
	p.b.mu.Lock()
	f := p.frames[p.main]
	moving := f != nil && f.pending != ""
	p.b.mu.Unlock()
	switch {
	case !errors.Is(cause, context.DeadlineExceeded):
		return cause
	case !moving:
		if busy := p.unresponsive(ctx); busy != nil {
			return busy.Reason("deadline_exceeded").Cause(cause)
		}
		return cause
	}
	return fault.New(fault.NotReady, "the page is going to another address that has not answered, and cannot be used meanwhile").
		Reason("deadline_exceeded").Hint("call page.open or page.reload to end that, or wait longer").Cause(cause)
}

// explain gives an error of the browser the protocol's words. A target that went away says why.
func (p *page) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var own *fault.Error
	if errors.As(err, &own) {
		return err
	}
	if ctx.Err() != nil {
		return p.late(ctx)
	}
	if errors.Is(err, inpage.ErrDocumentGone) {
		return fault.New(fault.NotReady, "the page went to another document meanwhile").Reason("navigated").
			Retry("same").Cause(err)
	}
	p.b.mu.Lock()
	unfit := p.unfitLocked(false)
	p.b.mu.Unlock()
	switch {
	case unfit != nil:
		return unfit
	case errors.Is(err, errDetached):
		return p.notFound()
	}
	if f := p.s.p.told(err, nil); f != nil {
		return f
	}
	if busy := p.unresponsive(ctx); busy != nil { // the browser gives up on such a page with many words
		return busy.Cause(err)
	}
	return fault.New(fault.InternalError, "the browser refused: %v", err).Cause(err)
}
