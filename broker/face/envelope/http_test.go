package envelope

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/droverhq/drover/broker/brokertest"
	"github.com/droverhq/drover/broker/face/door"
	"github.com/droverhq/drover/broker/token"
)

// web is a server on a loopback port with two tokens.
type web struct {
	t        *testing.T
	port     string
	ann, bob string
	fake     *brokertest.Fake
	tokens   *token.File
	server   *Server
}

func serveWeb(t *testing.T) *web {
	t.Helper()
	tokens, err := token.Open(filepath.Join(t.TempDir(), "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	w := &web{t: t, fake: newFake(), tokens: tokens}
	if w.ann, err = tokens.New("ann", nil); err != nil {
		t.Fatal(err)
	}
	if w.bob, err = tokens.New("bob", nil); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, w.port, _ = net.SplitHostPort(l.Addr().String())
	s := &Server{
		Broker: newBroker(t, "", w.fake), limit: 1 << 20,
		Door: door.Door{Tokens: tokens, Hosts: []string{"drover.internal"}, Origins: []string{"chrome-extension://abcdef"}},
		Mounts: map[string]http.Handler{"/mcp": http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			p, _ := door.Principal(r.Context())
			io.WriteString(rw, p.Name)
		})},
	}
	s.beat, s.wait, w.server = 300*time.Millisecond, 300*time.Millisecond, s
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return w
}

// raw sends a request as it is written and gives the answer. {HOST}, {PORT} and {TOKEN} in it are filled in.
func (w *web) raw(text string) (*http.Response, string) {
	w.t.Helper()
	c, err := net.Dial("tcp", "127.0.0.1:"+w.port)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		w.t.Fatal(err)
	}
	text = strings.NewReplacer("{HOST}", "127.0.0.1:"+w.port, "{PORT}", w.port, "{TOKEN}", w.ann, "\n", "\r\n").Replace(text)
	if _, err := io.WriteString(c, text); err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols || resp.Header.Get("Content-Type") == "text/event-stream" {
		c.Close() // closing the body would read it to its end
		return resp, ""
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp, string(body)
}

const ensureBody = `{"protocol_version":"0.1","id":1,"method":"session.ensure","params":{"client_session_id":"a"}}`

// routes are requests for every path of the server, as they are right but for what HEADERS stands for.
var routes = map[string]string{
	"call":      "POST /v1/call HTTP/1.1\nHEADERSContent-Type: application/json\nContent-Length: " + fmt.Sprint(len(ensureBody)) + "\nConnection: close\n\n" + ensureBody,
	"ws":        "GET /v1/ws HTTP/1.1\nHEADERSConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n",
	"events":    "GET /v1/events?types=session.closed HTTP/1.1\nHEADERSConnection: close\n\n",
	"openapi":   "GET /v1/openapi.json HTTP/1.1\nHEADERSConnection: close\n\n",
	"artifacts": "GET /v1/artifacts/shots/1?session_id=x HTTP/1.1\nHEADERSConnection: close\n\n",
	"metrics":   "GET /metrics HTTP/1.1\nHEADERSConnection: close\n\n",
	"mcp":       "POST /mcp HTTP/1.1\nHEADERSConnection: close\n\n",
	"nothing":   "GET /nothing HTTP/1.1\nHEADERSConnection: close\n\n",
	"livez":     "GET /livez HTTP/1.1\nHEADERSConnection: close\n\n",
	"readyz":    "GET /readyz HTTP/1.1\nHEADERSConnection: close\n\n",
}

var health = []string{"livez", "readyz"}

func (w *web) try(route, headers string) int {
	w.t.Helper()
	resp, body := w.raw(strings.Replace(routes[route], "HEADERS", headers, 1))
	for name := range resp.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			w.t.Errorf("%s: there is a CORS header: %s", route, name)
		}
	}
	if strings.Contains(body, w.ann) || strings.Contains(body, w.bob) {
		w.t.Errorf("%s: a token is in the answer", route)
	}
	return resp.StatusCode
}

const auth = "Authorization: Bearer {TOKEN}\n"

// A request whose Host is not ours, as after DNS rebinding, is refused on every path, the health ones too, and does
// nothing, whatever X-Forwarded-Host says; every spelling of ours is taken.
func TestHosts(t *testing.T) {
	w := serveWeb(t)
	for route := range routes {
		for _, bad := range []string{
			"Host: evil.example:{PORT}\n", "Host: 127.0.0.1.evil.example:{PORT}\n", "Host: \n", "Host: 127.0.0.1:{PORT}\nHost: 127.0.0.1:{PORT}\n",
			"Host: 127.0.0.1:{PORT}\nHost: evil.example\n", "Host: 127.0.0.1\n", "Host: 127.0.0.1:1\n", "Host: 127.0.0.2:{PORT}\n", "Host: localhost.:{PORT}\n",
			"Host: evil.example:{PORT}\nX-Forwarded-Host: localhost:{PORT}\nForwarded: host=localhost\n", "",
			"Host: [::1%25lo]:{PORT}\n", "Host: 2130706433:{PORT}\n", "Host: evil.example@127.0.0.1:{PORT}\n",
		} {
			if got := w.try(route, bad+auth); got != 403 && got != 400 && got != 421 {
				t.Errorf("%s with %q gives %d", route, bad, got)
			}
		}
		for _, good := range []string{"localhost:{PORT}", "LOCALHOST:{PORT}", "LocalHost:{PORT}", "127.0.0.1:{PORT}", "[::1]:{PORT}", "drover.internal", "DROVER.internal:{PORT}"} {
			got := w.try(route, "Host: "+good+"\nX-Forwarded-Host: evil.example\n"+auth)
			if got == 403 || got == 401 || got == 421 || got == 400 && route != "artifacts" {
				t.Errorf("%s with Host %s gives %d", route, good, got)
			}
		}
	}
	if n := len(w.fake.Calls("session.ensure")); n != 7 {
		t.Errorf("%d calls went through, want the 7 good ones", n)
	}
	resp, _ := w.raw("GET http://evil.example/livez HTTP/1.1\nHost: {HOST}\nConnection: close\n\n")
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("an absolute form gives %d", resp.StatusCode)
	}
}

// A request from a page of another origin is refused before anything is done, with the token and without; no Origin is no
// way around the token; null, which a sandboxed frame of any site sends, is another origin; an extension needs its id
// configured and the token.
func TestOrigins(t *testing.T) {
	w := serveWeb(t)
	host := "Host: {HOST}\n"
	for route := range routes {
		for _, bad := range []string{
			"https://evil.example", "http://127.0.0.1:9999", "http://localhost:{PORT}", "https://127.0.0.1:{PORT}", "chrome-extension://other", "null", "NULL", "http://127.0.0.1:{PORT}.evil.example", "garbage", "http://127.0.0.1:{PORT}, https://evil.example",
		} {
			for _, token := range []string{"", auth} {
				if got := w.try(route, host+"Origin: "+bad+"\n"+token); got != 403 {
					t.Errorf("%s from %s (token: %t) gives %d", route, bad, token != "", got)
				}
			}
		}
		if got := w.try(route, host+"Origin: http://{HOST}\nOrigin: https://evil.example\n"+auth); got != 403 {
			t.Errorf("%s with two origins gives %d", route, got)
		}
		for _, good := range []string{"Origin: http://127.0.0.1:{PORT}\n", "Origin: chrome-extension://abcdef\n", ""} {
			if got := w.try(route, host+good+auth); got == 403 || got == 401 {
				t.Errorf("%s with %q and the token gives %d", route, good, got)
			}
			if got := w.try(route, host+good); got != 401 && !slices.Contains(health, route) {
				t.Errorf("%s with %q and no token gives %d", route, good, got)
			}
		}
	}
	if n := len(w.fake.Calls("session.ensure")); n != 3 {
		t.Errorf("%d calls went through, want the 3 good ones", n)
	}
}

// A wrong token opens nothing, however often and in whatever form; one that is revoked is wrong at once. What a simple form
// post of a page can send is refused for its content type alone.
func TestTokens(t *testing.T) {
	w := serveWeb(t)
	host := "Host: {HOST}\n"
	for _, bad := range []string{
		"Authorization: Bearer wrong\n", "Authorization: Bearer\n", "Authorization: Bearer \n", "Authorization: {TOKEN}\n", "Authorization: Basic {TOKEN}\n",
		"Authorization: Bearer {TOKEN}x\n", "Authorization: Bearer {TOKEN}\nAuthorization: Bearer wrong\n", "Cookie: token={TOKEN}\n",
	} {
		for route := range routes {
			if got := w.try(route, host+bad); got != 401 && !slices.Contains(health, route) {
				t.Errorf("%s with %q gives %d", route, bad, got)
			}
		}
	}
	for range 100 {
		w.try("call", host+"Authorization: Bearer wrong\n")
	}
	if got := w.try("call", host+auth); got != 200 {
		t.Errorf("after 100 wrong tokens the right one gives %d", got)
	}
	if got := w.try("call", host+"authorization: bEARER   {TOKEN}\n"); got != 200 {
		t.Errorf("another spelling of the header gives %d", got)
	}
	simple := strings.Replace(strings.Replace(routes["call"], "application/json", "text/plain", 1), "HEADERS", host+auth, 1)
	if resp, _ := w.raw(simple); resp.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("text/plain gives %d", resp.StatusCode)
	}
	if err := w.tokens.Revoke("ann"); err != nil {
		t.Fatal(err)
	}
	if got := w.try("call", host+auth); got != 401 {
		t.Errorf("a revoked token gives %d", got)
	}
}

func (w *web) call(token, body string) (*http.Response, map[string]any) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://127.0.0.1:"+w.port+"/v1/call", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	var out map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		w.t.Fatal(err)
	}
	return resp, out
}

// POST /v1/call is one envelope a body; the status follows the code; two tokens have nothing to do with each other.
func TestHTTPCall(t *testing.T) {
	w := serveWeb(t)
	resp, out := w.call(w.ann, ensureBody)
	if resp.StatusCode != http.StatusOK || out["ok"] != true || out["id"] != 1.0 {
		t.Fatalf("%d %v", resp.StatusCode, out)
	}
	s, _ := out["result"].(map[string]any)["session_id"].(string)
	open := func(url string) string {
		return `{"protocol_version":"0.1","id":"x","method":"page.open","params":{"session_id":"` + s + `","url":"` + url + `"}}`
	}
	for _, tt := range []struct {
		token, body string
		status      int
		code        string
	}{
		{w.ann, open("https://example.com/"), 200, ""},
		{w.bob, open("https://example.com/"), 404, "session_not_found"},
		{w.ann, open("file:///etc/passwd"), 403, "permission_denied"},
		{w.ann, open("not a url"), 400, "invalid_request"},
		{w.ann, `{"protocol_version":"0.1","id":"x","method":"page.nope"}`, 501, "unsupported_method"},
		{w.ann, `{"protocol_version":"0.1","id":"x","method":"events.subscribe"}`, 501, "unsupported_method"},
		{w.ann, `{"protocol_version":"0.1","id":"x","method":"session.ensure","params":{"client_session_id":"b","browser_preference":"webkit"}}`, 424, "setup_required"},
		{w.ann, `nonsense`, 400, "invalid_request"},
		{w.ann, ``, 400, "invalid_request"},
		{w.ann, `{"protocol_version":"0.1","id":"x","method":"page.open","params":{"x":"` + strings.Repeat("y", 2<<20) + `"}}`, 413, "invalid_request"},
	} {
		resp, out := w.call(tt.token, tt.body)
		e, _ := out["error"].(map[string]any)
		if code, _ := e["code"].(string); resp.StatusCode != tt.status || code != tt.code {
			t.Errorf("%.80s gives %d %v", tt.body, resp.StatusCode, out)
		}
	}
}

// An artifact comes whole, and in a way that no browser makes anything of.
func TestArtifacts(t *testing.T) {
	w := serveWeb(t)
	_, out := w.call(w.ann, ensureBody)
	s, _ := out["result"].(map[string]any)["session_id"].(string)
	get := func(token, path string) (*http.Response, string) {
		return w.raw("GET " + path + " HTTP/1.1\nHost: {HOST}\nAuthorization: Bearer " + token + "\nConnection: close\n\n")
	}
	resp, body := get(w.ann, "/v1/artifacts/shots/1?session_id="+s)
	h := resp.Header
	if resp.StatusCode != http.StatusOK || body != "<html>not for the browser</html>" || h.Get("Content-Type") != "text/html" || h.Get("Content-Disposition") != "attachment" ||
		h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%d %q %v", resp.StatusCode, body, h)
	}
	for path, want := range map[string]int{
		"/v1/artifacts/shots/2?session_id=" + s: 400, "/v1/artifacts/shots/1?session_id=nobody": 404, "/v1/artifacts/shots/1": 400,
	} {
		if resp, _ := get(w.ann, path); resp.StatusCode != want {
			t.Errorf("%s gives %d", path, resp.StatusCode)
		}
	}
	if resp, _ := get(w.bob, "/v1/artifacts/shots/1?session_id="+s); resp.StatusCode != http.StatusNotFound {
		t.Errorf("bob gets %d", resp.StatusCode)
	}
}

// What the server counts is told to those who have a token, and holds no ids and no URLs.
func TestMetrics(t *testing.T) {
	w := serveWeb(t)
	w.call(w.ann, ensureBody)
	_, body := w.raw(strings.Replace(routes["metrics"], "HEADERS", "Host: {HOST}\n"+auth, 1))
	for _, want := range []string{`drover_requests_total{code="ok",method="session.ensure",provider="cdp"} 1`, `drover_sessions{provider="cdp",state="ready"} 1`, `drover_provider_up{provider="cdp"} 1`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in\n%s", want, body)
		}
	}
}

// dial opens a WebSocket.
func (w *web) dial(token string) *websocket.Conn {
	w.t.Helper()
	c, resp, err := websocket.Dial(w.t.Context(), "ws://127.0.0.1:"+w.port+"/v1/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.Body != nil {
		resp.Body.Close()
	}
	c.SetReadLimit(1 << 24)
	w.t.Cleanup(func() { c.CloseNow() })
	return c
}

// frames sends a text frame and gives the next one.
func frames(t *testing.T, c *websocket.Conn, msg string) map[string]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if msg != "" {
		if err := c.Write(ctx, websocket.MessageText, []byte(msg)); err != nil {
			t.Fatal(err)
		}
	}
	_, data, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The WebSocket speaks the same envelopes, with events, and goes on after frames that are too large or no text; its sessions
// outlive it for the grace time.
func TestWebSocket(t *testing.T) {
	w := serveWeb(t)
	c := w.dial(w.ann)
	s, _ := frames(t, c, ensureBody)["result"].(map[string]any)["session_id"].(string)
	if s == "" {
		t.Fatal("no session")
	}
	if got := frames(t, c, `{"protocol_version":"0.1","id":2,"method":"events.subscribe","params":{"types":["dialog.opened"]}}`); got["ok"] != true {
		t.Errorf("subscribe gives %v", got)
	}
	got := []map[string]any{
		frames(t, c, strings.ReplaceAll(ask("3", "page.click", `"selector":"dialog"`), "$s", s)), frames(t, c, ""),
	}
	if !slices.ContainsFunc(got, func(m map[string]any) bool { return m["event"] == "dialog.opened" }) || !slices.ContainsFunc(got, func(m map[string]any) bool { return m["id"] == "3" }) {
		t.Errorf("got %v", got)
	}
	if got := frames(t, c, `{"x":"`+strings.Repeat("y", 2<<20)+`"}`); got["error"].(map[string]any)["details"].(map[string]any)["reason"] != "payload_too_large" {
		t.Errorf("a frame too large gives %v", got)
	}
	if err := c.Write(t.Context(), websocket.MessageBinary, []byte(ensureBody)); err != nil {
		t.Fatal(err)
	}
	if got := frames(t, c, ""); got["error"].(map[string]any)["code"] != "invalid_request" {
		t.Errorf("a binary frame gives %v", got)
	}
	if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Fatal(err)
	}
	again := frames(t, w.dial(w.ann), ensureBody)["result"].(map[string]any)
	if again["session_id"] != s || again["created"] != false {
		t.Errorf("after a reconnect: %v", again)
	}
	if other := frames(t, w.dial(w.bob), ensureBody)["result"].(map[string]any); other["session_id"] == s {
		t.Error("bob got ann's session")
	}
}

// A token that is revoked is of no use on a WebSocket that is open already.
func TestRevokedTokenEndsWebSocket(t *testing.T) {
	w := serveWeb(t)
	c := w.dial(w.ann)
	if got := frames(t, c, ensureBody); got["ok"] != true {
		t.Fatalf("got %v", got)
	}
	if err := w.tokens.Revoke("ann"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := c.Write(ctx, websocket.MessageText, []byte(ensureBody)); err != nil {
		t.Fatal(err)
	}
	if _, data, err := c.Read(ctx); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("got %s, %v", data, err)
	}
	if got := frames(t, w.dial(w.bob), ensureBody); got["ok"] != true {
		t.Errorf("the other one gets %v", got)
	}
}

// The peer of the unix socket is known by its user id; its sessions outlive the connection. The folder and the socket are
// this user's alone, a socket that is in use is not taken away, one that was left behind is.
func TestSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	path := filepath.Join(dir, "drover.sock")
	b := newBroker(t, "", newFake())
	serve := func() (stop func()) {
		l, err := door.Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		done := make(chan error, 1)
		go func() { done <- ServeSocket(ctx, b, l, nil) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("the socket ended with %v", err)
			}
		}
	}
	stop := serve()
	if _, err := door.Listen(path); !errors.Is(err, door.ErrInUse) {
		t.Errorf("a second broker gets %v", err)
	}
	line := func() string {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, ensureBody+"\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	first, second := line(), line()
	if !strings.Contains(first, `"created":true`) || !strings.Contains(second, `"created":false`) {
		t.Errorf("got %s and %s", first, second)
	}
	stop()
	serve()()
}

// A path that is not clean is no way to an answer that the door did not allow: not even to a redirect.
func TestUncleanPaths(t *testing.T) {
	w := serveWeb(t)
	for _, path := range []string{"//v1/call", "/v1/../v1/call", "/v1/./call", "/mcp/../metrics", "//evil.example/v1/call", "/v1//ws", "/../livez"} {
		for _, c := range []struct {
			headers string
			status  int
		}{
			{"Host: evil.example\n" + auth, 403}, {"Host: {HOST}\nOrigin: https://evil.example\n" + auth, 403}, {"Host: {HOST}\n", 401}, {"Host: {HOST}\n" + auth, 404},
		} {
			resp, body := w.raw("GET " + path + " HTTP/1.1\n" + c.headers + "Connection: close\n\n")
			if resp.StatusCode != c.status || resp.Header.Get("Location") != "" {
				t.Errorf("%s with %q gives %d, want %d: %s", path, c.headers, resp.StatusCode, c.status, body)
			}
		}
	}
}
