package cdp

import (
	"context"
	"strings"
	"time"

	protocol "github.com/chromedp/cdproto/cdp"
	pagedomain "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// listTabs is tab.list. Titles come from the browser, not from the pages, so a frozen page delays nobody.
func (p *Provider) listTabs(ctx context.Context, r *browserv1.ListTabsRequest) (*browserv1.ListTabsResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	res, err := ask(ctx, s.b, target.GetTargets, target.GetTargetsParams{})
	if err != nil {
		return nil, s.refused(ctx, err)
	}
	infos := map[target.ID]*target.Info{}
	for _, info := range res.TargetInfos {
		infos[info.TargetID] = info
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	resp := &browserv1.ListTabsResponse{}
	for _, pg := range s.pages {
		t := &browserv1.Tab{TabId: pg.tab(), PageId: pg.id, Url: pg.frames[pg.main].url, Active: pg == s.active}
		if info := infos[pg.target]; info != nil {
			t.Url = info.URL
			if !strings.HasSuffix(info.URL, info.Title) && info.Title != strings.TrimPrefix(strings.TrimPrefix(info.URL, "https://"), "http://") {
				t.Title = info.Title // A document without a title shows its address there.
			}
		}
		if pg.opener != "" {
			t.OpenerPageId = &pg.opener
		}
		resp.Tabs = append(resp.Tabs, t)
	}
	return resp, nil
}

// tab is the tab's id. A tab holds one page for all its life.
func (p *page) tab() string { return "t" + p.id[1:] }

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
	resp := &browserv1.NewTabResponse{TabId: pg.tab(), PageId: pg.id, Url: "about:blank", NavigationState: browserv1.NavigationState_NAVIGATION_STATE_COMPLETE}
	if address == "" {
		return resp, nil
	}
	ctx, leave, err := pg.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	a, err := pg.goTo(ctx, address, r.GetWaitUntil())
	if err != nil {
		return nil, err
	}
	resp.Url, resp.Title, resp.NavigationState, resp.HttpStatus, resp.Dialog, resp.Warnings = a.url, a.title, a.state, a.httpStatus(), a.dialog, a.warnings
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
		if pg.tab() == *tab {
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
		if err := pg.ch.Call(ctx, "Page.bringToFront", protocol.Empty{}, nil); err != nil {
			return nil, pg.explain(ctx, err)
		}
	}
	return &browserv1.ActivateTabResponse{PageId: pg.id, TabId: pg.tab()}, nil
}

// closeGrace is how long a page gets to close; a frozen one takes the browser about a second.
const closeGrace = 4 * time.Second

// closeTab is tab.close. It waits for no lane, so that a frozen page can be closed.
func (p *Provider) closeTab(ctx context.Context, r *browserv1.CloseTabRequest) (*browserv1.CloseTabResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	pg, err := s.byTab(r.TabId, r.PageId)
	if err != nil {
		return nil, err
	}
	if err := pg.shut(ctx); err != nil {
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

// shut closes a page and waits until it is gone. A page that does not go in time is forgotten.
func (p *page) shut(ctx context.Context) error {
	p.b.mu.Lock()
	dialog := p.dialog
	p.b.mu.Unlock()
	if dialog != nil {
		p.ch.post(pagedomain.HandleJavaScriptDialog.Method, pagedomain.HandleJavaScriptDialogParams{Accept: dialog.GetType() == "beforeunload"})
	}
	if err := p.b.core.Call(ctx, target.CommandCloseTarget, target.CloseTargetParams{TargetID: p.target}, nil); err != nil && !strings.Contains(err.Error(), "No target with given id") {
		return p.s.refused(ctx, err)
	}
	wait, cancel := context.WithTimeout(ctx, closeGrace)
	defer cancel()
	if err := p.until(wait, func() bool { return p.closed || p.b.gone() }); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.b.onDetached(p.ch.id)
	}
	return nil
}
