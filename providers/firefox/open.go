package firefox

import (
	"context"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

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
	pg, a, err := pg.moved(ctx, func(ctx context.Context) (*arrival, error) {
		if r.GetForeground() {
			if err := pg.front(ctx); err != nil {
				return nil, err
			}
		}
		return pg.goTo(ctx, address, r.GetWaitUntil())
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.OpenResponse{
		PageId: pg.id, Url: a.url, Title: a.title, NavigationState: a.state, HttpStatus: a.httpStatus(), Warnings: a.warnings,
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
	_, pg, err := p.find(r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	pg, a, err := pg.moved(ctx, func(ctx context.Context) (*arrival, error) { return pg.travel(ctx, -1, r.GetWaitUntil()) })
	if err != nil {
		return nil, err
	}
	return &browserv1.GoBackResponse{PageId: pg.id, Url: a.url, Title: a.title, NavigationState: a.state, HttpStatus: a.httpStatus(), Warnings: a.warnings}, nil
}

// forward is page.go_forward.
func (p *Provider) forward(ctx context.Context, r *browserv1.GoForwardRequest) (*browserv1.GoForwardResponse, error) {
	_, pg, err := p.find(r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	pg, a, err := pg.moved(ctx, func(ctx context.Context) (*arrival, error) { return pg.travel(ctx, 1, r.GetWaitUntil()) })
	if err != nil {
		return nil, err
	}
	return &browserv1.GoForwardResponse{PageId: pg.id, Url: a.url, Title: a.title, NavigationState: a.state, HttpStatus: a.httpStatus(), Warnings: a.warnings}, nil
}

// reload is page.reload.
func (p *Provider) reload(ctx context.Context, r *browserv1.ReloadRequest) (*browserv1.ReloadResponse, error) {
	_, pg, err := p.find(r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	pg, a, err := pg.moved(ctx, func(ctx context.Context) (*arrival, error) { return pg.reload(ctx, r.GetWaitUntil()) })
	if err != nil {
		return nil, err
	}
	return &browserv1.ReloadResponse{PageId: pg.id, Url: a.url, Title: a.title, NavigationState: a.state, HttpStatus: a.httpStatus(), Warnings: a.warnings}, nil
}

// moved runs a navigation in the page's lane.
func (p *page) moved(ctx context.Context, move func(context.Context) (*arrival, error)) (*page, *arrival, error) {
	ctx, leave, err := p.enter(ctx)
	if err != nil {
		return p, nil, err
	}
	defer leave()
	a, err := move(ctx)
	if err != nil {
		err = p.explain(ctx, err)
	}
	return p, a, err
}
