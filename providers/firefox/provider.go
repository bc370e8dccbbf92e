// Package firefox is the provider for a person's own Firefox, logged in and without a debugging port. Drover's add-on runs in it
// and is reached through a native messaging host; the public Firefox Agent Bridge is taken in its place where that is there.
// A session has a window of its own; other tabs are out of its reach, unless the person shares one.
package firefox

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/providers/firefox/endpoint"
)

// Version is the provider's own version.
const Version = "0.1.0"

const family = "firefox"

// Provider drives Firefox through an add-on. Its methods are those of the protocol and safe for concurrent use.
type Provider struct {
	srv      *plugins.Server
	unshared []string // methods that the public bridge cannot do

	finding sync.Mutex // one search for browsers at a time

	mu       sync.Mutex
	config   Config
	host     *browserv1.HostSettings
	browsers map[string]*browser // by their sockets
	sessions map[string]*session
	clients  map[string]*session
	guests   map[string]*guest // sessions with the public bridge
	lost     map[string]struct{}
	problems map[string]string // sockets that could not be used, and why
	closed   bool
}

// New gives a server with everything that the provider can do.
func New() *plugins.Server { return newProvider().srv }

func newProvider() *Provider {
	s := plugins.NewServer(plugins.Info{
		ID: "firefox", Label: "Firefox (add-on)", Version: Version, Families: []string{family}, Features: features,
	})
	p := &Provider{
		srv: s, host: &browserv1.HostSettings{}, browsers: map[string]*browser{}, sessions: map[string]*session{},
		clients: map[string]*session{}, guests: map[string]*guest{}, lost: map[string]struct{}{}, problems: map[string]string{},
	}
	p.register(s)
	s.OnConfigure(configSchema, p.configure)
	s.OnDescribe(p.describe)
	s.OnClose(p.close)
	return p
}

// features hold for the add-on. Its input is made of events that the browser does not trust, and it says so.
var features = []string{
	"element_refs", "a11y_snapshot", "dom_snapshot", "html_snapshot", "full_page_screenshot", "attach_existing_browser", "js_eval",
	"network_observe", "file_upload", "download_observe", "frames", "events", "synthetic_input", "closed_shadow_roots",
	"extension_required", "manual_setup_required",
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
		return nil, fault.New(fault.SessionNotFound, "the session's Firefox, or its add-on, went away").Reason("session_lost").
			Hint("call session.ensure for a new session")
	}
	return nil, fault.New(fault.SessionNotFound, "there is no session %s", id).Hint("call session.ensure first")
}

// drop forgets a session; lost remembers that it was there.
func (p *Provider) drop(s *session, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sessions, s.id)
	if p.clients[s.client] == s {
		delete(p.clients, s.client)
	}
	if lost {
		p.lost[s.id] = struct{}{}
	}
}

func (p *Provider) settings() (Config, *browserv1.HostSettings) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.config, p.host
}

// discover connects to the hosts that came since, and lists the browsers that are there, in the order of their sockets.
func (p *Provider) discover(ctx context.Context) []*browser {
	p.finding.Lock()
	defer p.finding.Unlock()
	sockets, err := endpoint.Sockets(endpoint.Folder())
	problems := map[string]string{}
	if err != nil {
		problems[endpoint.Folder()] = err.Error()
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	if config, _ := p.settings(); config.BridgeURL != "" {
		sockets = append(sockets, config.BridgeURL)
	}
	for _, path := range sockets {
		p.mu.Lock()
		known, closed := p.browsers[path], p.closed
		p.mu.Unlock()
		if closed || known != nil && !known.gone() {
			continue
		}
		wg.Go(func() {
			if err := p.meet(ctx, path); err != nil {
				mu.Lock()
				problems[path] = err.Error()
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = problems
	var out []*browser
	for _, path := range slices.Sorted(maps.Keys(p.browsers)) {
		if b := p.browsers[path]; !b.gone() {
			out = append(out, b)
		}
	}
	return out
}

// meet connects to one host.
func (p *Provider) meet(ctx context.Context, path string) error {
	b := newBrowser(p)
	l, err := connect(ctx, path, b.onEvent)
	if err != nil {
		return err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		l.close()
		return errLinkDown
	}
	b.start(l)
	p.browsers[path] = b
	p.mu.Unlock()
	return nil
}

// forget lets go of a browser that is gone.
func (p *Provider) forget(b *browser) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.browsers[b.link.path] == b {
		delete(p.browsers, b.link.path)
	}
}

// close ends every session when the provider shuts down. The person's Firefox goes on.
func (p *Provider) close(ctx context.Context) {
	p.mu.Lock()
	p.closed = true
	browsers, sessions := p.browsers, p.sessions
	p.browsers, p.sessions = map[string]*browser{}, map[string]*session{}
	for _, g := range p.guests {
		g.files.Remove()
	}
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range sessions {
		wg.Go(func() { s.end(ctx) })
	}
	wg.Wait()
	for _, b := range browsers {
		b.link.close()
		b.wg.Wait()
	}
}

// sortedKeys lists the keys of a map in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
