package bidi

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/plugins/lane"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// page is one tab or window of a session: a top-level browsing context. What changes is guarded by its browser's mu.
type page struct {
	s       *session
	b       *browser
	id      string
	number  int
	opener  string // the id of the page that opened it
	context string
	driver  *inpage.Page
	lane    lane.Lane
	top     *frame

	statuses map[string]int32 // HTTP statuses of main documents, by navigation
	elements map[string]string
	dialog   *browserv1.Dialog
	crashed  bool
	closed   bool
	found    bool          // it was there before the session
	blank    bool          // its history begins with an empty page that nobody asked for
	changed  chan struct{} // closed and replaced whenever something changes
	guards   map[*guarded]struct{}
	traffic  traffic
	console  console
	devtools string // the session for DevTools commands, where there is one
	keyless  bool   // the text of the call under way was inserted without keys
}

// guarded is a call under way on a page.
type guarded struct {
	cancel  context.CancelCauseFunc
	dialogs bool // a dialog interrupts it
}

// sandbox is the isolated world that the engine runs in.
const sandbox = "drover"

func newPage(s *session, info *contextInfo) *page {
	pg := &page{
		s: s, b: s.b, context: info.Context, changed: make(chan struct{}), statuses: map[string]int32{},
		elements: map[string]string{}, guards: map[*guarded]struct{}{},
	}
	pg.top = &frame{id: info.Context, url: info.URL, page: pg, ready: true, loaded: true}
	if opener := s.b.frames[info.Opener]; opener != nil && opener.page.s == s {
		pg.opener = opener.page.id
	}
	pg.driver = s.engine.NewPage(pg, pg)
	return pg
}

// waitReady waits until a new page has a document.
func (p *page) waitReady(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	// A browser that does not tell of the first document has one nevertheless.
	_ = p.until(wait, func() bool { return p.top.doc != nil || p.closed })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return p.unfitLocked(false)
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
	g := &guarded{cancel: cancel, dialogs: dialogs}
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
	inner, done, err := p.watch(ctx, true)
	if err != nil {
		release()
		return nil, nil, err
	}
	return inner, func() { done(); release() }, nil
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

// explain gives an error of the browser the protocol's words. A page that went away says why.
func (p *page) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var own *fault.Error
	if errors.As(err, &own) {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, inpage.ErrDocumentGone) {
		return fault.New(fault.NotReady, "the page went to another document meanwhile").Reason("navigated").
			Retry("same").Cause(err)
	}
	if errors.Is(err, errLinkDown) {
		<-p.b.lost // It is about to be told to the sessions; a call after this one must know.
		return errBrowserGone().Cause(err)
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if unfit := p.unfitLocked(false); unfit != nil {
		return unfit
	}
	if refused(err, "no such frame") {
		return p.notFound()
	}
	return fault.New(fault.InternalError, "the browser refused: %v", err).Cause(err)
}
