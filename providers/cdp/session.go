package cdp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"

	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/plugins/shelf"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// session is one scope of browsing: a browser context with its pages, downloads and artifacts. What changes is guarded
// by its browser's mu.
type session struct {
	p       *Provider
	b       *browser
	id      string
	client  string
	demand  demand
	context protocol.BrowserContextID // "" for the browser's common profile
	engine  *inpage.Session
	files   shelf.Shelf // downloads and pictures; it goes with the session

	pages     []*page // in the order they were opened
	active    *page
	recent    []*page // pages that were active, the latest last
	count     int     // page ids given
	creating  int     // pages that are being made by a call
	viewport  *browserv1.Size
	policy    browserv1.DialogPolicy
	closed    bool
	changed   chan struct{} // closed and replaced whenever pages or downloads change
	downloads []*download
}

// demand is what session.ensure asked for; the same name must ask for the same again.
type demand struct {
	isolation browserv1.Isolation
	attach    browserv1.Attach
	persist   bool
}

func newToken() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // It never fails (crypto/rand, Go 1.24).
	return hex.EncodeToString(b[:])
}

// notifyLocked wakes whoever waits for a change of the session.
func (s *session) notifyLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// addLocked takes a page in. The first page is the active one; a popup does not become active by itself.
func (s *session) addLocked(pg *page) {
	s.count++
	pg.id = "p" + strconv.Itoa(s.count)
	s.pages = append(s.pages, pg)
	if s.active == nil {
		s.activateLocked(pg)
	}
	s.notifyLocked()
}

func (s *session) activateLocked(pg *page) {
	if s.active == pg {
		return
	}
	if s.active != nil {
		s.recent = append(slices.DeleteFunc(s.recent, func(o *page) bool { return o == s.active || o == pg }), s.active)
	}
	s.active = pg
}

// removeLocked lets a page go. The page that opened it becomes active, else the one that was active before, else the last.
func (s *session) removeLocked(pg *page) {
	pg.closed = true
	if opener := s.findLocked(pg.opener); opener != nil {
		opener.stirred = true
	}
	s.pages = slices.DeleteFunc(s.pages, func(o *page) bool { return o == pg })
	s.recent = slices.DeleteFunc(s.recent, func(o *page) bool { return o == pg })
	if s.active == pg {
		s.active = nil
		switch opener := s.findLocked(pg.opener); {
		case opener != nil:
			s.activateLocked(opener)
		case len(s.recent) > 0:
			s.active = s.recent[len(s.recent)-1]
			s.recent = s.recent[:len(s.recent)-1]
		case len(s.pages) > 0:
			s.active = s.pages[len(s.pages)-1]
		}
	}
	s.notifyLocked()
}

func (s *session) findLocked(id string) *page {
	for _, pg := range s.pages {
		if pg.id == id {
			return pg
		}
	}
	return nil
}

// page finds a page by its id, or the active one when id is "".
func (s *session) page(id string) (*page, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if id == "" {
		if s.active == nil {
			return nil, fault.New(fault.PageNotFound, "the session has no page").Hint("call tab.new or page.open for one")
		}
		return s.active, nil
	}
	if pg := s.findLocked(id); pg != nil {
		return pg, nil
	}
	return nil, errNoPage(id)
}

func errNoPage(id string) *fault.Error {
	return fault.New(fault.PageNotFound, "there is no page %s in this session", id).Hint("tab.list tells those that are open")
}

// newPage opens an empty page in the session and waits until it is set up.
func (s *session) newPage(ctx context.Context, foreground bool) (*page, error) {
	background := !foreground && (s.b.attached || !s.p.settings().headless())
	params := target.CreateTargetParams{URL: "about:blank", BrowserContextID: s.context}
	if background {
		params.Background = &background
	}
	s.b.mu.Lock()
	s.creating++
	if s.context == "" {
		s.b.spawning = append(s.b.spawning, s)
	}
	s.b.mu.Unlock()
	defer func() {
		s.b.mu.Lock()
		s.creating--
		s.b.mu.Unlock()
	}()
	res, err := ask(ctx, s.b, target.CreateTarget, params)
	if err != nil {
		s.b.mu.Lock()
		if i := slices.Index(s.b.spawning, s); i >= 0 {
			s.b.spawning = slices.Delete(s.b.spawning, i, i+1)
		}
		s.b.mu.Unlock()
		return nil, err
	}
	for {
		s.b.mu.Lock()
		changed := s.changed
		var found *page
		for _, pg := range s.pages {
			if pg.target == res.TargetID {
				found = pg
			}
		}
		s.b.mu.Unlock()
		if found != nil {
			return found, found.waitReady(ctx)
		}
		select {
		case <-changed:
		case <-s.b.lost:
			return nil, errBrowserGone()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// lose ends a session whose browser is gone.
func (s *session) lose() {
	s.b.mu.Lock()
	closed := s.closed
	s.closed = true
	s.pages, s.active, s.recent = nil, nil, nil
	s.notifyLocked()
	s.b.mu.Unlock()
	if closed {
		return
	}
	s.files.Remove()
	s.p.lose(s)
	s.p.srv.Emit("session.lost", map[string]any{"session_id": s.id, "reason": "provider_exited"})
}

// emit sends an event of the session; pg may be nil.
func (s *session) emit(kind string, pg *page, payload map[string]any) {
	if payload == nil {
		payload = map[string]any{}
	}
	payload["session_id"] = s.id
	if pg != nil {
		payload["page_id"] = pg.id
		if pg.opener != "" && kind == "page.opened" {
			payload["opener_page_id"] = pg.opener
		}
	}
	s.p.srv.Emit(kind, payload)
}
