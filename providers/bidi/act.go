package bidi

import (
	"context"
	"time"

	"github.com/droverhq/drover/plugins/inpage"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// effect is what an action led to.
type effect struct {
	url    string
	moved  bool
	dialog *browserv1.Dialog
	pages  []string
}

// act runs an action on a page in its lane and tells what it led to. A dialog that the action opened is no failure: the
// action did what it should.
func (p *Provider) act(ctx context.Context, session, id string, do func(context.Context, *page) error) (*page, *effect, error) {
	_, pg, err := p.find(session, id)
	if err != nil {
		return nil, nil, err
	}
	ctx, leave, err := pg.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	ctx = context.WithValue(ctx, actingKey{}, &acting{})
	from := pg.place()
	if err = pg.focus(ctx); err == nil {
		err = do(ctx, pg)
	}
	if d := dialogOf(err); d != nil && inpage.Acted(err) {
		e := pg.effect(from)
		e.dialog = d
		return pg, e, nil
	}
	if err != nil && inpage.Acted(err) && pg.went(from) {
		return pg, pg.follow(ctx, from), nil // The document went away because of the input: that is what the input did.
	}
	if err != nil {
		return nil, nil, pg.explain(ctx, err)
	}
	return pg, pg.follow(ctx, from), nil
}

// focus brings the page's window to the front of its browser, where the browser gives the focus to one window alone. A
// person's browser is left as it is.
func (p *page) focus(ctx context.Context) error {
	if !p.b.firefox() || p.b.attached {
		return nil
	}
	p.b.mu.Lock()
	there := p.b.focused == p
	p.b.mu.Unlock()
	if there {
		return nil
	}
	return p.front(ctx)
}

// front brings the page to the front.
func (p *page) front(ctx context.Context) error {
	if _, err := do(ctx, p.b.conn, contextActivate, inContext{p.context}); err != nil {
		return err
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.b.focused = p
	return nil
}

// went says whether the page moved, is moving, or closed since from.
func (p *page) went(from place) bool {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return p.closed || p.top.moves != from.moves || p.top.pending != ""
}

const (
	commitGrace = 5 * time.Second         // how long an action waits for the document of a navigation that it started
	loadGrace   = 1500 * time.Millisecond // and then for it to load
)

// follow waits for what an action set going: a navigation until its document is there, and a little for it to load. It
// gives up well before the call's deadline, for the action itself is done.
func (p *page) follow(ctx context.Context, from place) *effect {
	ctx, cancel := leaveTime(ctx, commitGrace)
	defer cancel()
	p.echo(ctx)
	if p.went(from) {
		still := func() bool { return p.closed || p.top.pending == "" }
		if err := p.until(ctx, still); err == nil && p.place().loads != from.loads {
			wait, done := context.WithTimeout(ctx, loadGrace)
			_ = p.until(wait, func() bool { return p.closed || still() && p.top.loaded })
			done()
		}
	}
	p.toOpener(ctx)
	e := p.effect(from)
	p.b.mu.Lock()
	e.dialog = p.dialog
	p.b.mu.Unlock()
	return e
}

// toOpener lets the page that opened a page which closed handle what it was told on the way, for such a page closes
// itself when it has told its opener something. The browser tells of the closing before the opener's turn comes.
func (p *page) toOpener(ctx context.Context) {
	p.b.mu.Lock()
	opener := p.s.findLocked(p.opener)
	closed := p.closed
	p.b.mu.Unlock()
	if !closed || opener == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 500*time.Millisecond)
	defer cancel()
	ctx, done, err := opener.watch(ctx, true)
	if err != nil {
		return
	}
	defer done()
	_, _ = opener.Eval(ctx, opener.frameID(), "new Promise(done => setTimeout(done, 50, ''))") // It is only waited for.
}

// echo asks the browser something about the page, so that the news of what the action set going is here when it answers.
func (p *page) echo(ctx context.Context) {
	_, _ = do(ctx, p.b.conn, contextTree, treeParams{Root: p.context, MaxDepth: depth(0)})
}

// leaveTime bounds a wait by d and by a tenth of a second before the call's deadline.
func leaveTime(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(end)-100*time.Millisecond)
	}
	return context.WithTimeout(ctx, d)
}

// effect tells what is different now.
func (p *page) effect(from place) *effect {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	e := &effect{url: p.top.url, moved: p.top.moves != from.moves || p.top.pending != ""}
	for _, other := range p.s.pages {
		if other.opener == p.id && other.number > from.pages {
			e.pages = append(e.pages, other.id)
		}
	}
	return e
}

// click is page.click.
func (p *Provider) click(ctx context.Context, r *browserv1.ClickRequest) (*browserv1.ClickResponse, error) {
	var warnings []*browserv1.Warning
	pg, e, err := p.act(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) (err error) {
		warnings, err = pg.driver.Click(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.ClickResponse{
		PageId: pg.id, Clicked: true, NavigationOccurred: e.moved, Url: e.url, Dialog: e.dialog, NewPageIds: e.pages, Warnings: warnings,
	}, nil
}

// typeText is page.type.
func (p *Provider) typeText(ctx context.Context, r *browserv1.TypeRequest) (*browserv1.TypeResponse, error) {
	var typed inpage.Typed
	pg, e, err := p.act(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) (err error) {
		pg.keyless = false
		typed, err = pg.driver.Type(ctx, r)
		if err == nil && pg.keyless {
			typed.Warnings = append(typed.Warnings, &browserv1.Warning{
				Code: "reduced_fidelity", Message: "the text was inserted without key events, because it is long or holds characters that this browser's keys cannot write",
			})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.TypeResponse{
		PageId: pg.id, Typed: true, Value: typed.Value, NavigationOccurred: e.moved, Url: e.url, Dialog: e.dialog, Warnings: typed.Warnings,
	}, nil
}

// press is page.press.
func (p *Provider) press(ctx context.Context, r *browserv1.PressRequest) (*browserv1.PressResponse, error) {
	var warnings []*browserv1.Warning
	pg, e, err := p.act(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) (err error) {
		warnings, err = pg.driver.Press(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.PressResponse{
		PageId: pg.id, Pressed: true, NavigationOccurred: e.moved, Url: e.url, Dialog: e.dialog, NewPageIds: e.pages, Warnings: warnings,
	}, nil
}

// selectOptions is page.select.
func (p *Provider) selectOptions(ctx context.Context, r *browserv1.SelectRequest) (*browserv1.SelectResponse, error) {
	var chosen []string
	var warnings []*browserv1.Warning
	pg, e, err := p.act(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) (err error) {
		chosen, warnings, err = pg.driver.Select(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.SelectResponse{PageId: pg.id, Selected: chosen, Dialog: e.dialog, Warnings: warnings}, nil
}

// hover is page.hover.
func (p *Provider) hover(ctx context.Context, r *browserv1.HoverRequest) (*browserv1.HoverResponse, error) {
	var warnings []*browserv1.Warning
	pg, _, err := p.act(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) (err error) {
		warnings, err = pg.driver.Hover(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.HoverResponse{PageId: pg.id, Warnings: warnings}, nil
}

// scroll is page.scroll.
func (p *Provider) scroll(ctx context.Context, r *browserv1.ScrollRequest) (*browserv1.ScrollResponse, error) {
	var got inpage.Scrolled
	pg, _, err := p.act(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) (err error) {
		got, err = pg.driver.Scroll(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.ScrollResponse{PageId: pg.id, ScrollX: got.X, ScrollY: got.Y, Warnings: got.Warnings}, nil
}

// drag is page.drag.
func (p *Provider) drag(ctx context.Context, r *browserv1.DragRequest) (*browserv1.DragResponse, error) {
	var dropped bool
	var warnings []*browserv1.Warning
	pg, e, err := p.act(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) (err error) {
		dropped, warnings, err = pg.driver.Drag(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.DragResponse{PageId: pg.id, Dropped: dropped, Dialog: e.dialog, Warnings: warnings}, nil
}
