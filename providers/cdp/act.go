package cdp

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
	s, pg, err := p.find(session, id)
	if err != nil {
		return nil, nil, err
	}
	ctx, leave, err := pg.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	s.b.mu.Lock()
	from, pages := pg.placeLocked(), s.count
	pg.opening = 0
	s.b.mu.Unlock()
	err = do(ctx, pg)
	if d := dialogOf(err); d != nil && inpage.Acted(err) {
		e := pg.effect(from, pages)
		e.dialog = d
		return pg, e, nil
	}
	if err != nil && inpage.Acted(err) {
		if over := pg.overtaken(ctx, from, pages); over != nil {
			return pg, over, nil
		}
	}
	if err != nil {
		return nil, nil, pg.explain(ctx, err)
	}
	return pg, pg.follow(ctx, from, pages), nil
}

// overtaken gives the effect of an action whose document went away, or whose page closed, because of the input: that is
// what the input did. nil when that is not so.
func (p *page) overtaken(ctx context.Context, from place, pages int) *effect {
	p.b.mu.Lock()
	f := p.frames[p.main]
	went := p.closed || f != nil && (f.moves != from.moves || f.moving(from))
	p.b.mu.Unlock()
	if !went {
		return nil
	}
	return p.follow(ctx, from, pages)
}

const (
	commitGrace = 5 * time.Second         // how long an action waits for the document of a navigation that it started
	loadGrace   = 1500 * time.Millisecond // and then for it to load
	popupGrace  = time.Second             // how long an action waits for a page that it asked for
)

// follow waits for what an action set going: a navigation until its document is there (and a little for it to load), a
// new page until it is there. It gives up well before the call's deadline, for the action itself is done.
func (p *page) follow(ctx context.Context, from place, pages int) *effect {
	ctx, cancel := leaveTime(ctx, commitGrace)
	defer cancel()
	p.b.mu.Lock()
	f := p.frames[p.main]
	busy := !p.closed && f != nil && (f.moving(from) || f.loader != from.loader)
	opening := p.opening > 0
	p.b.mu.Unlock()
	if opening {
		wait, done := context.WithTimeout(ctx, popupGrace)
		_ = p.until(wait, func() bool { return p.opening == 0 || p.closed })
		done()
	}
	if busy {
		_ = p.until(ctx, func() bool { return p.closed || !f.moving(from) })
		wait, done := context.WithTimeout(ctx, loadGrace)
		_ = p.until(wait, func() bool { return p.closed || f.loader == from.loader || !f.moving(from) && f.loaded })
		done()
	}
	e := p.effect(from, pages)
	p.b.mu.Lock()
	e.dialog = p.dialog
	p.b.mu.Unlock()
	return e
}

// moving says whether a navigation is under way that was not when the call came. The browser's mu is held.
func (f *frame) moving(from place) bool {
	return f.requested || f.pending != "" && f.pending != from.pending
}

// leaveTime bounds a wait by d and by a tenth of a second before the call's deadline.
func leaveTime(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(end)-100*time.Millisecond)
	}
	return context.WithTimeout(ctx, d)
}

// effect tells what is different now.
func (p *page) effect(from place, pages int) *effect {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	e := &effect{}
	if f := p.frames[p.main]; f != nil {
		e.url = f.url
		e.moved = f.moves != from.moves || f.moving(from)
	}
	for _, other := range p.s.pages {
		if other.opener == p.id && number(other.id) > pages {
			e.pages = append(e.pages, other.id)
		}
	}
	return e
}

// number is the count in a page's id.
func number(id string) (n int) {
	for _, r := range id[1:] {
		n = n*10 + int(r-'0')
	}
	return n
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
		typed, err = pg.driver.Type(ctx, r)
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
	var selected []string
	var warnings []*browserv1.Warning
	pg, e, err := p.act(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) (err error) {
		selected, warnings, err = pg.driver.Select(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.SelectResponse{PageId: pg.id, Selected: selected, Dialog: e.dialog, Warnings: warnings}, nil
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
	var to inpage.Scrolled
	pg, _, err := p.act(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) (err error) {
		to, err = pg.driver.Scroll(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.ScrollResponse{PageId: pg.id, ScrollX: to.X, ScrollY: to.Y, Warnings: to.Warnings}, nil
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
	return &browserv1.DragResponse{PageId: pg.id, Dropped: dropped || e.dialog != nil, Dialog: e.dialog, Warnings: warnings}, nil
}
