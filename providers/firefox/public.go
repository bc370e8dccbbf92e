package firefox

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/droverhq/drover/plugins/lane"
	"github.com/droverhq/drover/plugins/shelf"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// guest is a session in a Firefox with the public Firefox Agent Bridge: one tab, driven by the actions that the bridge has. What it
// does otherwise than a page expects is worked around here, and told where it cannot be.
type guest struct {
	p       *Provider
	b       *browser
	id      string
	client  string
	demand  demand
	lane    lane.Lane
	files   shelf.Shelf
	rich    bool // the later line of the bridge, which has evaluate, scroll and more
	version string

	mu   sync.Mutex
	tab  int64 // 0 before the first page.open
	url  string
	refs map[string]clue // what each ref stood for
	last int
}

const guestPage = "p1"

// openGuest makes a session. The bridge opens a tab with the first address only, for it opens no empty ones.
func (p *Provider) openGuest(ctx context.Context, b *browser, r *browserv1.EnsureSessionRequest, want demand) (*guest, error) {
	_, host := p.settings()
	g := &guest{
		p: p, b: b, id: "firefox-" + newToken(), client: r.GetClientSessionId(), demand: want, refs: map[string]clue{},
		files: shelf.Shelf{Root: host.GetRunDir(), Prefix: "firefox-files-"},
	}
	var pong struct {
		Pong    bool   `json:"pong"`
		Version string `json:"extensionVersion"`
	}
	brief, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := b.link.request(brief, "ping", map[string]any{}, &pong); err != nil || !pong.Pong {
		return nil, fault.New(fault.NotReady, "the public bridge does not answer").Reason("extension_silent").Retry("same").Cause(err)
	}
	// Only the later line tells its version; what it can do is asked by behaviour, not by number.
	err := b.link.request(brief, "listFrames", map[string]any{}, nil)
	g.rich = !(err != nil && strings.Contains(err.Error(), "Unknown action"))
	g.version = pong.Version
	p.mu.Lock()
	defer p.mu.Unlock()
	p.guests[g.id] = g
	return g, nil
}

// guest finds a session of the public bridge.
func (p *Provider) guest(id string) *guest {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.guests[id]
	if g != nil && g.b.gone() {
		delete(p.guests, id)
		p.lost[id] = struct{}{}
		g.files.Remove()
		return nil
	}
	return g
}

// guestOf finds the session that a client has there.
func (p *Provider) guestOf(client string) *guest {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.guests {
		if g.client == client && !g.b.gone() {
			return g
		}
	}
	return nil
}

func (g *guest) response(created bool) *browserv1.EnsureSessionResponse {
	return &browserv1.EnsureSessionResponse{
		SessionId: g.id, BrowserFamily: family, BrowserLabel: labelPublic, AttachedToExistingBrowser: true, Isolation: g.demand.isolation,
		ProviderId: g.p.srv.Info().ID, Created: created, DefaultPageId: guestPage,
		Features: []string{"element_refs", "html_snapshot", "attach_existing_browser", "synthetic_input", "extension_required", "manual_setup_required"},
		Warnings: []*browserv1.Warning{{
			Code: "reduced_fidelity", Message: "the public Firefox Agent Bridge reads and acts on the top document alone, with events that the page can tell from a person's",
		}},
	}
}

// close is session.close. The bridge cannot close a tab, so it stays with the person.
func (g *guest) close() *browserv1.CloseSessionResponse {
	g.p.mu.Lock()
	delete(g.p.guests, g.id)
	g.p.mu.Unlock()
	g.files.Remove()
	resp := &browserv1.CloseSessionResponse{Closed: true, Disposition: browserv1.Disposition_DISPOSITION_DETACHED}
	if g.tab != 0 {
		resp.Warnings = []*browserv1.Warning{{Code: "tab_left_open", Message: "the public bridge cannot close tabs; the session's tab stays open"}}
	}
	return resp
}

// enter takes the lane of the session's one page.
func (g *guest) enter(ctx context.Context, page string) (func(), error) {
	if page != "" && page != guestPage {
		return nil, fault.New(fault.PageNotFound, "there is no page %s in this session", page).Hint("the public bridge gives a session one page, %s", guestPage)
	}
	return g.lane.Take(ctx)
}

// ask sends an action. Every action names the tab, as a number, and the top frame: without a frame the first of all frames that
// answers would speak for the page, and without a tab the person's own tab would be acted on.
func (g *guest) ask(ctx context.Context, action string, params map[string]any, result any) error {
	g.mu.Lock()
	tab := g.tab
	g.mu.Unlock()
	if tab == 0 && action != "navigate" {
		return fault.New(fault.NotReady, "the session has no page yet").Reason("no_page").Hint("call page.open first")
	}
	if params == nil {
		params = map[string]any{}
	}
	if tab != 0 {
		params["tabId"] = tab
	}
	params["frameId"] = 0
	// The bridge gives up by itself after 30 s, without a word of what it did.
	ctx, cancel := context.WithTimeoutCause(ctx, 29*time.Second, context.DeadlineExceeded)
	defer cancel()
	return g.explain(ctx, g.b.link.request(ctx, action, params, result))
}

// explain gives the bridge's bare sentences the protocol's words.
func (g *guest) explain(ctx context.Context, err error) error {
	var no *refusal
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errLinkDown):
		return errBrowserGone().Cause(err)
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return fault.New(fault.NotReady, "the bridge did not answer in time").Reason("deadline_exceeded").
			Hint("the page may show a dialog, which the bridge cannot see: answer it in the window").Cause(err)
	case !errors.As(err, &no):
		return err
	}
	has := func(s string) bool { return strings.Contains(no.Message, s) }
	switch {
	case has("Element not found"):
		return fault.New(fault.ElementNotFound, "the page has no such element").Cause(err)
	case has("is not a valid selector"):
		return fault.New(fault.InvalidSelector, "not a CSS selector").Field("selector").Cause(err)
	case has("not editable"):
		return fault.New(fault.UnsupportedTarget, "the element cannot be typed into").Cause(err)
	case has("Unknown action"):
		return errGuest().Cause(err)
	case has("Illegal URL"):
		return fault.New(fault.PermissionDenied, "Firefox does not let an add-on open this address").Reason("url_refused").Field("url").Cause(err)
	case has("Receiving end does not exist"):
		return fault.New(fault.NotReady, "the page is no document that the bridge can enter: still loading, an error page, or one of Firefox's own").
			Reason("privileged_page").Retry("same").Cause(err)
	case has("Timed out waiting for page load"), has("Request timed out"), has("Timeout waiting"):
		return fault.New(fault.NavigationTimeout, "it did not come in time").Reason("deadline_exceeded").Cause(err)
	case no.Code == "too_large":
		return fault.New(fault.InvalidRequest, "the request is longer than Firefox takes").Reason("payload_too_large").Cause(err)
	}
	return fault.New(fault.InternalError, "the bridge refused: %s", clipText(no.Message, 200)).Cause(err)
}

func errGuest() *fault.Error {
	return fault.New(fault.UnsupportedMethod, "the public Firefox Agent Bridge cannot do this").Reason("bridge_limited").
		Hint("install Drover's own add-on (drover provider setup firefox), or use a provider such as bidi")
}

// where asks for title and address.
func (g *guest) where(ctx context.Context) (title, address string, err error) {
	var got struct{ Title, URL string }
	err = g.ask(ctx, "getContent", map[string]any{"format": "title"}, &got)
	if err == nil {
		g.mu.Lock()
		g.url = got.URL
		g.mu.Unlock()
	}
	return got.Title, got.URL, err
}

// open is page.open. The bridge says ok for whatever happened, with the address that was asked for, so the page is asked afterwards.
func (g *guest) open(ctx context.Context, r *browserv1.OpenRequest) (*browserv1.OpenResponse, error) {
	address, err := checkURL(r.GetUrl())
	if err != nil {
		return nil, err
	}
	if r.GetNewPage() && g.tab != 0 {
		return nil, errGuest().Field("new_page")
	}
	leave, err := g.enter(ctx, r.GetPageId())
	if err != nil {
		return nil, err
	}
	defer leave()
	var got struct {
		Tab int64 `json:"tabId"`
	}
	wait := 15 * time.Second
	if end, ok := ctx.Deadline(); ok {
		wait = max(min(wait, time.Until(end)-time.Second), 100*time.Millisecond)
	}
	before := g.url
	err = g.ask(ctx, "navigate", map[string]any{
		"url": address, "newTab": g.tab == 0, "wait": true, "timeoutMs": wait.Milliseconds(), "returnContent": false,
	}, &got)
	hash := before != "" && strings.SplitN(before, "#", 2)[0] == strings.SplitN(address, "#", 2)[0] && strings.Contains(address, "#")
	if err != nil && !(hash && fault.CodeOf(err) == fault.NavigationTimeout) { // Within a document nothing loads, and the bridge waits in vain.
		return nil, err
	}
	if got.Tab != 0 {
		g.mu.Lock()
		g.tab = got.Tab
		g.mu.Unlock()
	}
	resp := &browserv1.OpenResponse{PageId: guestPage, NavigationState: browserv1.NavigationState_NAVIGATION_STATE_COMPLETE}
	if hash {
		resp.NavigationState = browserv1.NavigationState_NAVIGATION_STATE_SAME_DOCUMENT
	}
	if resp.Title, resp.Url, err = g.where(ctx); err != nil {
		return nil, fault.New(fault.NotReady, "the address could not be opened, or shows no document").Reason("navigation_failed").Retry("same").Cause(err)
	}
	return resp, nil
}

// screenshot is page.screenshot. The bridge pictures the tab in front whatever tab is asked for, so it is made sure that ours is.
func (g *guest) screenshot(ctx context.Context, r *browserv1.ScreenshotRequest) (*browserv1.ScreenshotResponse, error) {
	if r.GetFullPage() || r.Clip != nil || r.ElementRef != nil || r.GetAnnotate() || r.GetFormat() == browserv1.ImageFormat_IMAGE_FORMAT_JPEG {
		return nil, errGuest().Hint("the public bridge gives a PNG of the viewport; leave the other fields out")
	}
	leave, err := g.enter(ctx, r.GetPageId())
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := g.front(ctx); err != nil {
		return nil, err
	}
	var got struct {
		Data string `json:"dataUrl"`
	}
	if err := g.ask(ctx, "screenshot", nil, &got); err != nil {
		return nil, err
	}
	if err := g.front(ctx); err != nil {
		return nil, err // The person changed tabs meanwhile; the picture may be of theirs, and is thrown away.
	}
	pic, err := readPicture(got.Data)
	if err != nil {
		return nil, err
	}
	return &browserv1.ScreenshotResponse{PageId: guestPage, Image: pic.data, MediaType: pic.kind, Width: int32(pic.width), Height: int32(pic.height)}, nil
}

// front makes sure that the session's tab is the one in front.
func (g *guest) front(ctx context.Context) error {
	var now struct {
		Tab json.Number `json:"tabId"`
	}
	if err := g.ask(ctx, "getActiveTab", nil, &now); err != nil {
		return err
	}
	if n, err := strconv.ParseInt(now.Tab.String(), 10, 64); err != nil || n != g.tab {
		return fault.New(fault.NotReady, "the session's tab is not in front, and the public bridge pictures no other").Reason("background_tab").
			Retry("same").Hint("bring the tab to the front in Firefox")
	}
	return nil
}

// wait is page.wait. The bridge's own waiting takes scripts for text, hidden elements for shown ones, and never answers when the page
// moves on, so the page is asked again and again.
func (g *guest) wait(ctx context.Context, r *browserv1.WaitRequest) (*browserv1.WaitResponse, error) {
	if r.SelectorPresent != nil || r.SelectorAbsent != nil || r.ElementRefPresent != nil || r.NavigationComplete {
		if r.SelectorPresent == nil || r.SelectorAbsent != nil || r.ElementRefPresent != nil {
			return nil, errGuest().Hint("the public bridge can wait for text_present, text_absent and url_matches")
		}
	}
	return g.poll(ctx, r)
}
