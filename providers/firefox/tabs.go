package firefox

import (
	"context"
	"strconv"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// listTabs is tab.list.
func (p *Provider) listTabs(ctx context.Context, r *browserv1.ListTabsRequest) (*browserv1.ListTabsResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	if s.b.gone() {
		return nil, errBrowserGone()
	}
	s.b.mu.Lock()
	pages, active := append([]*page(nil), s.pages...), s.active
	s.b.mu.Unlock()
	var now struct {
		Tabs []tabInfo `json:"tabs"`
	}
	if err := s.b.request(ctx, s, "tab.list", nil, &now); err != nil {
		return nil, s.refused(ctx, err)
	}
	titles := map[int64]string{}
	for _, t := range now.Tabs {
		titles[t.Tab] = t.Title
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	resp := &browserv1.ListTabsResponse{}
	for _, pg := range pages {
		t := &browserv1.Tab{TabId: pg.tabID(), PageId: pg.id, Url: pg.url, Title: titles[pg.tab], Active: pg == active}
		if pg.opener != "" {
			t.OpenerPageId = &pg.opener
		}
		resp.Tabs = append(resp.Tabs, t)
	}
	return resp, nil
}

// tabID is the tab's id. A tab holds one page for all its life.
func (p *page) tabID() string { return "t" + strconv.Itoa(p.number) }

// newTab is tab.new.
func (p *Provider) newTab(ctx context.Context, r *browserv1.NewTabRequest) (*browserv1.NewTabResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	address := ""
	if r.Url != nil {
		if address, err = checkURL(r.GetUrl()); err != nil {
			return nil, err
		}
	}
	pg, err := s.newActivePage(ctx, r.GetForeground())
	if err != nil {
		return nil, err
	}
	resp := &browserv1.NewTabResponse{TabId: pg.tabID(), PageId: pg.id, Url: "about:blank", NavigationState: browserv1.NavigationState_NAVIGATION_STATE_COMPLETE}
	if address == "" {
		return resp, nil
	}
	_, a, err := pg.moved(ctx, func(ctx context.Context) (*arrival, error) { return pg.goTo(ctx, address, r.GetWaitUntil()) })
	if err != nil {
		return nil, err
	}
	resp.Url, resp.Title, resp.NavigationState, resp.HttpStatus, resp.Warnings = a.url, a.title, a.state, a.httpStatus(), a.warnings
	return resp, nil
}

// newActivePage opens an empty page, which becomes the active one.
func (s *session) newActivePage(ctx context.Context, foreground bool) (*page, error) {
	pg, err := s.newPage(ctx, foreground)
	if err != nil {
		return nil, s.refused(ctx, err)
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if !pg.closed {
		s.activateLocked(pg)
	}
	return pg, nil
}

// byTab finds a page by tab_id or page_id.
func (s *session) byTab(tab, id *string) (*page, error) {
	if tab == nil {
		if id == nil || *id == "" {
			return nil, fault.New(fault.InvalidRequest, "page_id is empty").Field("page_id")
		}
		return s.page(*id)
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	for _, pg := range s.pages {
		if pg.tabID() == *tab {
			return pg, nil
		}
	}
	return nil, fault.New(fault.PageNotFound, "there is no tab %s in this session", *tab).Hint("tab.list tells those that are open")
}

// activateTab is tab.activate.
func (p *Provider) activateTab(ctx context.Context, r *browserv1.ActivateTabRequest) (*browserv1.ActivateTabResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	pg, err := s.byTab(r.TabId, r.PageId)
	if err != nil {
		return nil, err
	}
	s.b.mu.Lock()
	s.activateLocked(pg)
	s.b.mu.Unlock()
	if r.GetForeground() {
		if err := pg.front(ctx); err != nil {
			return nil, err
		}
	}
	return &browserv1.ActivateTabResponse{PageId: pg.id, TabId: pg.tabID()}, nil
}

// closeTab is tab.close. A page cannot refuse: its leave prompt is not shown.
func (p *Provider) closeTab(ctx context.Context, r *browserv1.CloseTabRequest) (*browserv1.CloseTabResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	pg, err := s.byTab(r.TabId, r.PageId)
	if err != nil {
		return nil, err
	}
	if err := pg.request(ctx, "tab.close", nil, nil); err != nil && !refused(err, "tab_gone") {
		return nil, pg.explain(ctx, err)
	}
	if err := pg.until(ctx, func() bool { return pg.closed || pg.b.gone() }); err != nil {
		return nil, err
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	resp := &browserv1.CloseTabResponse{Closed: true}
	if s.active != nil {
		resp.ActivePageId = s.active.id
	}
	return resp, nil
}

// front brings the page's tab, and its window, to the front of the person's screen.
func (p *page) front(ctx context.Context) error {
	return p.explain(ctx, p.request(ctx, "tab.activate", map[string]any{"foreground": true}, nil))
}
