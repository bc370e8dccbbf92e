package firefox

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/droverhq/drover/proto/fault"
)

// browser is one Firefox profile with an add-on that is connected. What changes in it and its sessions is guarded by mu.
type browser struct {
	p    *Provider
	link *link
	wg   sync.WaitGroup

	mu       sync.Mutex
	sessions map[string]*session // by the ids that the add-on knows
	pages    map[int64]*page     // by tab
	lost     chan struct{}       // closed when the browser is gone and its sessions were told
}

func newBrowser(p *Provider) *browser {
	return &browser{p: p, sessions: map[string]*session{}, pages: map[int64]*page{}, lost: make(chan struct{})}
}

// start begins to watch the link.
func (b *browser) start(l *link) {
	b.link = l
	b.wg.Go(func() { // ends when the link does
		<-l.gone
		b.p.forget(b)
		b.mu.Lock()
		all := make([]*session, 0, len(b.sessions))
		for _, s := range b.sessions {
			all = append(all, s)
		}
		for _, pg := range b.pages {
			pg.interruptLocked(errBrowserGone())
		}
		b.mu.Unlock()
		for _, s := range all {
			s.lose()
		}
		close(b.lost)
	})
}

func (b *browser) gone() bool { return b.link.down() }

func (b *browser) public() bool { return b.link.hello.Kind == "public" }

func (b *browser) label() string {
	if b.public() {
		return labelPublic
	}
	return labelAddon
}

const (
	labelAddon  = "Firefox"
	labelPublic = "Firefox Agent Bridge"
)

// errBrowserGone is the answer to a call in flight when Firefox, its add-on or the native host ends.
func errBrowserGone() *fault.Error {
	return fault.New(fault.BrowserNotRunning, "Firefox, or Drover's add-on in it, went away during the call").Reason("browser_gone").
		Retry("new_session").Hint("see whether Firefox runs, then call session.ensure; what the call did is not known")
}

// request asks the add-on something about a session.
func (b *browser) request(ctx context.Context, s *session, method string, params map[string]any, result any) error {
	if params == nil {
		params = map[string]any{}
	}
	params["session"] = s.name
	return b.link.request(ctx, method, params, result)
}

// onEvent sees every event of the add-on in order, on the reader's goroutine.
func (b *browser) onEvent(name string, params json.RawMessage) {
	switch name {
	case "nav":
		on(b, params, func(_ *session, e *navEvent) { b.onNav(e) })
	case "net":
		on(b, params, func(_ *session, e *netEvent) { b.onNet(e) })
	case "tab.opened":
		on(b, params, b.onOpened)
	case "tab.closed":
		on(b, params, func(_ *session, e *tabInfo) { b.onClosed(e) })
	case "tab.changed":
		on(b, params, func(_ *session, e *tabInfo) { b.onChanged(e) })
	case "download":
		on(b, params, b.onDownload)
	}
}

// on reads an event and calls fn with the session that it names; an event of a session that is gone is nobody's.
func on[E any](b *browser, params json.RawMessage, fn func(*session, *E)) {
	var who struct {
		Session string `json:"session"`
	}
	e := new(E)
	if json.Unmarshal(params, &who) != nil || json.Unmarshal(params, e) != nil {
		return
	}
	b.mu.Lock()
	s := b.sessions[who.Session]
	b.mu.Unlock()
	if s != nil {
		fn(s, e)
	}
}

// tabInfo is what the add-on tells of a tab.
type tabInfo struct {
	Tab    int64  `json:"tab"`
	URL    string `json:"url"`
	Title  string `json:"title"`
	Active bool   `json:"active"`
	Status string `json:"status"` // loading or complete
	Found  bool   `json:"found"`
	Opener *int64 `json:"opener"`
}

// onOpened takes in a tab that a page opened, or that the person shared.
func (b *browser) onOpened(s *session, e *tabInfo) {
	b.mu.Lock()
	if s.closed || b.pages[e.Tab] != nil {
		b.mu.Unlock()
		return
	}
	pg := newPage(s, e.Tab)
	pg.found = e.Found
	if e.URL != "" && e.URL != "about:blank" {
		pg.url = e.URL
	}
	pg.title = e.Title
	pg.ready = e.Status == "complete"
	pg.loaded = pg.ready
	if e.Opener != nil {
		if opener := b.pages[*e.Opener]; opener != nil {
			pg.opener = opener.id
		}
	}
	s.addLocked(pg)
	b.mu.Unlock()
	s.emit("page.opened", pg, map[string]any{"url": e.URL})
}

func (b *browser) onClosed(e *tabInfo) {
	b.mu.Lock()
	pg := b.pages[e.Tab]
	if pg == nil {
		b.mu.Unlock()
		return
	}
	delete(b.pages, e.Tab)
	pg.s.removeLocked(pg)
	pg.interruptLocked(pg.notFound())
	b.mu.Unlock()
	pg.s.emit("page.closed", pg, nil)
}

func (b *browser) onChanged(e *tabInfo) {
	b.mu.Lock()
	defer b.mu.Unlock()
	pg := b.pages[e.Tab]
	if pg == nil {
		return
	}
	pg.title = e.Title
	switch {
	case e.Status == "loading":
		pg.idle = time.Time{}
	case (pg.pending || !pg.loaded) && pg.idle.IsZero():
		pg.idle = time.Now()
	}
	pg.notifyLocked()
}
