package webdriver

import (
	"context"
	"slices"
	"strconv"

	"github.com/tebeka/selenium"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

func (p *page) tab() string { return "t" + strconv.Itoa(p.number) }

// remove lets a page go.
func (s *session) remove(pg *page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages = slices.DeleteFunc(s.pages, func(o *page) bool { return o == pg })
	if s.active != pg {
		return
	}
	s.active = nil
	if n := len(s.pages); n > 0 {
		s.active = s.pages[n-1]
	}
}

// newPage opens an empty page, which becomes the active one. The spare window is used first.
func (s *session) newPage(ctx context.Context) (*page, error) {
	s.mu.Lock()
	handle := s.spare
	s.spare = ""
	s.mu.Unlock()
	if handle == "" {
		var err error
		if handle, err = s.newWindow(ctx); err != nil {
			return nil, (&page{s: s}).explain(ctx, err)
		}
	}
	pg := s.add(handle, "")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = pg
	return pg, nil
}

// listTabs is tab.list.
func (p *Provider) listTabs(ctx context.Context, r *browserv1.ListTabsRequest) (*browserv1.ListTabsResponse, error) {
	s, err := p.session(ctx, r.GetSessionId())
	if err != nil {
		return nil, err
	}
	release, err := s.lane.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if _, err := s.discover(ctx, ""); err != nil {
		return nil, (&page{s: s}).explain(ctx, err)
	}
	s.mu.Lock()
	pages, active := slices.Clone(s.pages), s.active
	s.mu.Unlock()
	resp := &browserv1.ListTabsResponse{}
	for _, pg := range pages {
		at, _ := pg.place(ctx) // A page behind a dialog tells nothing.
		t := &browserv1.Tab{TabId: pg.tab(), PageId: pg.id, Url: at.URL, Title: at.Title, Active: pg == active}
		if pg.opener != "" {
			t.OpenerPageId = &pg.opener
		}
		resp.Tabs = append(resp.Tabs, t)
	}
	return resp, nil
}

// newTab is tab.new.
func (p *Provider) newTab(ctx context.Context, r *browserv1.NewTabRequest) (*browserv1.NewTabResponse, error) {
	s, err := p.session(ctx, r.GetSessionId())
	if err != nil {
		return nil, err
	}
	address := ""
	if r.Url != nil {
		if address, err = checkURL(r.GetUrl()); err != nil {
			return nil, err
		}
	}
	release, err := s.lane.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	pg, err := s.newPage(ctx)
	if err != nil {
		return nil, err
	}
	resp := &browserv1.NewTabResponse{TabId: pg.tab(), PageId: pg.id, Url: "about:blank", NavigationState: browserv1.NavigationState_NAVIGATION_STATE_COMPLETE}
	if address == "" {
		return resp, nil
	}
	at, d, err := pg.goTo(ctx, address)
	resp.Url, resp.Title, resp.Dialog = at.URL, at.Title, d
	return resp, err
}

// byTab finds a page by tab_id or page_id.
func (s *session) byTab(tab, id *string) (*page, error) {
	if tab == nil {
		if id == nil || *id == "" {
			return nil, fault.New(fault.InvalidRequest, "page_id is empty").Field("page_id")
		}
		return s.page(*id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pg := range s.pages {
		if pg.tab() == *tab {
			return pg, nil
		}
	}
	return nil, fault.New(fault.PageNotFound, "there is no tab %s in this session", *tab).Hint("tab.list tells those that are open")
}

// activateTab is tab.activate. The page's window comes to the front with the next call on it.
func (p *Provider) activateTab(ctx context.Context, r *browserv1.ActivateTabRequest) (*browserv1.ActivateTabResponse, error) {
	s, err := p.session(ctx, r.GetSessionId())
	if err != nil {
		return nil, err
	}
	pg, err := s.byTab(r.TabId, r.PageId)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = pg
	return &browserv1.ActivateTabResponse{PageId: pg.id, TabId: pg.tab()}, nil
}

// closeTab is tab.close. A spare window keeps the session when the last page closes.
func (p *Provider) closeTab(ctx context.Context, r *browserv1.CloseTabRequest) (*browserv1.CloseTabResponse, error) {
	s, err := p.session(ctx, r.GetSessionId())
	if err != nil {
		return nil, err
	}
	pg, err := s.byTab(r.TabId, r.PageId)
	if err != nil {
		return nil, err
	}
	release, err := s.lane.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	s.mu.Lock()
	last := len(s.pages) == 1 && s.spare == ""
	s.mu.Unlock()
	if last {
		handle, err := s.newWindow(ctx)
		if err != nil {
			return nil, pg.explain(ctx, err)
		}
		s.mu.Lock()
		s.spare = handle
		s.mu.Unlock()
	}
	err = pg.in(ctx, "", func(wd selenium.WebDriver) error {
		s.current = ""
		return wd.Close()
	})
	if err != nil && !refused(err, "no such window") {
		return nil, pg.explain(ctx, err)
	}
	s.remove(pg)
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := &browserv1.CloseTabResponse{Closed: true}
	if s.active != nil {
		resp.ActivePageId = s.active.id
	}
	return resp, nil
}
