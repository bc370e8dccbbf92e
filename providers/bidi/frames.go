package bidi

import (
	"context"
	"net/url"
	"strings"
	"time"
)

// frame is one browsing context and the document that it shows. Its id stays when the document changes. What changes is
// guarded by its browser's mu.
type frame struct {
	id     string
	parent string
	url    string
	page   *page

	doc     *document // nil while the next one is being made
	realm   string    // the document's own realm
	between bool      // a navigation has torn the old document down and not committed yet
	pending string    // a navigation that has started and not ended
	started time.Time // when it started
	failed  string    // the last navigation that failed or was broken off
	broken  string    // the address that could not be loaded, when this is an error page
	loader  string    // the navigation that made the document
	loads   int       // documents it had
	moves   int       // documents and addresses it had
	ready   bool      // the document's DOMContentLoaded has fired
	loaded  bool      // the document's load event has fired
}

// document is a document's life.
type document struct {
	gone chan struct{} // closed when the document is replaced
}

// renew notes that the frame's document went away, and with next that another is there.
func (f *frame) renew(next bool) {
	if f.doc != nil {
		close(f.doc.gone)
		f.doc = nil
	}
	if next {
		f.doc = &document{gone: make(chan struct{})}
	}
}

// onCreated takes a new browsing context in: a frame of a page, or a page of the session that owns its user context or
// the page that opened it.
func (b *browser) onCreated(e *contextInfo) {
	b.mu.Lock()
	if e.Parent != "" {
		if up := b.frames[e.Parent]; up != nil && b.frames[e.Context] == nil {
			b.frames[e.Context] = &frame{id: e.Context, parent: e.Parent, url: e.URL, page: up.page}
			up.page.notifyLocked()
		}
		b.mu.Unlock()
		return
	}
	s := b.users[e.UserContext]
	if opener := b.frames[e.Opener]; s == nil && opener != nil {
		s = opener.page.s
	}
	if s == nil || s.closed || b.frames[e.Context] != nil {
		if s == nil {
			b.strays[e.Context] = *e
		}
		b.mu.Unlock()
		return
	}
	pg := b.takeLocked(s, e)
	b.mu.Unlock()
	s.emit("page.opened", pg, map[string]any{"url": e.URL})
}

func (b *browser) takeLocked(s *session, e *contextInfo) *page {
	pg := newPage(s, e)
	b.frames[e.Context] = pg.top
	s.addLocked(pg)
	if !b.firefox() {
		b.wg.Go(pg.equip)
	}
	b.focused = nil // A new window takes the focus.
	return pg
}

// adopt gives a page of the common user context to the session that made it.
func (b *browser) adopt(s *session, context string) {
	b.mu.Lock()
	info, ok := b.strays[context]
	delete(b.strays, context)
	var pg *page
	if ok && b.frames[context] == nil && !s.closed {
		pg = b.takeLocked(s, &info)
		pg.top.renew(true)
	}
	b.mu.Unlock()
	if pg != nil {
		s.emit("page.opened", pg, map[string]any{"url": info.URL})
	}
}

// onDestroyed lets a page or a frame go.
func (b *browser) onDestroyed(e *contextInfo) {
	b.mu.Lock()
	delete(b.strays, e.Context)
	f := b.frames[e.Context]
	b.dropLocked(e.Context)
	var gone *page
	if f != nil && f.parent == "" && !f.page.closed {
		gone = f.page
		gone.s.removeLocked(gone)
		gone.interruptLocked(gone.notFound())
		if b.focused == gone {
			b.focused = nil
		}
	}
	if f != nil && gone == nil {
		f.page.notifyLocked()
	}
	b.mu.Unlock()
	if gone != nil {
		gone.s.emit("page.closed", gone, nil)
	}
}

// dropLocked forgets a browsing context and those inside it.
func (b *browser) dropLocked(id string) {
	f := b.frames[id]
	if f == nil {
		return
	}
	f.renew(false)
	delete(b.frames, id)
	delete(b.realms, f.realm)
	for _, inner := range b.frames {
		if inner.parent == id {
			b.dropLocked(inner.id)
		}
	}
}

// onRealm notes the realm of a new document.
func (b *browser) onRealm(e *realmEvent) {
	if e.Type != "window" || e.Sandbox != "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.frames[e.Context]
	if f == nil {
		return
	}
	delete(b.realms, f.realm)
	f.realm = e.Realm
	b.realms[e.Realm] = f
	f.renew(true)
	f.page.notifyLocked()
}

func (b *browser) onRealmGone(e *realmEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.realms[e.Realm]
	if f == nil {
		return
	}
	delete(b.realms, e.Realm)
	f.realm = ""
	f.between = f.pending != ""
	f.renew(false)
	f.page.notifyLocked()
}

// onNavigation follows navigations on their way.
func (b *browser) onNavigation(method string, e *navigationEvent) {
	b.mu.Lock()
	f := b.frames[e.Context]
	if f == nil {
		b.mu.Unlock()
		return
	}
	step := strings.TrimPrefix(method, "browsingContext.")
	reused := step == "navigationCommitted" && !b.firefox() && f.realm != ""
	moved := f.follow(step, e)
	crashed := moved && f.parent == "" && strings.HasPrefix(e.URL, crashPage)
	if crashed {
		f.page.crashLocked()
	}
	if reused {
		f.renew(true)
		f.between = true
	}
	f.page.notifyLocked()
	top := f.parent == ""
	b.mu.Unlock()
	if reused {
		b.wg.Go(func() { b.refresh(f) })
	}
	switch {
	case crashed:
		f.page.s.emit("page.crashed", f.page, nil)
	case moved && top:
		f.page.s.emit("page.navigated", f.page, map[string]any{"url": e.URL})
	}
}

// crashPage is what Firefox shows in place of a page whose process ended.
const crashPage = "about:tabcrashed"

// crashLocked notes that the page's process ended.
func (p *page) crashLocked() {
	p.crashed = true
	p.top.renew(false)
	p.interruptLocked(p.errCrashed())
}

// cdpEvent is an event of the DevTools Protocol that a Chromium was asked for.
type cdpEvent struct {
	Session string `json:"session"`
}

// onTargetCrashed is how a Chromium tells that a page's process ended.
func (b *browser) onTargetCrashed(e *cdpEvent) {
	b.mu.Lock()
	var crashed *page
	for _, f := range b.frames {
		if f.parent == "" && f.page.devtools == e.Session && e.Session != "" {
			crashed = f.page
			crashed.crashLocked()
		}
	}
	b.mu.Unlock()
	if crashed != nil {
		crashed.s.emit("page.crashed", crashed, nil)
	}
}

// equip asks a Chromium for what BiDi has no words for: news of a crash, and the focus for every page at once.
func (p *page) equip() {
	ctx, cancel := context.WithTimeout(context.Background(), quick)
	defer cancel()
	_, err := p.cdp(ctx, "Inspector.enable", nothing{})
	if err == nil {
		_, err = p.cdp(ctx, "Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true})
	}
	if err != nil && !p.b.gone() {
		p.s.p.srv.Logger().Debug("a page could not be equipped", "error", err)
	}
}

// refresh has the browser tell its realms anew. A window that a page opened keeps its first empty document's realm for the
// first document of the same origin; chromium-bidi then waits for another for ever, and every command on it with it.
func (b *browser) refresh(f *frame) {
	ctx, cancel := context.WithTimeout(context.Background(), quick)
	defer cancel()
	res, err := do(ctx, b.conn, cdpSession, inContext{f.id})
	for _, method := range []string{"Runtime.disable", "Runtime.enable"} {
		if err == nil {
			_, err = do(ctx, b.conn, cdpSend, cdpParams{Method: method, Params: nothing{}, Session: res.Session})
		}
	}
	if err != nil && !b.gone() {
		f.page.s.p.srv.Logger().Debug("the realms of a window could not be refreshed", "error", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	f.between = false
	f.page.notifyLocked()
}

// follow notes a step of a navigation and says whether the frame's address is another now. The browser's mu is held.
func (f *frame) follow(step string, e *navigationEvent) (moved bool) {
	switch step {
	case "navigationStarted":
		f.pending, f.started = e.Navigation, time.Now()
	case "fragmentNavigated", "historyUpdated":
		f.url = e.URL
		f.moves++
		if f.pending == e.Navigation {
			f.pending = ""
		}
		return true
	case "navigationCommitted":
		f.commit(e)
		return true
	case "domContentLoaded", "load":
		if e.Navigation != "" && e.Navigation == f.failed && e.Navigation != f.loader && f.pending == "" {
			// Chromium's error page, which commits without a word.
			f.commit(e)
			f.broken = e.URL
		}
		if e.Navigation == f.loader {
			f.ready = true
			f.loaded = f.loaded || step == "load" || f.broken != ""
		}
	case "navigationAborted", "navigationFailed":
		f.failed = e.Navigation
		if f.pending == e.Navigation {
			f.pending, f.between = "", false
		}
	}
	return false
}

func (f *frame) commit(e *navigationEvent) {
	f.loader, f.url, f.broken = e.Navigation, e.URL, errorPage(e.URL)
	if f.broken != "" {
		f.url = f.broken
	}
	f.loads++
	f.moves++
	f.ready, f.loaded, f.between = false, false, false
	if f.pending == e.Navigation {
		f.pending = ""
	}
	if f.parent != "" {
		return
	}
	f.page.crashed = false
	f.page.traffic.leave(f.started)
	for nav := range f.page.statuses {
		if nav != f.loader && nav != f.pending {
			delete(f.page.statuses, nav)
		}
	}
}

// errorPage gives the address that one of Firefox's error pages stands for, or "" for any other address.
func errorPage(address string) string {
	for _, kind := range []string{"about:neterror", "about:certerror", "about:httpsonlyerror", "about:blocked", crashPage} {
		if !strings.HasPrefix(address, kind) {
			continue
		}
		_, query, _ := strings.Cut(address, "?")
		values, err := url.ParseQuery(query)
		if err != nil || values.Get("u") == "" {
			return address
		}
		return values.Get("u")
	}
	return ""
}
