package cdp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto"
	protocol "github.com/chromedp/cdproto/cdp"
	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	pagedomain "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"

	"github.com/droverhq/drover/proto/fault"
)

// attach gives the running browser that the config names, and connects to it where that is not done yet.
func (p *Provider) attach(ctx context.Context) (*browser, error) {
	p.mu.Lock()
	b := p.attached
	p.mu.Unlock()
	if b != nil && !b.gone() {
		return b, nil
	}
	address := p.settings().AttachURL
	if address == "" {
		address = defaultAttachURL
	}
	refuse := func(err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fault.New(fault.NotReady, "no browser answers at %s", address).Reason("attach_failed").Retry("same").Cause(err).
			Hint("start one with --remote-debugging-port=9222 and a --user-data-dir of its own, or set attach_url")
	}
	dial, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	endpoint, err := debuggerURL(dial, address)
	if err != nil {
		return nil, refuse(err)
	}
	conn, err := remote.DialContext(dial, endpoint)
	if err != nil {
		return nil, refuse(err)
	}
	b, err = p.connect(conn, product{path: address, label: "Chromium", name: "chromium"}, nil, nil) //nolint:contextcheck // the connection outlives the call that makes it
	if err != nil {
		return nil, refuse(err)
	}
	p.mu.Lock()
	p.browsers[b] = struct{}{}
	p.attached = b
	p.mu.Unlock()
	if err := b.begin(ctx); err != nil {
		b.close(context.WithoutCancel(ctx))
		return nil, refuse(err)
	}
	return b, nil
}

// adopt lets a session that shares the profile of a running browser see the pages that a person has open there. They
// are let go of, not closed, when the session ends.
func (s *session) adopt(ctx context.Context) error {
	apart, err := ask(ctx, s.b, target.GetBrowserContexts, protocol.Empty{})
	if err != nil {
		return err
	}
	all, err := ask(ctx, s.b, target.GetTargets, target.GetTargetsParams{})
	if err != nil {
		return err
	}
	for _, info := range all.TargetInfos {
		s.b.mu.Lock()
		ours := info.Type != "page" || slices.Contains(apart.BrowserContextIDs, info.BrowserContextID)
		for _, pg := range s.b.pages {
			ours = ours || pg.target == info.TargetID
		}
		if !ours {
			s.b.adopting[info.TargetID] = s
		}
		s.b.mu.Unlock()
		if ours || strings.HasPrefix(info.URL, "devtools://") {
			continue
		}
		if _, err := ask(ctx, s.b, target.AttachToTarget, target.AttachToTargetParams{TargetID: info.TargetID, Flatten: yes()}); err != nil {
			s.b.mu.Lock()
			delete(s.b.adopting, info.TargetID) // It was closed meanwhile.
			s.b.mu.Unlock()
		}
	}
	return nil
}

// seed takes in the frames of a page that was there before.
func (p *page) seed(m *cdproto.Message, err error) {
	if err != nil || m.Error != nil {
		return
	}
	var res pagedomain.GetFrameTreeResult
	if jsonv2.Unmarshal(m.Result, &res, chromedp.DefaultUnmarshalOptions) != nil || res.FrameTree == nil {
		return
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	var walk func(t *pagedomain.FrameTree)
	walk = func(t *pagedomain.FrameTree) {
		f := p.frameLocked(t.Frame.ID)
		f.parent, f.loader, f.url = t.Frame.ParentID, t.Frame.LoaderID, t.Frame.URL+t.Frame.URLFragment
		if f.ch == nil {
			f.ch = p.ch
		}
		for _, child := range t.ChildFrames {
			walk(child)
		}
	}
	walk(res.FrameTree)
	p.notifyLocked()
}

// debuggerURL gives the WebSocket of a running browser. An http URL, and a ws URL without a path, are asked for it.
func debuggerURL(ctx context.Context, address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("the attach URL: %w", err)
	}
	if strings.HasPrefix(u.Scheme, "ws") && strings.Trim(u.Path, "/") != "" {
		return address, nil
	}
	ask := url.URL{Scheme: "http", Host: u.Host, Path: "/json/version"}
	if u.Scheme == "https" || u.Scheme == "wss" {
		ask.Scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, ask.String(), nil)
	if err != nil {
		return "", fmt.Errorf("the attach URL: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("asking for the debugger's address: %w", err)
	}
	defer resp.Body.Close()
	var told struct {
		URL string `json:"webSocketDebuggerUrl"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&told); err != nil || told.URL == "" {
		return "", fmt.Errorf("%s gave no webSocketDebuggerUrl (HTTP %d)", ask.String(), resp.StatusCode)
	}
	return told.URL, nil
}
