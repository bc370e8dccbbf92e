// Package webdriver is the provider for browsers that have a WebDriver (https://www.w3.org/TR/webdriver2/): WebKit through
// WebKitWebDriver, which stands in for Safari on Linux, and Chromium through chromedriver. It starts a driver and a browser for
// each session. One call at a time runs in a session, because the driver holds one window and one frame.
package webdriver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Version is the provider's own version.
const Version = "0.1.0"

// Provider drives browsers over WebDriver. Its methods are those of the protocol and safe for concurrent use.
type Provider struct {
	srv *plugins.Server

	mu       sync.Mutex
	config   Config
	host     *browserv1.HostSettings
	sessions map[string]*session
	clients  map[string]*session
	opening  sync.Mutex // one browser start at a time
}

// features hold for every browser of this provider.
var features = []string{"element_refs", "a11y_snapshot", "dom_snapshot", "html_snapshot", "isolated_contexts", "js_eval", "dialogs", "frames", "input_trusted"}

// New gives a server with everything that the provider can do.
func New() *plugins.Server {
	s := plugins.NewServer(plugins.Info{
		ID: "webdriver", Label: "WebKit and Chromium (WebDriver)", Version: Version, Families: []string{familyWebKit, familyChromium}, Features: features,
	})
	p := &Provider{srv: s, host: &browserv1.HostSettings{}, sessions: map[string]*session{}, clients: map[string]*session{}}
	p.register(s)
	s.OnConfigure(configSchema, p.configure)
	s.OnDescribe(p.describe)
	s.OnClose(p.close)
	return s
}

// register registers every method; what is here is what provider.describe lists.
func (p *Provider) register(s *plugins.Server) {
	plugins.Handle(s, p.status)
	plugins.Handle(s, p.setupGuide)
	plugins.Handle(s, p.ensure)
	plugins.Handle(s, p.closeSession)

	plugins.Handle(s, p.open)
	plugins.Handle(s, p.snapshot)
	plugins.Handle(s, p.wait)
	plugins.Handle(s, p.screenshot)
	plugins.Handle(s, p.eval)
	plugins.Handle(s, p.click)
	plugins.Handle(s, p.typeText)
	plugins.Handle(s, p.press)
	plugins.Handle(s, p.selectOptions)
	plugins.Handle(s, p.hover)
	plugins.Handle(s, p.scroll)

	plugins.Handle(s, p.listTabs)
	plugins.Handle(s, p.newTab)
	plugins.Handle(s, p.activateTab)
	plugins.Handle(s, p.closeTab)
	plugins.Handle(s, p.getDialog)
	plugins.Handle(s, p.respondDialog)
}

// find gives a session and one of its pages; the active one when page is "".
func (p *Provider) find(ctx context.Context, sessionID, id string) (*session, *page, error) {
	s, err := p.session(ctx, sessionID)
	if err != nil {
		return nil, nil, err
	}
	pg, err := s.page(id)
	return s, pg, err
}

// session finds a session by its id.
func (p *Provider) session(ctx context.Context, id string) (*session, error) {
	p.mu.Lock()
	s := p.sessions[id]
	p.mu.Unlock()
	switch {
	case s == nil:
		return nil, fault.New(fault.SessionNotFound, "there is no session %s", id).Hint("call session.ensure first")
	case s.gone():
		p.drop(s)
		s.end(ctx)
		return nil, errBrowserGone()
	}
	return s, nil
}

func errBrowserGone() *fault.Error {
	return fault.New(fault.SessionNotFound, "the session's browser went away").Reason("session_lost").
		Hint("call session.ensure for a new session")
}

// drop forgets a session.
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
	sessions := p.sessions
	p.sessions, p.clients = map[string]*session{}, map[string]*session{}
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range sessions {
		wg.Go(func() { s.end(ctx) })
	}
	wg.Wait()
}

func newToken() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // It never fails (crypto/rand, Go 1.24).
	return hex.EncodeToString(b[:])
}
