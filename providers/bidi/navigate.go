package bidi

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// arrival is where a navigation led. open, back, forward, reload and tab.new answer with it.
type arrival struct {
	url, title string
	state      browserv1.NavigationState
	status     int32
	dialog     *browserv1.Dialog
	warnings   []*browserv1.Warning
}

func (a *arrival) httpStatus() *int32 {
	if a.status == 0 {
		return nil
	}
	return &a.status
}

// place is a navigation's starting point.
type place struct {
	url          string
	loads, moves int
	downloads    int // of the session
	pages        int
}

func (p *page) placeLocked() place {
	return place{url: p.top.url, loads: p.top.loads, moves: p.top.moves, downloads: len(p.s.downloads), pages: p.s.count}
}

func (p *page) place() place {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return p.placeLocked()
}

// goTo opens an address in the page and waits for it. The page's lane is held.
func (p *page) goTo(ctx context.Context, address string, until browserv1.WaitUntil) (*arrival, error) {
	from := p.place()
	_, err := do(ctx, p.b.conn, contextNavigate, navigateParams{Context: p.context, URL: address, Wait: "none"})
	if err != nil {
		return p.failedNavigation(ctx, address, err, from)
	}
	return p.awaitMove(ctx, until, from)
}

// awaitMove waits until a navigation that was started reached the awaited state, or turned out to be a download.
func (p *page) awaitMove(ctx context.Context, until browserv1.WaitUntil, from place) (*arrival, error) {
	plugins.Progress(ctx, "loading", "the page is loading")
	var loading *download
	err := p.until(ctx, func() bool {
		loading = p.newDownloadLocked(from)
		f := p.top
		if loading != nil && f.pending == "" && f.moves == from.moves {
			return true
		}
		if f.pending != "" || f.moves == from.moves {
			return false
		}
		loading = nil
		switch until {
		case browserv1.WaitUntil_WAIT_UNTIL_DOMCONTENTLOADED:
			return f.ready
		default:
			return f.loaded
		}
	})
	if d := dialogOf(err); d != nil {
		return p.interrupted(d), nil
	}
	if err != nil {
		return nil, err
	}
	if loading != nil {
		return p.downloading(ctx)
	}
	if until == browserv1.WaitUntil_WAIT_UNTIL_NETWORKIDLE {
		if err := p.quiet(ctx); err != nil {
			if d := dialogOf(err); d != nil {
				return p.interrupted(d), nil
			}
			return nil, err
		}
	}
	return p.arrived(ctx, from)
}

// newDownloadLocked gives the download of this page that began after from, or nil.
func (p *page) newDownloadLocked(from place) *download {
	for _, d := range p.s.downloads[min(from.downloads, len(p.s.downloads)):] {
		if d.page == p {
			return d
		}
	}
	return nil
}

// arrived tells where the page stands.
func (p *page) arrived(ctx context.Context, from place) (*arrival, error) {
	p.b.mu.Lock()
	f := p.top
	a := &arrival{url: f.url, state: browserv1.NavigationState_NAVIGATION_STATE_COMPLETE, status: p.statuses[f.loader]}
	if f.loads == from.loads {
		a.state, a.status = browserv1.NavigationState_NAVIGATION_STATE_SAME_DOCUMENT, 0
	} else {
		p.blank = p.blank && f.url == "about:blank"
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
	title, err := p.Eval(ctx, p.frameID(), "document.title")
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	a.title = title
	return nil
}

// failedNavigation tells why an address did not open.
func (p *page) failedNavigation(ctx context.Context, address string, cause error, from place) (*arrival, error) {
	if d := dialogOf(cause); d != nil {
		return p.interrupted(d), nil
	}
	var r *refusal
	if !errors.As(cause, &r) {
		return nil, p.explain(ctx, cause)
	}
	u, err := url.Parse(address)
	if err == nil && !slices.Contains(ownSchemes, strings.ToLower(u.Scheme)) {
		a := &arrival{url: from.url, state: browserv1.NavigationState_NAVIGATION_STATE_EXTERNAL_SCHEME}
		return a, p.describe(ctx, a)
	}
	switch {
	case r.Code == "unsupported operation":
		return nil, fault.New(fault.PermissionDenied, "the browser does not open %s: addresses", u.Scheme).Reason("url_refused").Field("url").Cause(cause)
	case r.Code == "invalid argument":
		return nil, fault.New(fault.InvalidRequest, "the browser does not take the url: %s", r.Message).Field("url").Cause(cause)
	case strings.Contains(r.Message, "ABORTED"):
		return p.aborted(ctx, address, cause, from)
	case strings.Contains(r.Message, "eforeunload"):
		return nil, errNavigation(address, "the page was told to stay").Cause(cause)
	case r.Code == "unknown error":
		p.settleError(ctx, from)
		return nil, errNavigation(address, "%s", strings.TrimPrefix(r.Message, "Error: ")).Cause(cause)
	}
	return nil, p.explain(ctx, cause)
}

// settleError waits a little for the page that a browser shows about a failure: the next call should meet that, not its
// making.
func (p *page) settleError(ctx context.Context, from place) {
	wait, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = p.until(wait, func() bool { return p.top.moves != from.moves && p.top.pending == "" && p.top.ready })
}

// downloadPatience is how long the news of a download may take after the navigation that became one was broken off.
const downloadPatience = 500 * time.Millisecond

// aborted is the answer of a navigation that was broken off: it became a download, brought no document, or another
// navigation took its place.
func (p *page) aborted(ctx context.Context, address string, cause error, from place) (*arrival, error) {
	wait, cancel := context.WithTimeout(ctx, downloadPatience)
	defer cancel()
	var loading *download
	none := false
	_ = p.until(wait, func() bool {
		loading = p.newDownloadLocked(from)
		none = p.traffic.empty(address)
		return loading != nil || none || p.top.moves != from.moves
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p.b.mu.Lock()
	moving := p.top.moves != from.moves || p.top.pending != ""
	p.b.mu.Unlock()
	switch {
	case loading != nil:
		return p.downloading(ctx)
	case none:
		a := &arrival{url: from.url, state: browserv1.NavigationState_NAVIGATION_STATE_SAME_DOCUMENT, status: 204, warnings: []*browserv1.Warning{{
			Code: "no_content", Message: "the server answered without a document, so the page stayed where it was",
		}}}
		return a, p.describe(ctx, a)
	case moving:
		return p.awaitMove(ctx, browserv1.WaitUntil_WAIT_UNTIL_LOAD, from)
	case !p.b.firefox():
		// chromedriver does not always tell of the response before it tells that no document came of it.
		a := &arrival{url: from.url, state: browserv1.NavigationState_NAVIGATION_STATE_SAME_DOCUMENT, warnings: []*browserv1.Warning{{
			Code: "no_content", Message: "the navigation ended without a document, so the page stayed where it was",
		}}}
		return a, p.describe(ctx, a)
	}
	return nil, errNavigation(address, "the navigation was broken off").Cause(cause)
}

// ownSchemes are the schemes that the browser opens itself.
var ownSchemes = []string{
	"http", "https", "about", "data", "blob", "file", "javascript", "chrome", "resource", "moz-extension", "chrome-extension",
	"view-source", "filesystem", "ws", "wss", "ftp", "jar",
}

func errNavigation(address, format string, args ...any) *fault.Error {
	e := fault.New(fault.NotReady, format, args...).Reason("navigation_failed").With("url", address)
	if len(args) == 1 {
		e.With("net_error", args[0])
		e.Message = "the address could not be opened: " + e.Message
	}
	return e.Hint("check the address and that its server runs, then try again")
}

// interrupted is the answer of a navigation that a dialog holds up.
func (p *page) interrupted(d *browserv1.Dialog) *arrival {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return &arrival{url: p.top.url, state: browserv1.NavigationState_NAVIGATION_STATE_LOADING, dialog: d}
}

// downloading is the answer of a navigation that turned into a download; the page stayed where it was.
func (p *page) downloading(ctx context.Context) (*arrival, error) {
	p.b.mu.Lock()
	a := &arrival{url: p.top.url, state: browserv1.NavigationState_NAVIGATION_STATE_DOWNLOAD}
	p.b.mu.Unlock()
	return a, p.describe(ctx, a)
}

// travel goes through the page's history by one entry, back (-1) or forward (1).
func (p *page) travel(ctx context.Context, step int, until browserv1.WaitUntil) (*arrival, error) {
	from := p.place()
	_, err := do(ctx, p.b.conn, contextTraverse, traverseParams{Context: p.context, Delta: step})
	switch {
	case refused(err, "no such history entry"):
		return nil, errNoEntry()
	case err != nil:
		if d := dialogOf(err); d != nil {
			return p.interrupted(d), nil
		}
		return nil, p.explain(ctx, err)
	}
	a, err := p.awaitMove(ctx, until, from)
	if err != nil || step > 0 || a.url != "about:blank" {
		return a, err
	}
	p.b.mu.Lock()
	own := p.opener == "" && !p.found
	p.b.mu.Unlock()
	if !own {
		return a, nil
	}
	// The empty page that every new page begins with is no entry that anybody made.
	if _, err := p.travel(ctx, 1, until); err != nil {
		return nil, err
	}
	return nil, errNoEntry()
}

func errNoEntry() error {
	return fault.New(fault.InvalidRequest, "the page's history has no entry to go to").Reason("no_history_entry")
}

// reload loads the page again; it also revives a crashed one.
func (p *page) reload(ctx context.Context, until browserv1.WaitUntil) (*arrival, error) {
	from := p.place()
	if _, err := do(ctx, p.b.conn, contextReload, reloadParams{Context: p.context, Wait: "none"}); err != nil {
		if d := dialogOf(err); d != nil {
			return p.interrupted(d), nil
		}
		return nil, p.explain(ctx, err)
	}
	return p.awaitMove(ctx, until, from)
}

// dialogOf gives the dialog that an error tells of, or nil.
func dialogOf(err error) *browserv1.Dialog {
	var open *dialogOpen
	if errors.As(err, &open) {
		return open.dialog
	}
	return nil
}
