package firefox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/plugins/lane"
	"github.com/droverhq/drover/proto/fault"
)

// page is one tab of a session. What changes is guarded by its browser's mu.
type page struct {
	s      *session
	b      *browser
	id     string
	number int
	tab    int64
	opener string // the id of the page that opened it
	found  bool   // the person shared it
	driver *inpage.Page
	lane   lane.Lane

	url, title    string
	document      string    // Firefox's id of the top document
	pending       bool      // a navigation is under way
	idle          time.Time // when the tab stopped loading, where no document has told so
	ready, loaded bool
	broken        string // why the last navigation failed
	breaking      bool   // Firefox's page about that is still to come
	loads, moves  int
	fails         int
	next          int32 // the HTTP status of the answer to the navigation that is under way
	frames        map[int64]bool
	docs          map[int64]string // the documents that the engine last ran in, by frame

	closed  bool
	changed chan struct{} // closed and replaced whenever something changes
	guards  map[*guarded]struct{}
	traffic traffic
}

// guarded is a call under way on a page.
type guarded struct{ cancel context.CancelCauseFunc }

func newPage(s *session, tab int64) *page {
	pg := &page{
		s: s, b: s.b, tab: tab, url: "about:blank", changed: make(chan struct{}), guards: map[*guarded]struct{}{},
		frames: map[int64]bool{}, docs: map[int64]string{},
	}
	pg.driver = s.engine.NewPage(pg, pg)
	return pg
}

// notifyLocked wakes whoever waits for a change of the page.
func (p *page) notifyLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// untilTick is how often what depends on the time is asked again.
const untilTick = 100 * time.Millisecond

// until waits until ok, which is called with the browser's mu held, holds. It ends with the cause of ctx.
func (p *page) until(ctx context.Context, ok func() bool) error {
	tick := time.NewTicker(untilTick)
	defer tick.Stop()
	for {
		p.b.mu.Lock()
		holds, changed := ok(), p.changed
		p.b.mu.Unlock()
		if holds {
			return nil
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *page) notFound() *fault.Error {
	return fault.New(fault.PageNotFound, "the page %s was closed", p.id).Hint("tab.list tells those that are open")
}

// unfitLocked says why the page cannot serve a call now, or nil.
func (p *page) unfitLocked() error {
	switch {
	case p.b.gone():
		return errBrowserGone()
	case p.closed:
		return p.notFound()
	}
	return nil
}

// watch gives a context that is cancelled, with the reason as its cause, when the page closes or loses its browser. It fails
// at once when that is so already.
func (p *page) watch(ctx context.Context) (context.Context, func(), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	g := &guarded{cancel: cancel}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if err := p.unfitLocked(); err != nil {
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
		return nil, nil, p.explain(ctx, err)
	}
	inner, done, err := p.watch(ctx)
	if err != nil {
		release()
		return nil, nil, err
	}
	return inner, func() { done(); release() }, nil
}

// request asks the add-on something about this page's tab.
func (p *page) request(ctx context.Context, method string, params map[string]any, result any) error {
	if params == nil {
		params = map[string]any{}
	}
	params["tab"] = p.tab
	return p.b.request(ctx, p.s, method, params, result)
}

// explain gives an error the protocol's words. A page that went away says why; one that does not answer may show a dialog,
// of which an add-on hears nothing.
func (p *page) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	p.b.mu.Lock()
	unfit := p.unfitLocked()
	p.b.mu.Unlock()
	var own *fault.Error
	switch {
	case errors.As(err, &own):
		return err
	case unfit != nil && !errors.Is(err, errLinkDown):
		return unfit
	case errors.Is(err, inpage.ErrDocumentGone):
		return fault.New(fault.NotReady, "the page went to another document meanwhile").Reason("navigated").Retry("same").Cause(err)
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return fault.New(fault.NotReady, "the page did not answer in time").Reason("deadline_exceeded").
			Hint("it may show a dialog, which no add-on can see: answer it in the window, or open another address").Cause(err)
	}
	return p.s.refused(ctx, err)
}

// pageState is what a document says of itself.
type pageState struct {
	URL    string  `json:"url"`
	Title  string  `json:"title"`
	Ready  string  `json:"ready"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Status int32   `json:"status"` // the HTTP status that the document came with

	PageWidth  float64 `json:"page_width"`
	PageHeight float64 `json:"page_height"`
}

// state asks the top document.
func (p *page) state(ctx context.Context) (pageState, error) {
	var out struct {
		Value pageState `json:"value"`
	}
	err := p.request(ctx, "doc.state", map[string]any{"frame": 0}, &out)
	return out.Value, err
}

// resize gives the page the session's viewport, through the size of its window. A screen that is too small for it keeps the
// window smaller.
func (p *page) resize(ctx context.Context) error {
	p.b.mu.Lock()
	size := p.s.viewport
	p.b.mu.Unlock()
	if size == nil {
		return nil
	}
	st, err := p.state(ctx)
	if refused(err, "privileged", "document_gone") {
		return nil // There is nothing to measure; the next address has.
	}
	if err != nil {
		return p.explain(ctx, err)
	}
	dx, dy := int(float64(size.GetWidth())-st.Width), int(float64(size.GetHeight())-st.Height)
	if dx == 0 && dy == 0 {
		return nil
	}
	if err := p.request(ctx, "tab.resize", map[string]any{"dx": dx, "dy": dy}, nil); err != nil {
		return p.explain(ctx, err)
	}
	wait, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for {
		st, err := p.state(wait)
		if err != nil || int(st.Width) == int(size.GetWidth()) && int(st.Height) == int(size.GetHeight()) {
			return nil //nolint:nilerr // the window is as large as it could be made; viewport is a wish
		}
		timer := time.NewTimer(30 * time.Millisecond)
		select {
		case <-timer.C:
		case <-wait.Done():
			timer.Stop()
			return nil
		}
	}
}

// framed says whether the page shows frames.
func (p *page) framed() bool {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return len(p.frames) > 0
}

// opened lists the pages that this page opened after it had n of them.
func (p *page) openedLocked(after int) []string {
	var out []string
	for _, other := range p.s.pages {
		if other.opener == p.id && other.number > after {
			out = append(out, other.id)
		}
	}
	slices.Sort(out)
	return out
}
