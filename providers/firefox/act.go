package firefox

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/plugins/inpage"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// effect is what an action led to.
type effect struct {
	url   string
	moved bool
	pages []string
}

// act runs an action on a page in its lane and tells what it led to.
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
	err = do(ctx, pg)
	if err != nil && !(inpage.Acted(err) && pg.went(from)) {
		return nil, nil, pg.explain(ctx, err)
	}
	// A document that went away because of the input is what the input did.
	return pg, pg.follow(ctx, from), nil
}

// went says whether the page moved, is moving, or closed since from.
func (p *page) went(from start) bool {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return p.closed || p.moves != from.moves || p.movingLocked()
}

const (
	commitGrace = 5 * time.Second         // how long an action waits for the document of a navigation that it started
	loadGrace   = 1500 * time.Millisecond // and then for it to load
)

// follow waits for what an action set going: a navigation until its document is there, and a little for it to load. It
// gives up well before the call's deadline, for the action itself is done.
func (p *page) follow(ctx context.Context, from start) *effect {
	ctx, cancel := leaveTime(ctx, commitGrace)
	defer cancel()
	p.echo(ctx, from)
	if p.went(from) {
		still := func() bool { return p.closed || !p.movingLocked() }
		if err := p.until(ctx, still); err == nil && p.place().loads != from.loads {
			wait, done := context.WithTimeout(ctx, loadGrace)
			_ = p.until(wait, func() bool { return p.closed || still() && p.loaded }) // It is only waited for.
			done()
		}
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return &effect{url: p.url, moved: p.moves != from.moves || p.movingLocked(), pages: p.openedLocked(from.pages)}
}

// echo asks the document whether it is about to be left, and waits until Firefox has told so as well.
func (p *page) echo(ctx context.Context, from start) {
	if p.went(from) {
		return
	}
	brief, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	going, err := hand[bool](brief, p, topFrame, "going")
	if err == nil && !going || err != nil && !errors.Is(err, inpage.ErrDocumentGone) {
		return
	}
	_ = p.until(brief, func() bool { // It is only waited for.
		return p.closed || p.moves != from.moves || p.movingLocked() || p.fails != from.fails || len(p.s.downloads) != from.downloads
	})
}

// leaveTime bounds a wait by d and by a tenth of a second before the call's deadline.
func leaveTime(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(end)-100*time.Millisecond)
	}
	return context.WithTimeout(ctx, d)
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
		PageId: pg.id, Clicked: true, NavigationOccurred: e.moved, Url: e.url, NewPageIds: e.pages, Warnings: warnings,
	}, nil
}

// typeText is page.type.
func (p *Provider) typeText(ctx context.Context, r *browserv1.TypeRequest) (*browserv1.TypeResponse, error) {
	var typed inpage.Typed
	pg, e, err := p.act(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) (err error) {
		typed, err = pg.driver.Type(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.TypeResponse{
		PageId: pg.id, Typed: true, Value: typed.Value, NavigationOccurred: e.moved, Url: e.url, Warnings: typed.Warnings,
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
		PageId: pg.id, Pressed: true, NavigationOccurred: e.moved, Url: e.url, NewPageIds: e.pages, Warnings: warnings,
	}, nil
}

// selectOptions is page.select.
func (p *Provider) selectOptions(ctx context.Context, r *browserv1.SelectRequest) (*browserv1.SelectResponse, error) {
	var chosen []string
	var warnings []*browserv1.Warning
	pg, _, err := p.act(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) (err error) {
		chosen, warnings, err = pg.driver.Select(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.SelectResponse{PageId: pg.id, Selected: chosen, Warnings: warnings}, nil
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
	return &browserv1.HoverResponse{PageId: pg.id, Warnings: append(warnings, unhovered)}, nil
}

// unhovered tells what a hover lacks: an add-on moves no real pointer.
var unhovered = &browserv1.Warning{
	Code: "reduced_fidelity", Message: "the page's scripts heard of the pointer, but its styles did not: an add-on cannot make :hover hold",
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
	pg, _, err := p.act(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) (err error) {
		dropped, warnings, err = pg.driver.Drag(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.DragResponse{PageId: pg.id, Dropped: dropped, Warnings: warnings}, nil
}
