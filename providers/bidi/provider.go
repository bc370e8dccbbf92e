// Package bidi is the provider for browsers that speak WebDriver BiDi (https://w3c.github.io/webdriver-bidi/): Firefox
// directly, Chromium and its kin through their driver's webSocketUrl. It starts one browser a family for the whole process
// when the first session asks for it, gives each session a user context of its own, and can attach to a running Firefox.
package bidi

import (
	"context"
	"maps"
	"sync"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Version is the provider's own version.
const Version = "0.1.0"

// Provider drives browsers over BiDi. Its methods are those of the protocol and safe for concurrent use.
type Provider struct {
	srv *plugins.Server

	starting sync.Mutex // one browser start at a time

	mu       sync.Mutex
	config   Config
	host     *browserv1.HostSettings
	browsers map[*browser]struct{}
	shared   map[string]*browser // the browsers that this provider started for everyone, by their paths and whether they are contained
	attached *browser            // the running browser that it attached to
	sessions map[string]*session
	clients  map[string]*session
	lost     map[string]struct{} // ids of sessions whose browser went
}

// New gives a server with everything that the provider can do.
func New() *plugins.Server {
	s := plugins.NewServer(plugins.Info{
		ID: "bidi", Label: "Firefox and Chromium (WebDriver BiDi)", Version: Version, Families: []string{familyFirefox, familyChromium}, Features: features,
	})
	p := &Provider{
		srv: s, host: &browserv1.HostSettings{}, browsers: map[*browser]struct{}{}, shared: map[string]*browser{},
		sessions: map[string]*session{}, clients: map[string]*session{}, lost: map[string]struct{}{},
	}
	p.register(s)
	s.OnConfigure(configSchema, p.configure)
	s.OnDescribe(p.describe)
	s.OnClose(p.close)
	return s
}

// features hold for every browser of this provider.
var features = []string{
	"element_refs", "a11y_snapshot", "dom_snapshot", "html_snapshot", "full_page_screenshot", "persistent_profile",
	"isolated_contexts", "js_eval", "network_observe", "console_observe", "file_upload", "download_observe", "dialogs", "frames",
	"events", "input_trusted", "closed_shadow_roots", "containment_proxy",
}

// featuresOf gives the features of a family: only Firefox takes a connection from outside without a driver.
func featuresOf(family string) []string {
	if family == familyFirefox {
		return append([]string{"attach_existing_browser"}, features...)
	}
	return features
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
	if s := p.sessions[id]; s != nil {
		return s, nil
	}
	if _, ok := p.lost[id]; ok {
		return nil, fault.New(fault.SessionNotFound, "the session's browser went away").Reason("session_lost").
			Hint("call session.ensure for a new session")
	}
	return nil, fault.New(fault.SessionNotFound, "there is no session %s", id).Hint("call session.ensure first")
}

// lose forgets a session whose browser went away, and remembers that it was there.
func (p *Provider) lose(s *session) {
	p.drop(s)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost[s.id] = struct{}{}
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

// forget lets go of a browser of which nothing is left.
func (p *Provider) forget(b *browser) {
	p.unshare(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.browsers, b)
}

// unshare gives no more sessions to a browser that is gone or going.
func (p *Provider) unshare(b *browser) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.shared, func(_ string, o *browser) bool { return o == b })
	if p.attached == b {
		p.attached = nil
	}
}

// settings gives the configuration and what the host said.
func (p *Provider) settings() (Config, *browserv1.HostSettings) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.config, p.host
}

// close ends every browser when the provider shuts down.
func (p *Provider) close(ctx context.Context) {
	p.mu.Lock()
	all, sessions := p.browsers, p.sessions
	p.browsers, p.sessions = map[*browser]struct{}{}, map[string]*session{}
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range sessions {
		s.files.Remove()
		if s.b.attached {
			wg.Go(func() { s.end(ctx) })
		}
	}
	wg.Wait()
	for b := range all {
		wg.Go(func() { b.close(ctx) })
	}
	wg.Wait()
}
