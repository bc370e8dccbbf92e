package webdriver

import (
	"context"

	"github.com/tebeka/selenium"

	"github.com/droverhq/drover/plugins/inpage"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// effect is what an action led to.
type effect struct {
	url    string
	moved  bool
	dialog *browserv1.Dialog
	pages  []string
}

// act runs an action in the session's lane and tells what it led to.
func (p *Provider) act(ctx context.Context, session, id string, do func(context.Context, *page) error) (*page, *effect, error) {
	s, pg, err := p.find(ctx, session, id)
	if err != nil {
		return nil, nil, err
	}
	release, err := s.lane.Take(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	from, err := pg.place(ctx)
	if err != nil {
		return nil, nil, pg.explain(ctx, err)
	}
	err = do(ctx, pg)
	acted := err == nil || inpage.Acted(err)
	if !acted {
		return nil, nil, pg.explain(ctx, err)
	}
	e := &effect{url: from.URL}
	at, placed := pg.place(ctx)
	switch {
	case refused(placed, "unexpected alert open"):
		e.dialog = pg.dialog(ctx)
		return pg, e, nil
	case refused(placed, "no such window"): // The action closed its own page.
		s.remove(pg)
	case placed != nil:
		return nil, nil, pg.explain(ctx, placed)
	default:
		e.url, e.moved = at.URL, at.URL != from.URL
	}
	if err != nil && !e.moved && placed == nil {
		return nil, nil, pg.explain(ctx, err)
	}
	e.pages, err = s.discover(ctx, pg.id)
	return pg, e, pg.explain(ctx, err)
}

// discover takes windows in that pages opened, and lets those go that closed.
func (s *session) discover(ctx context.Context, opener string) (added []string, err error) {
	var handles []string
	err = s.link.with(ctx, func(wd selenium.WebDriver) error { handles, err = wd.WindowHandles(); return err })
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	known, pages := map[string]bool{s.spare: true}, append([]*page(nil), s.pages...)
	s.mu.Unlock()
	open := map[string]bool{}
	for _, h := range handles {
		open[h] = true
	}
	for _, pg := range pages {
		known[pg.handle] = true
		if !open[pg.handle] {
			s.remove(pg)
		}
	}
	for _, h := range handles {
		if !known[h] {
			added = append(added, s.add(h, opener).id)
		}
	}
	return added, nil
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
	return &browserv1.ClickResponse{PageId: pg.id, Clicked: true, NavigationOccurred: e.moved, Url: e.url, Dialog: e.dialog, NewPageIds: e.pages, Warnings: warnings}, nil
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
	return &browserv1.TypeResponse{PageId: pg.id, Typed: true, Value: typed.Value, NavigationOccurred: e.moved, Url: e.url, Dialog: e.dialog, Warnings: typed.Warnings}, nil
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
	return &browserv1.PressResponse{PageId: pg.id, Pressed: true, NavigationOccurred: e.moved, Url: e.url, Dialog: e.dialog, NewPageIds: e.pages, Warnings: warnings}, nil
}

// getDialog is dialog.get.
func (p *Provider) getDialog(ctx context.Context, r *browserv1.GetDialogRequest) (*browserv1.GetDialogResponse, error) {
	_, pg, err := p.find(ctx, r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	return &browserv1.GetDialogResponse{Dialog: pg.dialog(ctx)}, nil
}

// respondDialog is dialog.respond.
func (p *Provider) respondDialog(ctx context.Context, r *browserv1.RespondDialogRequest) (*browserv1.RespondDialogResponse, error) {
	_, pg, err := p.find(ctx, r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	err = pg.s.link.with(ctx, func(wd selenium.WebDriver) error {
		if r.GetAction() != browserv1.DialogAction_DIALOG_ACTION_ACCEPT {
			return wd.DismissAlert()
		}
		if r.Text != nil {
			if _, err := pg.s.link.post("alert/text", map[string]any{"text": r.GetText()}); err != nil && !refused(err, "element not interactable") {
				return err
			}
		}
		return wd.AcceptAlert()
	})
	if refused(err, "no such alert") {
		return nil, fault.New(fault.InvalidRequest, "no dialog is open on the page").Reason("no_dialog")
	}
	return &browserv1.RespondDialogResponse{Responded: err == nil}, pg.explain(ctx, err)
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
