package mcp_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/brokertest"
	"github.com/droverhq/drover/broker/face/mcp"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

func withCustom(f *brokertest.Fake) *brokertest.Fake {
	f.Description.Capabilities.CustomMethods = []*browserv1.CustomMethod{{Name: "cdp.send"}, {Name: "cdp.secret"}}
	return f
}

func ensures(f *brokertest.Fake) []string {
	var out []string
	for _, m := range f.Calls("session.ensure") {
		out = append(out, m.(*browserv1.EnsureSessionRequest).GetClientSessionId())
	}
	return out
}

// Guards that the session is there without asking, once, and that calls go to it.
func TestSessionIsMadeAtTheFirstCall(t *testing.T) {
	f := fake()
	u := build(t, "", f).agent()
	u.do("browser_open", map[string]any{"url": "http://a.test/"})
	u.do("browser_click", map[string]any{"selector": "a"})
	if n := len(f.Calls("session.ensure")); n != 1 {
		t.Errorf("%d sessions", n)
	}
	if got := f.Calls("page.click")[0].(*browserv1.ClickRequest).GetSessionId(); got != f.Native() {
		t.Errorf("the click went to %s", got)
	}
	r := u.do("browser_session", nil)
	if r.str("browser_family") != "chromium" || r.fields["session_id"] != nil {
		t.Errorf("got %v", r.fields)
	}
	u.do("browser_close", nil)
	u.fails("browser_close", nil, "session_not_found")
}

// Guards that two clients never share a browser by accident, and do where both name it.
func TestClientsAreIsolated(t *testing.T) {
	f := fake()
	h := build(t, "", f)
	a, b := h.connect("uid:1", mcp.Hello{}, nil), h.connect("uid:1", mcp.Hello{}, nil)
	a.do("browser_open", map[string]any{"url": "http://a.test/"})
	b.do("browser_open", map[string]any{"url": "http://b.test/"})
	opens := f.Calls("page.open")
	if opens[0].(*browserv1.OpenRequest).GetSessionId() == opens[1].(*browserv1.OpenRequest).GetSessionId() {
		t.Error("two clients have one browser")
	}
	a.do("browser_open", map[string]any{"url": "http://a.test/", "session": "team"})
	b.do("browser_open", map[string]any{"url": "http://b.test/", "session": "team"})
	opens = f.Calls("page.open")
	if opens[2].(*browserv1.OpenRequest).GetSessionId() != opens[3].(*browserv1.OpenRequest).GetSessionId() {
		t.Error("a session that both name is not shared")
	}
	c := h.connect("uid:2", mcp.Hello{}, nil)
	c.do("browser_open", map[string]any{"url": "http://c.test/", "session": "team"})
	opens = f.Calls("page.open")
	if opens[3].(*browserv1.OpenRequest).GetSessionId() == opens[4].(*browserv1.OpenRequest).GetSessionId() {
		t.Error("another principal got into the session")
	}
}

// Guards that sessions end with the connection that made them.
func TestSessionsEndWithTheConnection(t *testing.T) {
	f := fake()
	h := build(t, "", f)
	u := h.agent()
	u.do("browser_open", map[string]any{"url": "http://a.test/"})
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "the session is closed", func() bool { return len(f.Calls("session.close")) == 1 })
}

// Guards a browser that is lost: the call that finds out is told, with the next step, and the next call has a new one.
func TestLostBrowser(t *testing.T) {
	f := fake()
	u := build(t, "", f).agent()
	u.do("browser_open", map[string]any{"url": "http://a.test/"})
	f.Kill()
	r := u.try("browser_click", map[string]any{"selector": "a"}) // it may find out before or after the broker does
	if text := r.text; !r.IsError || !strings.Contains(text, "new browser") && !strings.Contains(text, "new session") {
		t.Errorf("no next step: %s", r.text)
	}
	u.do("browser_open", map[string]any{"url": "http://a.test/"})
	if n := f.Lives(); n != 2 {
		t.Errorf("%d lives", n)
	}
}

// Guards that a client may choose the browser for its sessions, and that the choice reaches the broker.
func TestBrowserOfTheConnection(t *testing.T) {
	f := brokertest.New("bidi", []string{"firefox", "chromium"})
	u := build(t, "", f).connect("mcp", mcp.Hello{Browser: "chromium"}, nil)
	if got := u.do("browser_session", nil).str("browser_family"); got != "chromium" {
		t.Errorf("got %s", got)
	}
	if got := u.do("browser_session", map[string]any{"session": "other", "browser_preference": "firefox"}).str("browser_family"); got != "firefox" {
		t.Errorf("got %s", got)
	}
	if got := ensures(f); len(got) != 2 || got[1] == got[0] {
		t.Errorf("got %v", got)
	}
}

// Guards cancellation: it reaches the provider.
func TestCancelReachesTheProvider(t *testing.T) {
	f := fake()
	began, ended := hang(f, "page.open")
	u := build(t, "", f).agent()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := u.CallTool(ctx, call("browser_open", map[string]any{"url": "http://a.test/"}))
		done <- err
	}()
	<-began
	cancel()
	if err := <-done; err == nil {
		t.Error("the call succeeded")
	}
	if err := <-ended; err == nil {
		t.Error("the provider was not told")
	}
}

// Guards the end: a process that is told to end does not wait for a call that hangs, and the browser hears of it.
func TestEndBreaksCallsOff(t *testing.T) {
	f := fake()
	began, ended := hang(f, "page.open")
	h := build(t, "", f)
	ours, theirs := net.Pipe()
	defer ours.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		caller := h.broker.Connect(broker.Principal{ID: "mcp"}, broker.Bound)
		done <- h.face.Serve(ctx, caller, mcp.Hello{}, theirs, theirs)
	}()
	u := h.dial(&sdk.IOTransport{Reader: ours, Writer: ours}, nil)
	go func() { _, _ = u.CallTool(t.Context(), call("browser_open", map[string]any{"url": "http://a.test/"})) }()
	<-began
	cancel()
	for _, c := range []chan error{ended, done} {
		select {
		case <-c:
		case <-time.After(patience / 4):
			t.Fatal("it does not end")
		}
	}
}
