package bidi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/plugins/shelf"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// defaultUser is the user context that every browser has.
const defaultUser = "default"

// session is one scope of browsing: a user context with its pages, downloads and artifacts. What changes is guarded by its
// browser's mu.
type session struct {
	p       *Provider
	b       *browser
	id      string
	client  string
	demand  demand
	user    string // its user context
	preload string // the script that installs the engine there
	engine  *inpage.Session
	files   shelf.Shelf

	pages     []*page // in the order they were opened
	active    *page
	recent    []*page // pages that were active, the latest last
	count     int     // page ids given
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
	pg.number = s.count
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

// newPage opens an empty page in the session and waits until it can be used.
func (s *session) newPage(ctx context.Context, foreground bool) (*page, error) {
	params := createParams{Type: "window", UserContext: s.user}
	if !s.b.firefox() {
		params.Type = "tab" // Every tab of a Chromium that is driven counts as visible.
	}
	config, _ := s.p.settings()
	params.Background = !foreground && (s.b.attached || !config.headless())
	if s.b.attached {
		params.Type = "tab"
	}
	res, err := do(ctx, s.b.conn, contextCreate, params)
	if err != nil {
		return nil, err
	}
	s.b.adopt(s, res.Context)
	pg, err := s.arrival(ctx, res.Context)
	if err != nil {
		return nil, err
	}
	s.b.mu.Lock()
	pg.blank = true
	s.b.focused = nil
	size := s.viewport
	s.b.mu.Unlock()
	if s.user == defaultUser {
		if err := pg.resize(ctx, size); err != nil {
			return nil, err
		}
	}
	return pg, pg.waitReady(ctx)
}

// arrival waits until the page of a browsing context is one of the session's.
func (s *session) arrival(ctx context.Context, id string) (*page, error) {
	for {
		s.b.mu.Lock()
		changed := s.changed
		var found *page
		for _, pg := range s.pages {
			if pg.context == id {
				found = pg
			}
		}
		s.b.mu.Unlock()
		if found != nil {
			return found, nil
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

// end closes what a session opened. A browser of its own ends with it.
func (s *session) end(ctx context.Context) {
	b := s.b
	b.mu.Lock()
	s.closed = true
	pages := slices.Clone(s.pages)
	delete(b.sessions, s)
	for _, pg := range pages {
		pg.interruptLocked(fault.New(fault.SessionNotFound, "the session was closed"))
	}
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	switch {
	case b.gone():
	case b.persist:
		b.close(ctx)
	case s.user != defaultUser:
		if s.preload != "" {
			_, _ = do(ctx, b.conn, scriptUnload, preloadResult{s.preload}) // It would stay with the browser.
		}
		// Closing a user context leaves its pages no word, dialogs included.
		_, _ = do(ctx, b.conn, browserRemoveUserContext, userContext{s.user})
	default:
		var wg sync.WaitGroup
		for _, pg := range pages {
			if !pg.found {
				wg.Go(func() { _, _ = do(ctx, b.conn, contextClose, closeParams{Context: pg.context}) })
			}
		}
		wg.Wait()
	}
	b.mu.Lock()
	delete(b.users, s.user)
	for _, pg := range pages {
		b.dropLocked(pg.context)
	}
	s.pages, s.active, s.recent = nil, nil, nil
	b.mu.Unlock()
	s.files.Remove()
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
	s.p.lose(s)
	s.files.Remove()
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
