package webdriver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/tebeka/selenium"
)

// link is what the selenium package lacks for one session: contexts, its own address, capabilities that the package
// drops, and the commands that it does not know. One command is under way at a time.
type link struct {
	name   string // the host by which the package's shared client finds this link
	base   *url.URL
	caps   map[string]any
	turn   chan struct{} // holds one token when no command is under way
	ctx    context.Context
	remote selenium.WebDriver
	id     string
}

// links are the live links by name; the package has one HTTP client for all.
var links sync.Map

type router struct{ next http.RoundTripper }

func init() { //nolint:gochecknoinits // The package's client is a global; a link is found by its host.
	selenium.HTTPClient = &http.Client{Transport: router{&http.Transport{Proxy: nil}}}
}

// RoundTrip sends a command to the driver of its link, for as long as the call's context lasts.
func (r router) RoundTrip(req *http.Request) (*http.Response, error) {
	v, ok := links.Load(req.URL.Host)
	if !ok {
		return nil, errors.New("the driver is gone")
	}
	l := v.(*link)
	out := req.Clone(l.ctx)
	out.URL.Scheme, out.URL.Host, out.Host = l.base.Scheme, l.base.Host, l.base.Host
	if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/session") {
		body, err := json.Marshal(map[string]any{"capabilities": map[string]any{"alwaysMatch": l.caps}})
		if err != nil {
			return nil, fmt.Errorf("writing capabilities: %w", err)
		}
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	out.Header.Set("Content-Type", "application/json; charset=utf-8")
	return r.next.RoundTrip(out)
}

// newLink connects to a driver and has it start its browser.
func newLink(ctx context.Context, name, address string, caps map[string]any) (*link, error) {
	base, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the driver's address: %w", err)
	}
	l := &link{name: name, base: base, caps: caps, turn: make(chan struct{}, 1), ctx: ctx}
	links.Store(name, l)
	l.remote, err = selenium.NewRemote(selenium.Capabilities{"browserName": caps["browserName"]}, "http://"+name+base.Path)
	if err != nil {
		links.Delete(name)
		return nil, fmt.Errorf("the driver started no session: %w", err)
	}
	l.id = l.remote.SessionID()
	l.turn <- struct{}{}
	return l, nil
}

// with runs commands of the package under a context, when no other is under way.
func (l *link) with(ctx context.Context, fn func(selenium.WebDriver) error) error {
	select {
	case <-l.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { l.turn <- struct{}{} }()
	l.ctx = ctx
	err := fn(l.remote)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// post sends a command that the package does not know. It runs inside with.
func (l *link) post(path string, body any) (json.RawMessage, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("writing a command for the driver: %w", err)
	}
	address := "http://" + l.name + l.base.Path + "/session/" + l.id + "/" + path
	req, err := http.NewRequestWithContext(l.ctx, http.MethodPost, address, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("writing a command for the driver: %w", err)
	}
	resp, err := selenium.HTTPClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("talking to the driver: %w", err)
	}
	defer resp.Body.Close()
	var answer struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("reading the driver's answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		failed := &selenium.Error{HTTPCode: resp.StatusCode}
		if json.Unmarshal(answer.Value, failed) != nil || failed.Err == "" {
			return nil, fmt.Errorf("the driver answered with HTTP status %d", resp.StatusCode)
		}
		return nil, failed
	}
	return answer.Value, nil
}

// refused says whether a driver refused with one of the codes (WebDriver, 6.6 "Errors").
func refused(err error, codes ...string) bool {
	var e *selenium.Error
	if !errors.As(err, &e) {
		return false
	}
	for _, c := range codes {
		if e.Err == c {
			return true
		}
	}
	return false
}
