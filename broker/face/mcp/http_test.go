package mcp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/droverhq/drover/broker/face/door"
	"github.com/droverhq/drover/broker/face/mcp"
	"github.com/droverhq/drover/broker/token"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// tokens are those of two callers.
type tokens struct{}

func (tokens) Lookup(plain string) (token.Token, bool) {
	if name, ok := strings.CutPrefix(plain, "secret-"); ok {
		return token.Token{ID: name, Name: name}, true
	}
	return token.Token{}, false
}

// http serves the face behind a door.
func (h *house) http() string {
	h.t.Helper()
	d := &door.Door{Tokens: tokens{}}
	mux := http.NewServeMux()
	mux.Handle("/mcp", d.Guard(h.face.Handler()))
	s := httptest.NewServer(mux)
	h.t.Cleanup(s.Close)
	h.t.Cleanup(s.CloseClientConnections)
	return s.URL + "/mcp"
}

// bearer shows a token, and may force the era before.
type bearer struct {
	name string
	old  bool
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer secret-"+b.name)
	if b.old && r.Method == http.MethodPost && r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(body), `"server/discover"`) { // what a server of that era says to it
			return &http.Response{
				StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"text/plain"}},
				Body: io.NopCloser(strings.NewReader("no such method")), Request: r,
			}, nil
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (h *house) over(url, name string, old bool) *user {
	h.t.Helper()
	h.t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return h.dial(&sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{name, old}}}, nil)
}

// Guards the stateless era over HTTP: a session has a name that the client is told and gives again; without one a call that
// needs a page is refused, so that nobody gets another's browser by accident.
func TestStatelessHTTP(t *testing.T) {
	f := fake()
	h := build(t, "", f)
	url := h.http()
	a, b := h.over(url, "ann", false), h.over(url, "bob", false)
	if v := a.InitializeResult().ProtocolVersion; v != "2026-07-28" {
		t.Fatalf("negotiated %s", v)
	}
	text := a.fails("browser_snapshot", nil, "invalid_request")
	if !strings.Contains(text, "browser_open without one makes it") {
		t.Errorf("no next step: %s", text)
	}
	name := a.do("browser_open", map[string]any{"url": "http://a.test/"}).str("session")
	if name == "" {
		t.Fatal("the session's name is not told")
	}
	a.do("browser_click", map[string]any{"selector": "a", "session": name})
	other := a.do("browser_open", map[string]any{"url": "http://a.test/"}).str("session")
	if other == name || other == "" {
		t.Errorf("two openings without a session share %q", other)
	}
	b.do("browser_click", map[string]any{"selector": "a", "session": name})
	clicks := f.Calls("page.click")
	if clicks[0].(*browserv1.ClickRequest).GetSessionId() == clicks[1].(*browserv1.ClickRequest).GetSessionId() {
		t.Error("another principal got into the session")
	}
}

// Guards the era before over HTTP: each MCP session has its own browser session, which ends with it, and the MCP session is
// of no use to another principal.
func TestStatefulHTTP(t *testing.T) {
	f := fake()
	h := build(t, "", f)
	url := h.http()
	a, b := h.over(url, "ann", true), h.over(url, "ann", true)
	if v := a.InitializeResult().ProtocolVersion; v >= "2026-07-28" {
		t.Fatalf("negotiated %s", v)
	}
	a.do("browser_open", map[string]any{"url": "http://a.test/"})
	b.do("browser_open", map[string]any{"url": "http://b.test/"})
	a.do("browser_click", map[string]any{"selector": "a"})
	if names := ensures(f); len(names) != 2 || names[0] == names[1] {
		t.Errorf("sessions %v", names)
	}
	if code := post(t, url, "bob", a.ID(), "2025-06-18"); code != http.StatusForbidden {
		t.Errorf("another principal with the session's id: %d", code)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "its browser session is closed", func() bool { return len(f.Calls("session.close")) == 1 })
}

const listTools = `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`

func post(t *testing.T, url, name, session, version string) int {
	t.Helper()
	req := request(t, url, name, strings.NewReader(listTools))
	req.Header.Set("Mcp-Session-Id", session)
	req.Header.Set("MCP-Protocol-Version", version)
	return status(t, req)
}

func request(t *testing.T, url, name string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if name != "" {
		req.Header.Set("Authorization", "Bearer secret-"+name)
	}
	return req
}

func status(t *testing.T, req *http.Request) int {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	return resp.StatusCode
}

// Guards the way in: names and origins of others, missing and wrong tokens, bodies that are too long or of another kind.
func TestHTTPRefuses(t *testing.T) {
	h := build(t, "", fake())
	url := h.http()
	for name, c := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"nothing wrong":   {func(*http.Request) {}, http.StatusOK},
		"foreign host":    {func(r *http.Request) { r.Host = "evil.test" }, http.StatusForbidden},
		"foreign origin":  {func(r *http.Request) { r.Header.Set("Origin", "http://evil.test") }, http.StatusForbidden},
		"null origin":     {func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		"cross site":      {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"no token":        {func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusUnauthorized},
		"wrong token":     {func(r *http.Request) { r.Header.Set("Authorization", "Bearer other") }, http.StatusUnauthorized},
		"two tokens":      {func(r *http.Request) { r.Header.Add("Authorization", "Bearer secret-bob") }, http.StatusUnauthorized},
		"other kind":      {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusUnsupportedMediaType},
		"unknown profile": {func(r *http.Request) { r.URL.RawQuery = "profile=cores" }, http.StatusBadRequest},
		"long body": {func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat(" ", 5<<20))), 5<<20
		}, http.StatusRequestEntityTooLarge},
		"unknown session": {func(r *http.Request) { r.Header.Set("Mcp-Session-Id", "guess") }, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
			req := request(t, url, "ann", strings.NewReader(body))
			c.change(req)
			if got := status(t, req); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// Guards that a client of an HTTP connection that goes away ends its call in the browser too.
func TestHTTPCancelReachesTheProvider(t *testing.T) {
	for _, old := range []bool{false, true} {
		f := fake()
		began, ended := hang(f, "page.open")
		h := build(t, "", f)
		u := h.over(h.http(), "ann", old)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = u.CallTool(ctx, call("browser_open", map[string]any{"url": "http://a.test/"}))
		}()
		<-began
		cancel()
		<-done
		select {
		case <-ended:
		case <-time.After(patience):
			t.Errorf("old era %v: the provider was not told", old)
		}
	}
}

// Guards against a client that sends a body a byte at a time: it is cut off, and others are served meanwhile.
func TestSlowBody(t *testing.T) {
	h := build(t, "", fake())
	slow := mcp.New(mcp.Options{Broker: h.broker, BodyWait: 100 * time.Millisecond})
	t.Cleanup(func() { slow.Close(context.WithoutCancel(t.Context())) })
	h.face, slow = slow, h.face
	url := h.http()
	body, write := io.Pipe()
	defer write.Close()
	go func() { _, _ = write.Write([]byte("{")) }()
	req := request(t, url, "ann", body)
	done := make(chan int, 1)
	go func() { done <- status(t, req) }()
	select {
	case code := <-done:
		if code != http.StatusRequestTimeout {
			t.Errorf("got %d", code)
		}
	case <-time.After(patience):
		t.Error("it is waited for")
	}
}

// Guards that many connections at once are all served.
func TestManyConnections(t *testing.T) {
	h := build(t, "", fake())
	url := h.http()
	var all sync.WaitGroup
	var served atomic.Int64
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 0, DisableKeepAlives: true}, Timeout: patience}
	for range 1000 {
		all.Go(func() {
			req := request(t, url, "ann", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
			resp, err := client.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				served.Add(1)
			}
		})
	}
	all.Wait()
	if n := served.Load(); n != 1000 {
		t.Errorf("%d of 1000 are served", n)
	}
}
