package cdp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	protocol "github.com/chromedp/cdproto/cdp"
	pagedomain "github.com/chromedp/cdproto/page"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/plugins/inpage"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/forbidden"
)

// arrival is where a navigation led. open, back, forward, reload and tab.new answer with it.
type arrival struct {
	url, title string
	state      browserv1.NavigationState
	status     int
	dialog     *browserv1.Dialog
	warnings   []*browserv1.Warning
	refreshes  bool // the document says that it goes elsewhere at once
}

func (a *arrival) httpStatus() *int32 {
	if a.status == 0 {
		return nil
	}
	n := int32(a.status)
	return &n
}

// place is where a page stands before a call.
type place struct {
	loader  protocol.LoaderID
	pending protocol.LoaderID // a navigation that was under way already
	url     string
	moves   int
}

// placeLocked notes where the page stands. What a script asked for and never got is forgotten.
func (p *page) placeLocked() place {
	f := p.frames[p.main]
	f.requested = false
	return place{loader: f.loader, pending: f.pending, url: f.url, moves: f.moves}
}

// goTo opens an address in the page and waits for it. The page's lane is held.
func (p *page) goTo(ctx context.Context, address string, until browserv1.WaitUntil) (*arrival, error) {
	p.b.mu.Lock()
	from := p.placeLocked()
	downloads := len(p.s.downloads)
	p.blank = p.blank && address != "about:blank"
	p.b.mu.Unlock()
	res, err := protocol.Call(ctx, p.ch, pagedomain.Navigate, pagedomain.NavigateParams{URL: address})
	if err != nil {
		if d := dialogOf(err); d != nil {
			return p.interrupted(d, err)
		}
		p.giveUp(ctx, from)
		return nil, p.explain(ctx, err)
	}
	switch {
	case res.IsDownload:
		return p.downloading(ctx, downloads)
	case res.ErrorText != "":
		return p.failedNavigation(ctx, address, res, from)
	}
	return p.awaitMove(ctx, until, from)
}

// settle waits until the navigation that was started, and any that superseded it, reached the awaited state.
func (p *page) settle(ctx context.Context, until browserv1.WaitUntil, moves int) error {
	return p.until(ctx, func() bool {
		f := p.frames[p.main]
		if f.requested || f.pending != "" || f.moves == moves {
			return false
		}
		switch until {
		case browserv1.WaitUntil_WAIT_UNTIL_DOMCONTENTLOADED:
			return f.ready
		case browserv1.WaitUntil_WAIT_UNTIL_NETWORKIDLE:
			return f.loaded && f.idle
		default:
			return f.loaded
		}
	})
}

// giveUp stops a navigation that got no answer in its time, also one that the browser was told of and has not begun yet.
// While one is under way the browser lets nobody into the page that is still shown. A document that is there and still
// loads goes on loading.
func (p *page) giveUp(ctx context.Context, from place) {
	if ctx.Err() == nil {
		return
	}
	p.b.mu.Lock()
	f := p.frames[p.main]
	arrived := f.loader != from.loader && f.pending == ""
	p.b.mu.Unlock()
	if !arrived {
		p.ch.post(pagedomain.StopLoading.Method, protocol.Empty{})
	}
}

// arrived tells where the page stands.
func (p *page) arrived(ctx context.Context, from place) (*arrival, error) {
	p.b.mu.Lock()
	f := p.frames[p.main]
	a := &arrival{url: f.url, state: browserv1.NavigationState_NAVIGATION_STATE_COMPLETE, status: p.statuses[f.loader]}
	if f.loader == from.loader {
		a.state, a.status = browserv1.NavigationState_NAVIGATION_STATE_SAME_DOCUMENT, 0
	}
	broken := f.broken
	p.b.mu.Unlock()
	if broken != "" {
		return nil, errNavigation(broken, "the page could not be loaded")
	}
	err := p.describe(ctx, a)
	if d := dialogOf(err); d != nil {
		a.dialog = d
		return a, nil
	}
	return a, err
}

// describe fills in the title.
func (p *page) describe(ctx context.Context, a *arrival) error {
	text, err := p.Eval(ctx, inpage.FrameID(p.main), titleScript)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil // The document is gone already; the next one tells its own title.
	}
	var got struct {
		Title   string `json:"title"`
		Refresh bool   `json:"refresh"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return fmt.Errorf("reading the title: %w", err)
	}
	a.title, a.refreshes = got.Title, got.Refresh
	return nil
}

// titleScript gives the title, and whether a meta tag sends the page elsewhere without delay.
const titleScript = `JSON.stringify({ title: document.title, refresh: /^[\s0.]*[;,]/.test(document.querySelector('meta[http-equiv="refresh" i]')?.content ?? '') })`

const (
	refreshGrace = 500 * time.Millisecond // how long a refresh without delay takes to begin
	maxFollows   = 10                     // a page that refreshes for ever is not followed for ever
)

// failedNavigation tells why an address did not open.
func (p *page) failedNavigation(ctx context.Context, address string, res pagedomain.NavigateResult, from place) (*arrival, error) {
	p.b.mu.Lock()
	status := p.statuses[res.LoaderID]
	f := p.frames[p.main]
	if f.pending == res.LoaderID && res.ErrorText == "net::ERR_ABORTED" {
		f.pending = ""
	}
	p.b.mu.Unlock()
	if res.ErrorText == "net::ERR_NAME_NOT_RESOLVED" {
		if err := p.ledAstray(); err != nil {
			return nil, err
		}
	}
	if res.ErrorText != "net::ERR_ABORTED" {
		// The browser shows a page about it; the next call should meet that, not its making.
		wait, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = p.settle(wait, browserv1.WaitUntil_WAIT_UNTIL_LOAD, from.moves)
		e := errNavigation(address, "%s could not be opened", res.ErrorText)
		if status != 0 {
			e.With("http_status", status)
		}
		return nil, e
	}
	a := &arrival{url: from.url, state: browserv1.NavigationState_NAVIGATION_STATE_SAME_DOCUMENT, status: status}
	u, err := url.Parse(address)
	switch {
	case err == nil && !slices.Contains(ownSchemes, strings.ToLower(u.Scheme)):
		a.state = browserv1.NavigationState_NAVIGATION_STATE_EXTERNAL_SCHEME
	case status == 204 || status == 205:
		a.warnings = append(a.warnings, &browserv1.Warning{Code: "no_content", Message: "the server answered without a document, so the page stayed where it was"})
	default:
		// Another navigation took its place, or the page was told to stop.
		if err := p.settle(ctx, browserv1.WaitUntil_WAIT_UNTIL_LOAD, from.moves); err == nil {
			return p.arrived(ctx, from)
		}
		return nil, errNavigation(address, "the navigation was broken off")
	}
	return a, p.describe(ctx, a)
}

// ledAstray says that the latest document was looked for where no caller may go, to which a server redirected: the browser
// does not find that.
func (p *page) ledAstray() error {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	for _, r := range slices.Backward(p.traffic.list) {
		if r.told.GetResourceType() != "document" {
			continue
		}
		u, err := url.Parse(r.told.GetUrl())
		if err != nil || !forbidden.Host(strings.TrimRight(u.Hostname(), ".")) {
			return nil
		}
		return fault.New(fault.PermissionDenied, "the server redirected to a cloud's metadata service, which is not opened").
			Reason("url_refused").With("url", r.told.GetUrl())
	}
	return nil
}

// ownSchemes are the schemes that the browser opens itself.
var ownSchemes = []string{"http", "https", "about", "data", "blob", "file", "javascript", "chrome", "view-source", "filesystem", "ws", "wss"}

func errNavigation(address, format string, args ...any) *fault.Error {
	e := fault.New(fault.NotReady, format, args...).Reason("navigation_failed").With("url", address)
	if len(args) == 1 {
		e.With("net_error", args[0])
		e.Message = "the address could not be opened: " + e.Details["net_error"].(string)
	}
	return e.Hint("check the address and that its server runs, then try again")
}

// interrupted is the answer of a navigation that a dialog of the new page holds up. One that asks whether to leave keeps
// the page where it is, so then the call failed.
func (p *page) interrupted(d *browserv1.Dialog, err error) (*arrival, error) {
	if d.GetType() == string(pagedomain.DialogTypeBeforeunload) {
		return nil, err
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return &arrival{url: p.frames[p.main].url, state: browserv1.NavigationState_NAVIGATION_STATE_LOADING, dialog: d}, nil
}

// downloading is the answer of a navigation that turned into a download; the page stayed where it was.
func (p *page) downloading(ctx context.Context, before int) (*arrival, error) {
	a := &arrival{state: browserv1.NavigationState_NAVIGATION_STATE_DOWNLOAD}
	for {
		p.b.mu.Lock()
		known, changed := len(p.s.downloads) > before, p.s.changed
		a.url = p.frames[p.main].url
		p.b.mu.Unlock()
		if known {
			return a, p.describe(ctx, a)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// travel goes through the page's history by one entry, back (-1) or forward (1).
func (p *page) travel(ctx context.Context, step int64, until browserv1.WaitUntil) (*arrival, error) {
	h, err := protocol.Call(ctx, p.ch, pagedomain.GetNavigationHistory, protocol.Empty{})
	if err != nil {
		return nil, p.explain(ctx, err)
	}
	i := h.CurrentIndex + step
	if i < 0 || i >= int64(len(h.Entries)) || p.blank && step < 0 && i == 0 && h.Entries[0].URL == "about:blank" {
		return nil, fault.New(fault.InvalidRequest, "the page's history has no entry to go to").Reason("no_history_entry")
	}
	p.b.mu.Lock()
	from := p.placeLocked()
	p.b.mu.Unlock()
	if err := p.ch.Call(ctx, pagedomain.NavigateToHistoryEntry.Method, pagedomain.NavigateToHistoryEntryParams{EntryID: h.Entries[i].ID}, nil); err != nil {
		if d := dialogOf(err); d != nil {
			return p.interrupted(d, err)
		}
		return nil, p.explain(ctx, err)
	}
	return p.awaitMove(ctx, until, from)
}

// reload loads the page again; it also revives a crashed one.
func (p *page) reload(ctx context.Context, until browserv1.WaitUntil) (*arrival, error) {
	p.b.mu.Lock()
	from := p.placeLocked()
	p.b.mu.Unlock()
	if err := p.ch.Call(ctx, pagedomain.Reload.Method, pagedomain.ReloadParams{}, nil); err != nil {
		if d := dialogOf(err); d != nil {
			return p.interrupted(d, err)
		}
		return nil, p.explain(ctx, err)
	}
	return p.awaitMove(ctx, until, from)
}

// awaitMove waits for a navigation that was started and tells where it led. A navigation that the page starts as it loads,
// such as a refresh, is followed.
func (p *page) awaitMove(ctx context.Context, until browserv1.WaitUntil, from place) (*arrival, error) {
	plugins.Progress(ctx, "loading", "the page is loading")
	for range maxFollows {
		if err := p.settle(ctx, until, from.moves); err != nil {
			if d := dialogOf(err); d != nil {
				return p.interrupted(d, err)
			}
			p.giveUp(ctx, from)
			return nil, err
		}
		a, err := p.arrived(ctx, from)
		if err != nil || a.dialog != nil {
			return a, err
		}
		on := func() bool {
			f := p.frames[p.main]
			return f.requested || f.pending != "" || f.url != a.url
		}
		if a.refreshes {
			wait, done := context.WithTimeout(ctx, refreshGrace)
			_ = p.until(wait, on)
			done()
		}
		p.b.mu.Lock()
		moving := on()
		p.b.mu.Unlock()
		if !moving {
			return a, nil
		}
	}
	return p.arrived(ctx, from)
}

// dialogOf gives the dialog that an error tells of, or nil.
func dialogOf(err error) *browserv1.Dialog {
	var open *dialogOpen
	if errors.As(err, &open) {
		return open.dialog
	}
	return nil
}
