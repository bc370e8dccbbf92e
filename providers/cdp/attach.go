package cdp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

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
	b, err = p.connect(conn, nil)
	if err != nil {
		return nil, refuse(err)
	}
	b.attached = true
	b.product = product{path: address, label: "Chromium", name: "chromium"}
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
