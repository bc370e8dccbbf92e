// Package cdp is the provider for Chromium and its kin over the Chrome DevTools Protocol. It starts one browser for the
// whole process when the first session asks for it, on a debugging pipe, gives each session a browser context of its own,
// and drives pages through chromedp's connection with flat sessions of its own. It can also attach to a running browser.
package cdp

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Version is the provider's own version.
const Version = "0.1.0"

// Provider drives Chromium. Its methods are those of the protocol and safe for concurrent use.
type Provider struct {
	srv    *plugins.Server
	remote *Remote // nil where this provider starts browsers itself

	starting sync.Mutex     // one browser start at a time
	ending   sync.WaitGroup // browsers that are not gone for good yet

	mu       sync.Mutex
	config   Config
	host     *browserv1.HostSettings
	browsers map[*browser]struct{}
	shared   map[string]*browser // browsers that this provider started for everyone, by path
	attached *browser            // the running browser that it attached to
	sessions map[string]*session
	clients  map[string]*session
	lost     map[string]struct{} // ids of sessions whose browser went
}

// New gives a server with everything that the provider can do.
func New() *plugins.Server {
	s := plugins.NewServer(plugins.Info{
		ID: "cdp", Label: "Chromium (DevTools Protocol)", Version: Version, Families: []string{"chromium"}, Features: features,
	})
	p := newProvider(s)
	p.register(s)
	s.OnConfigure(configSchema, p.configure)
	s.OnDescribe(p.describe)
	s.OnClose(p.close)
	return s
}

func newProvider(s *plugins.Server) *Provider {
	return &Provider{
		srv: s, host: &browserv1.HostSettings{}, browsers: map[*browser]struct{}{}, shared: map[string]*browser{}, sessions: map[string]*session{},
		clients: map[string]*session{}, lost: map[string]struct{}{},
	}
}

// features hold for every browser of the family.
var features = []string{
	"element_refs", "a11y_snapshot", "dom_snapshot", "html_snapshot", "full_page_screenshot", "attach_existing_browser",
	"persistent_profile", "isolated_contexts", "js_eval", "network_observe", "console_observe", "file_upload",
	"download_observe", "dialogs", "frames", "events", "input_trusted", "closed_shadow_roots", "containment_proxy",
}

// find gives a session and one of its pages; the active one when page is "".
func (p *Provider) find(sessionID, page string) (*session, *page, error) {
	s, err := p.session(sessionID)
	if err != nil {
		return nil, nil, err
	}
	pg, err := s.page(page)
	return s, pg, err
}

// session finds a session by its id.
func (p *Provider) session(id string) (*session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[id]
	if s != nil && !s.b.gone() {
		return s, nil
	}
	if _, ok := p.lost[id]; ok || s != nil {
		return nil, fault.New(fault.SessionNotFound, "the session's browser went away").Reason("session_lost").
			Hint("call session.ensure for a new session")
	}
	return nil, fault.New(fault.SessionNotFound, "there is no session %s", id).Hint("call session.ensure first")
}

// lose forgets a session whose browser went away, and remembers that it was there.
func (p *Provider) lose(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sessions, s.id)
	if p.clients[s.client] == s {
		delete(p.clients, s.client)
	}
	p.lost[s.id] = struct{}{}
}

// forget lets go of a browser that is gone or going.
func (p *Provider) forget(b *browser) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.browsers, b)
	maps.DeleteFunc(p.shared, func(_ string, o *browser) bool { return o == b })
	if p.attached == b {
		p.attached = nil
	}
}

func (p *Provider) settings() Config {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.config
}

// ensure is session.ensure.
func (p *Provider) ensure(ctx context.Context, r *browserv1.EnsureSessionRequest) (*browserv1.EnsureSessionResponse, error) {
	want := demandOf(r)
	p.mu.Lock()
	s := p.clients[r.GetClientSessionId()]
	p.mu.Unlock()
	if s != nil && s.b.gone() {
		s.lose() // The news may not have come this far yet.
		s = nil
	}
	if s != nil {
		if err := s.again(ctx, r, want); err != nil {
			return nil, err
		}
		return s.response(false), nil
	}
	var warnings []*browserv1.Warning
	b, err := p.browserFor(ctx, r, want, &warnings)
	if err != nil {
		return nil, err
	}
	s, err = p.openSession(ctx, b, r, want)
	if err != nil {
		if b.persist || p.remote != nil {
			b.close(context.WithoutCancel(ctx))
		}
		return nil, err
	}
	resp := s.response(true)
	resp.Warnings = warnings
	return resp, nil
}

func demandOf(r *browserv1.EnsureSessionRequest) demand {
	d := demand{isolation: r.GetIsolation(), attach: r.GetAttach(), persist: r.GetPersist()}
	if d.isolation == browserv1.Isolation_ISOLATION_UNSPECIFIED {
		d.isolation = browserv1.Isolation_ISOLATION_PER_CLIENT_SESSION
	}
	if d.attach == browserv1.Attach_ATTACH_UNSPECIFIED {
		d.attach = browserv1.Attach_ATTACH_NEVER
	}
	return d
}

// again meets session.ensure for a session that is there.
func (s *session) again(ctx context.Context, r *browserv1.EnsureSessionRequest, want demand) error {
	mismatch := func(field, has string) error {
		return fault.New(fault.InvalidRequest, "the session is there with another %s (%s)", field, has).Reason("session_mismatch").
			Field(field).Hint("ask for the same, or use another client_session_id")
	}
	switch {
	case (want.isolation == browserv1.Isolation_ISOLATION_SHARED) != (s.demand.isolation == browserv1.Isolation_ISOLATION_SHARED) && r.Isolation != nil:
		return mismatch("isolation", "shared or not")
	case want.persist != s.demand.persist && r.Persist != nil:
		return mismatch("persist", "kept or not")
	case want.attach == browserv1.Attach_ATTACH_REQUIRE && !s.b.attached, r.Attach != nil && want.attach == browserv1.Attach_ATTACH_NEVER && s.b.attached:
		return mismatch("attach", "attached or not")
	}
	s.b.mu.Lock()
	if r.DialogPolicy != nil {
		s.policy = r.GetDialogPolicy()
	}
	var pages []*page
	if r.Viewport != nil {
		s.viewport = r.GetViewport()
		pages = append(pages, s.pages...)
	}
	size := s.viewport
	s.b.mu.Unlock()
	for _, pg := range pages {
		if err := pg.ch.Call(ctx, emulation.SetDeviceMetricsOverride.Method, metrics(size), nil); err != nil && !errors.Is(err, errDetached) {
			return pg.explain(ctx, err)
		}
	}
	return nil
}

// response is what session.ensure answers.
func (s *session) response(created bool) *browserv1.EnsureSessionResponse {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	resp := &browserv1.EnsureSessionResponse{
		SessionId: s.id, BrowserFamily: "chromium", BrowserLabel: s.b.product.label, AttachedToExistingBrowser: s.b.attached,
		Isolation: s.demand.isolation, ProviderId: s.p.srv.Info().ID, Created: created, Features: s.p.features(),
	}
	if s.active != nil {
		resp.DefaultPageId = s.active.id
	}
	return resp
}

// closeSession is session.close.
func (p *Provider) closeSession(ctx context.Context, r *browserv1.CloseSessionRequest) (*browserv1.CloseSessionResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	p.drop(s)
	s.end(ctx)
	resp := &browserv1.CloseSessionResponse{Closed: true, Disposition: browserv1.Disposition_DISPOSITION_CLOSED}
	if s.b.attached {
		resp.Disposition = browserv1.Disposition_DISPOSITION_DETACHED
	}
	return resp, nil
}

func (p *Provider) drop(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sessions, s.id)
	if p.clients[s.client] == s {
		delete(p.clients, s.client)
	}
}

// close ends every browser when the provider shuts down.
func (p *Provider) close(ctx context.Context) {
	p.mu.Lock()
	all := p.browsers
	p.browsers = map[*browser]struct{}{}
	sessions := p.sessions
	p.sessions = map[string]*session{}
	p.mu.Unlock()
	for _, s := range sessions {
		s.files.Remove()
		if s.b.attached {
			limited, cancel := context.WithTimeout(ctx, time.Second)
			s.end(limited)
			cancel()
		}
	}
	var wg sync.WaitGroup
	for b := range all {
		wg.Go(func() { b.close(ctx) })
	}
	wg.Wait()
	p.ending.Wait()
}
