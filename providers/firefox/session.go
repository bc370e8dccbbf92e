package firefox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/plugins/shelf"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// session is one scope of browsing: a window of its own in the person's Firefox. What changes is guarded by its browser's mu.
type session struct {
	p      *Provider
	b      *browser
	id     string
	name   string // its id in the add-on
	client string
	demand demand
	engine *inpage.Session
	files  shelf.Shelf

	pages     []*page // in the order they were opened
	active    *page
	recent    []*page // pages that were active, the latest last
	count     int     // page ids given
	viewport  *browserv1.Size
	closed    bool
	changed   chan struct{} // closed and replaced whenever pages or downloads change
	downloads []*download
	names     map[string]string // the file names that servers suggested, by address
}

// demand is what session.ensure asked for; the same name must ask for the same again.
type demand struct {
	isolation browserv1.Isolation
	attach    browserv1.Attach
}

func newToken() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // It never fails (crypto/rand, Go 1.24).
	return hex.EncodeToString(b[:])
}

func newSession(p *Provider, b *browser, client string, want demand, root string) *session {
	token := newToken()
	return &session{
		p: p, b: b, id: "firefox-" + token, name: token, client: client, demand: want, engine: inpage.NewSession(),
		files: shelf.Shelf{Root: root, Prefix: "firefox-files-"}, changed: make(chan struct{}), names: map[string]string{},
	}
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
	s.b.pages[pg.tab] = pg
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
	return nil, fault.New(fault.PageNotFound, "there is no page %s in this session", id).Hint("tab.list tells those that are open")
}

// newPage opens an empty tab in the session's window.
func (s *session) newPage(ctx context.Context, foreground bool) (*page, error) {
	var t tabInfo
	if err := s.b.request(ctx, s, "tab.new", map[string]any{"foreground": foreground}, &t); err != nil {
		return nil, s.refused(ctx, err)
	}
	return s.adopt(t.Tab), nil
}

// adopt makes a page of a tab that this session asked for.
func (s *session) adopt(tab int64) *page {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if pg := s.b.pages[tab]; pg != nil {
		return pg
	}
	pg := newPage(s, tab)
	pg.ready, pg.loaded = true, true
	s.addLocked(pg)
	return pg
}

// end closes what the session opened; tabs that the person shared stay.
func (s *session) end(ctx context.Context) {
	s.b.mu.Lock()
	if s.closed {
		s.b.mu.Unlock()
		return
	}
	s.closed = true
	delete(s.b.sessions, s.name)
	for _, pg := range s.pages {
		delete(s.b.pages, pg.tab)
		pg.closed = true
		pg.interruptLocked(fault.New(fault.SessionNotFound, "the session was closed"))
	}
	s.pages, s.active, s.recent = nil, nil, nil
	s.notifyLocked()
	s.b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := s.b.request(ctx, s, "session.close", nil, nil); err != nil && !s.b.gone() && !refused(err, "no_session") {
		s.p.srv.Logger().Warn("a session's tabs could not be closed", "error", err)
	}
	s.files.Remove()
}

// lose ends a session whose browser is gone.
func (s *session) lose() {
	s.b.mu.Lock()
	closed := s.closed
	s.closed = true
	delete(s.b.sessions, s.name)
	for _, pg := range s.pages {
		delete(s.b.pages, pg.tab)
		pg.closed = true
	}
	s.pages, s.active, s.recent = nil, nil, nil
	s.notifyLocked()
	s.b.mu.Unlock()
	if closed {
		return
	}
	s.p.drop(s, true)
	s.files.Remove()
	s.p.srv.Emit("session.lost", map[string]any{"session_id": s.id, "reason": "browser_gone"})
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

// refused gives an error of the add-on the protocol's words.
func (s *session) refused(ctx context.Context, err error) error {
	var own *fault.Error
	var no *refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return err
	case errors.Is(err, errLinkDown):
		<-s.b.lost // It is about to be told to the sessions; a call after this one must know.
		return errBrowserGone().Cause(err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !errors.As(err, &no):
		return fault.New(fault.InternalError, "the add-on answered wrong: %v", err).Cause(err)
	}
	switch no.Code {
	case "paused":
		return fault.New(fault.NotReady, "Drover is paused in this Firefox").Reason("paused").
			Hint("open Drover's popup in Firefox and press Resume").Cause(err)
	case "no_session":
		return fault.New(fault.SessionNotFound, "the add-on has forgotten the session").Reason("session_lost").
			Hint("call session.ensure for a new session").Cause(err)
	case "tab_gone":
		return fault.New(fault.PageNotFound, "the tab was closed, or is not shared any more").Hint("tab.list tells those that are open").Cause(err)
	case "privileged":
		return errPrivileged().Cause(err)
	case "url_refused":
		return fault.New(fault.PermissionDenied, "Firefox does not let an add-on open this address").Reason("url_refused").Field("url").
			Hint("http: and https: addresses can be opened").Cause(err)
	case "bad_request":
		return fault.New(fault.InvalidRequest, "%s", no.Message).Cause(err)
	case "document_gone":
		return fault.New(fault.NotReady, "the page went to another document meanwhile").Reason("navigated").Retry("same").Cause(err)
	case "too_large":
		return fault.New(fault.InvalidRequest, "the request is too large for Firefox").Reason("payload_too_large").Cause(err)
	}
	return fault.New(fault.InternalError, "the add-on refused: %s", no.Message).Cause(err)
}

func errPrivileged() *fault.Error {
	return fault.New(fault.UnsupportedTarget, "Firefox lets no add-on into this page, which is one of its own, or one that it guards").
		Reason("privileged_page").Hint("open an http: or https: address")
}
