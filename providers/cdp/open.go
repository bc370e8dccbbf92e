package cdp

import (
	"context"
	"net/url"
	"strings"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// checkURL refuses what is no absolute URL, and what would run a script in the page instead of opening something.
// Which addresses may be opened is the broker's guard to say.
func checkURL(text string) (string, error) {
	text = strings.TrimSpace(text)
	u, err := url.Parse(text)
	if err != nil && !strings.Contains(text, ":") || err == nil && u.Scheme == "" {
		return "", fault.New(fault.InvalidRequest, "the url is not absolute").Field("url").Hint("begin it with https:// or http://")
	}
	if scheme, _, _ := strings.Cut(strings.ToLower(text), ":"); scheme == "javascript" {
		return "", fault.New(fault.PermissionDenied, "a javascript: URL is not opened").Reason("url_refused").Field("url").Hint("use page.eval")
	}
	return text, nil
}

// open is page.open.
func (p *Provider) open(ctx context.Context, r *browserv1.OpenRequest) (*browserv1.OpenResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	address, err := checkURL(r.GetUrl())
	if err != nil {
		return nil, err
	}
	pg, err := s.pageToOpen(ctx, r)
	if err != nil {
		return nil, err
	}
	release, err := pg.lane.Take(ctx)
	if err != nil {
		return nil, pg.busy(err)
	}
	defer release()
	if err := pg.revive(ctx); err != nil {
		return nil, err
	}
	ctx, done, err := pg.watch(ctx, true)
	if err != nil {
		return nil, err
	}
	defer done()
	if r.GetForeground() {
		pg.ch.post("Page.bringToFront", struct{}{})
	}
	a, err := pg.goTo(ctx, address, r.GetWaitUntil())
	if err != nil {
		return nil, err
	}
	return &browserv1.OpenResponse{
		PageId: pg.id, Url: a.url, Title: a.title, NavigationState: a.state, HttpStatus: a.httpStatus(), Dialog: a.dialog, Warnings: a.warnings,
	}, nil
}

// pageToOpen gives the page that an address is opened in: a new one where that is asked for, or where the session has none.
func (s *session) pageToOpen(ctx context.Context, r *browserv1.OpenRequest) (*page, error) {
	s.b.mu.Lock()
	none := s.active == nil && !s.closed
	s.b.mu.Unlock()
	if r.GetNewPage() || r.GetPageId() == "" && none {
		return s.newActivePage(ctx, r.GetForeground())
	}
	return s.page(r.GetPageId())
}

// back is page.go_back.
func (p *Provider) back(ctx context.Context, r *browserv1.GoBackRequest) (*browserv1.GoBackResponse, error) {
	id, a, err := p.moved(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) (*arrival, error) {
		return pg.travel(ctx, -1, r.GetWaitUntil())
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.GoBackResponse{PageId: id, Url: a.url, Title: a.title, NavigationState: a.state, HttpStatus: a.httpStatus(), Dialog: a.dialog, Warnings: a.warnings}, nil
}

// forward is page.go_forward.
func (p *Provider) forward(ctx context.Context, r *browserv1.GoForwardRequest) (*browserv1.GoForwardResponse, error) {
	id, a, err := p.moved(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) (*arrival, error) {
		return pg.travel(ctx, 1, r.GetWaitUntil())
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.GoForwardResponse{PageId: id, Url: a.url, Title: a.title, NavigationState: a.state, HttpStatus: a.httpStatus(), Dialog: a.dialog, Warnings: a.warnings}, nil
}

// reload is page.reload.
func (p *Provider) reload(ctx context.Context, r *browserv1.ReloadRequest) (*browserv1.ReloadResponse, error) {
	id, a, err := p.moved(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) (*arrival, error) {
		return pg.reload(ctx, r.GetWaitUntil())
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.ReloadResponse{PageId: id, Url: a.url, Title: a.title, NavigationState: a.state, HttpStatus: a.httpStatus(), Dialog: a.dialog, Warnings: a.warnings}, nil
}

// moved runs a move through the page's history in the page's lane. A crashed page may be moved: that revives it.
func (p *Provider) moved(ctx context.Context, session, id string, move func(context.Context, *page) (*arrival, error)) (string, *arrival, error) {
	_, pg, err := p.find(session, id)
	if err != nil {
		return "", nil, err
	}
	release, err := pg.lane.Take(ctx)
	if err != nil {
		return "", nil, pg.busy(err)
	}
	defer release()
	if err := pg.revive(ctx); err != nil {
		return "", nil, err
	}
	ctx, done, err := pg.watch(ctx, true)
	if err != nil {
		return "", nil, err
	}
	defer done()
	a, err := move(ctx, pg)
	return pg.id, a, err
}

// revive lets a crashed page be navigated again, whose next document gets a new process, and one that a script of its own
// keeps busy.
func (p *page) revive(ctx context.Context) error {
	p.b.mu.Lock()
	crashed := p.crashed
	p.crashed = false
	unfit := p.unfitLocked(true)
	p.b.mu.Unlock()
	if unfit == nil && !crashed {
		p.free(ctx)
	}
	return unfit
}
