package firefox

import (
	"context"
	"net/url"
	"strings"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// arrival is where a navigation led. open, back, forward, reload and tab.new answer with it.
type arrival struct {
	url, title string
	state      browserv1.NavigationState
	status     int32
	warnings   []*browserv1.Warning
}

func (a *arrival) httpStatus() *int32 {
	if a.status == 0 {
		return nil
	}
	return &a.status
}

// start is a navigation's starting point.
type start struct {
	url                 string
	loads, moves, fails int
	downloads           int // of the session
	pages               int
}

func (p *page) startLocked() start {
	return start{url: p.url, loads: p.loads, moves: p.moves, fails: p.fails, downloads: len(p.s.downloads), pages: p.s.count}
}

func (p *page) place() start {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return p.startLocked()
}

// checkURL refuses what is no absolute URL and what no add-on may open. Which addresses may be opened is the broker's guard to say.
func checkURL(text string) (string, error) {
	text = strings.TrimSpace(text)
	u, err := url.Parse(text)
	if err != nil && !strings.Contains(text, ":") || err == nil && u.Scheme == "" {
		return "", fault.New(fault.InvalidRequest, "the url is not absolute").Field("url").Hint("begin it with https:// or http://")
	}
	scheme, _, _ := strings.Cut(strings.ToLower(text), ":")
	switch {
	case scheme == "http" || scheme == "https" || strings.EqualFold(text, "about:blank"):
		return text, nil
	case scheme == "javascript":
		return "", fault.New(fault.PermissionDenied, "a javascript: URL is not opened").Reason("url_refused").Field("url").Hint("use page.eval")
	}
	return "", fault.New(fault.PermissionDenied, "an add-on cannot open %s: addresses in Firefox", scheme).Reason("url_refused").Field("url").
		Hint("http: and https: addresses can be opened")
}

// goTo opens an address in the page and waits for it. The page's lane is held.
func (p *page) goTo(ctx context.Context, address string, until browserv1.WaitUntil) (*arrival, error) {
	from := p.place()
	p.b.mu.Lock()
	p.next = 0 // What an earlier navigation was answered with counts no more.
	p.b.mu.Unlock()
	var t tabInfo
	if err := p.request(ctx, "tab.navigate", map[string]any{"url": address}, &t); err != nil {
		return nil, p.explain(ctx, err)
	}
	same, _, _ := strings.Cut(from.url, "#")
	if base, _, hash := strings.Cut(address, "#"); hash && base == same && from.url == address {
		// Going where the page is already, Firefox tells nothing.
		return p.awaitMove(ctx, until, from, sameGrace)
	}
	if address == "about:blank" && from.url == "about:blank" {
		return p.awaitMove(ctx, until, from, sameGrace)
	}
	return p.awaitMove(ctx, until, from, 0)
}

// sameGrace is how long a navigation that may be none gets to show itself.
const sameGrace = 400 * time.Millisecond

// awaitMove waits until a navigation that was started reached the awaited state, or turned out to be a download or a failure.
// With grace, one that has not begun by then was none.
func (p *page) awaitMove(ctx context.Context, until browserv1.WaitUntil, from start, grace time.Duration) (*arrival, error) {
	if grace > 0 {
		wait, cancel := context.WithTimeout(ctx, grace)
		err := p.until(wait, func() bool { return p.movingLocked() || p.moves != from.moves || p.fails != from.fails })
		cancel()
		if err != nil && ctx.Err() == nil {
			return p.arrived(ctx, from)
		}
	}
	var end ending
	err := p.until(ctx, func() bool {
		end = p.endLocked(until, from)
		return end != goesOn
	})
	if err != nil {
		return nil, p.explain(ctx, err)
	}
	switch end {
	case isDownload:
		return p.downloading(ctx), nil
	case isEmpty:
		return p.emptied(ctx, from)
	case isFailed, isNothing:
		return nil, p.failedNavigation(ctx)
	case goesOn, isThere:
	}
	if until == browserv1.WaitUntil_WAIT_UNTIL_NETWORKIDLE {
		if err := p.quiet(ctx); err != nil {
			return nil, p.explain(ctx, err)
		}
	}
	return p.arrived(ctx, from)
}

// brokenSoon says whether the document turns out to be one of Firefox's error pages.
func (p *page) brokenSoon(ctx context.Context) bool {
	wait, cancel := context.WithTimeout(ctx, errorPageTime)
	defer cancel()
	return p.until(wait, func() bool { return p.broken != "" }) == nil
}

// ending is how a navigation ended.
type ending int

const (
	goesOn     ending = iota
	isThere           // the awaited state is reached
	isDownload        // it became a download
	isEmpty           // the server answered without a document
	isFailed          // it failed, or Firefox shows an error page
	isNothing         // it ended, and nothing came of it
)

// nothingGrace is how long a download may take to be told of after the tab stopped loading.
const nothingGrace = 2 * time.Second

// unloadedGrace is how long a document may take to tell that it is loaded after its tab stopped loading.
const unloadedGrace = 500 * time.Millisecond

// endLocked tells how a navigation since from ended.
func (p *page) endLocked(until browserv1.WaitUntil, from start) ending {
	stays := p.moves == from.moves
	switch {
	case stays && p.newDownloadLocked(from) != nil:
		return isDownload
	case stays && p.pending && (p.next == 204 || p.next == 205):
		p.pending = false
		return isEmpty
	case p.movingLocked():
		return goesOn
	case p.fails != from.fails, !stays && p.broken != "":
		return isFailed
	case stays && p.pending && time.Since(p.idle) > nothingGrace:
		p.pending = false
		return isNothing
	case stays:
		return goesOn
	case !p.loaded && !p.idle.IsZero() && time.Since(p.idle) > unloadedGrace:
		// A document whose script went elsewhere, in vain, never tells that it is loaded.
		p.ready, p.loaded = true, true
		return isThere
	case p.loads == from.loads, p.loaded, until == browserv1.WaitUntil_WAIT_UNTIL_DOMCONTENTLOADED && p.ready:
		return isThere
	}
	return goesOn
}

// newDownloadLocked gives a download of this session that began after from, or nil.
func (p *page) newDownloadLocked(from start) *download {
	if n := min(from.downloads, len(p.s.downloads)); n < len(p.s.downloads) {
		return p.s.downloads[n]
	}
	return nil
}

// arrived tells where the page stands.
func (p *page) arrived(ctx context.Context, from start) (*arrival, error) {
	if err := p.resize(ctx); err != nil {
		return nil, err
	}
	st, err := p.state(ctx)
	p.b.mu.Lock()
	a := &arrival{url: p.url, title: p.title, state: browserv1.NavigationState_NAVIGATION_STATE_COMPLETE, status: st.Status}
	if p.loads == from.loads {
		a.state, a.status = browserv1.NavigationState_NAVIGATION_STATE_SAME_DOCUMENT, 0
	}
	p.b.mu.Unlock()
	switch {
	case refused(err, "privileged") && strings.HasPrefix(a.url, "http") && p.brokenSoon(ctx):
		return nil, p.failedNavigation(ctx)
	case refused(err, "privileged", "document_gone"):
		// One of Firefox's own pages, or one that goes on already; what is known of it stands.
	case err != nil:
		return nil, p.explain(ctx, err)
	default:
		a.title, a.url = st.Title, st.URL
	}
	return a, nil
}

// emptied is the answer of a navigation to which the server gave no document.
func (p *page) emptied(ctx context.Context, from start) (*arrival, error) {
	p.b.mu.Lock()
	status := p.next
	p.b.mu.Unlock()
	a, err := p.arrived(ctx, from)
	if err == nil {
		a.status = status
		a.warnings = append(a.warnings, &browserv1.Warning{Code: "no_content", Message: "the server answered without a document, so the page stayed where it was"})
	}
	return a, err
}

// errorPageTime is how long the page that Firefox shows about a failure may take: the next call should meet that, not its making.
const errorPageTime = time.Second

// failedNavigation tells why an address did not open.
func (p *page) failedNavigation(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, errorPageTime)
	defer cancel()
	p.b.mu.Lock()
	why := p.broken
	p.b.mu.Unlock()
	_ = p.until(wait, func() bool { return !p.breaking }) // It is only waited for.
	if ctx.Err() != nil {
		return p.explain(ctx, context.Cause(ctx))
	}
	if why == "" {
		why = "the navigation ended without a document"
	}
	return fault.New(fault.NotReady, "the address could not be opened: %s", why).Reason("navigation_failed").
		With("net_error", why).Hint("check the address and that its server runs, then try again")
}

// downloading is the answer of a navigation that turned into a download; the page stayed where it was.
func (p *page) downloading(ctx context.Context) *arrival {
	p.b.mu.Lock()
	a := &arrival{url: p.url, title: p.title, state: browserv1.NavigationState_NAVIGATION_STATE_DOWNLOAD}
	p.b.mu.Unlock()
	if st, err := p.state(ctx); err == nil {
		a.title = st.Title
	}
	return a
}

// travel goes through the page's history by one entry, back (-1) or forward (1).
func (p *page) travel(ctx context.Context, step int, until browserv1.WaitUntil) (*arrival, error) {
	from := p.place()
	err := p.request(ctx, "tab.travel", map[string]any{"step": step}, nil)
	if err != nil && !refused(err, "no_history") {
		return nil, p.explain(ctx, err)
	}
	if err == nil {
		wait, cancel := context.WithTimeout(ctx, sameGrace)
		err = p.until(wait, func() bool { return p.movingLocked() || p.moves != from.moves || p.fails != from.fails })
		cancel()
	}
	if ctx.Err() != nil {
		return nil, p.explain(ctx, context.Cause(ctx))
	}
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "the page's history has no entry to go to").Reason("no_history_entry")
	}
	return p.awaitMove(ctx, until, from, 0)
}

// reload loads the page again.
func (p *page) reload(ctx context.Context, until browserv1.WaitUntil) (*arrival, error) {
	from := p.place()
	if err := p.request(ctx, "tab.reload", nil, nil); err != nil {
		return nil, p.explain(ctx, err)
	}
	return p.awaitMove(ctx, until, from, 0)
}
