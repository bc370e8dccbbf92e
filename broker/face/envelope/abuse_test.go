package envelope

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// Guards the tests of the way in: routes has a request for every path that the server has, so that a new path cannot be
// forgotten, and each of them reaches the path that it is for.
func TestEveryPathIsTested(t *testing.T) {
	w := serveWeb(t)
	s := &Server{Broker: w.server.Broker, Mounts: w.server.Mounts}
	s.Handler()
	mux := http.NewServeMux()
	for _, p := range s.paths {
		mux.HandleFunc(p, func(http.ResponseWriter, *http.Request) {})
	}
	left := slices.Clone(s.paths)
	for name, text := range routes {
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.ReplaceAll(strings.Replace(text, "HEADERS", "Host: a\n", 1), "\n", "\r\n"))))
		if err != nil {
			t.Fatal(err)
		}
		_, pattern := mux.Handler(req)
		i := slices.Index(left, pattern)
		if i < 0 {
			t.Errorf("%s is for %q, which another one is for, or nothing", name, pattern)
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	if len(left) > 0 {
		t.Errorf("no request is for %q", left)
	}
}

// firstLine gives the first line of the request of a route, with another method.
func firstLine(text, method string) string {
	_, rest, _ := strings.Cut(text, " ")
	line, _, _ := strings.Cut(rest, "\n")
	return method + " " + line + "\n"
}

// statusOfRaw sends a request as it is written, and gives the status of the answer, or 0 where the connection is closed
// without one.
func (w *web) statusOfRaw(text string) int {
	w.t.Helper()
	c, err := net.Dial("tcp", "127.0.0.1:"+w.port)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		w.t.Fatal(err)
	}
	text = strings.NewReplacer("{HOST}", "127.0.0.1:"+w.port, "{TOKEN}", w.ann, "\n", "\r\n").Replace(text)
	_, _ = io.WriteString(c, text) // the server may hang up before all of it is sent
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// Guards every path against a body that never ends: it is answered, by what is wrong with it where the path takes a body,
// and the connection is closed when the body's time is over, whatever the method.
func TestSlowBodies(t *testing.T) {
	w := serveWeb(t)
	slow := func(name, text, method string) {
		c, err := net.Dial("tcp", "127.0.0.1:"+w.port)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		head := firstLine(text, method) + "Host: {HOST}\n" + auth + "Content-Type: application/json\nContent-Length: 1000\n\n{"
		head = strings.NewReplacer("{HOST}", "127.0.0.1:"+w.port, "{TOKEN}", w.ann, "\n", "\r\n").Replace(head)
		if _, err := io.WriteString(c, head); err != nil {
			t.Error(err)
		}
		if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Error(err)
		}
		answer, err := io.ReadAll(c) // to the end, which the server makes
		if err != nil {
			t.Errorf("%s %s: the connection is held: %v", method, name, err)
		}
		if name == "call" && method == http.MethodPost && !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
			t.Errorf("%s %s: got %.60q", method, name, answer)
		}
	}
	var all sync.WaitGroup
	for name, text := range routes {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodPut} {
			all.Go(func() { slow(name, text, method) })
		}
	}
	all.Wait()
}

// Guards every path against a body that is too long: it is refused where it is read, and not read where the path takes none.
func TestLongBodies(t *testing.T) {
	w := serveWeb(t)
	long := strings.Repeat(" ", 2<<20)
	for name, text := range routes {
		got := w.statusOfRaw(firstLine(text, http.MethodPost) + "Host: {HOST}\n" + auth + "Content-Type: application/json\nContent-Length: 2097152\n\n" + long)
		want := http.StatusMethodNotAllowed
		switch name {
		case "call":
			want = http.StatusRequestEntityTooLarge
		case "mcp", "nothing":
			continue // MCP has a limit and a test of its own; where nothing is, nothing is read
		}
		if got != want && got != http.StatusNotFound {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}

// Guards the server against a thousand clients at once that begin a request and do not go on: every path answers others
// meanwhile, and so it does a thousand that do.
func TestThousandConnections(t *testing.T) {
	w := serveWeb(t)
	var begun []net.Conn
	t.Cleanup(func() {
		for _, c := range begun {
			c.Close()
		}
	})
	for range 1000 {
		c, err := net.Dial("tcp", "127.0.0.1:"+w.port)
		if err != nil {
			t.Fatal(err)
		}
		begun = append(begun, c)
		if _, err := io.WriteString(c, "POST /v1/call HTTP/1.1\r\nHost: 127.0.0.1:"+w.port+"\r\nX-"); err != nil {
			t.Fatal(err)
		}
	}
	for name := range routes {
		if got := w.try(name, "Host: {HOST}\n"+auth); got == 0 || got >= 500 {
			t.Errorf("%s: got %d", name, got)
		}
	}
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			if got := w.statusOfRaw("GET /livez HTTP/1.1\nHost: {HOST}\nConnection: close\n\n"); got != http.StatusOK {
				t.Errorf("got %d", got)
			}
		})
	}
	all.Wait()
}

// Guards the sessions of others on every path that names one: they are not found, as if they were not there.
func TestSessionsOfOthers(t *testing.T) {
	w := serveWeb(t)
	_, made := w.call(w.ann, ensureBody)
	id := made["result"].(map[string]any)["session_id"].(string)
	get := func(token, path string) int {
		return w.statusOfRaw("GET " + path + " HTTP/1.1\nHost: {HOST}\nAuthorization: Bearer " + token + "\nConnection: close\n\n")
	}
	open := `{"protocol_version":"0.1","id":1,"method":"page.open","params":{"session_id":"` + id + `","url":"http://a.test/"}}`
	if resp, _ := w.call(w.bob, open); resp.StatusCode != http.StatusNotFound {
		t.Errorf("/v1/call: got %d", resp.StatusCode)
	}
	for _, path := range []string{"/v1/artifacts/shots/1?session_id=" + id, "/v1/events?session_ids=" + id} {
		if got := get(w.bob, path); got != http.StatusNotFound {
			t.Errorf("%s: got %d", path, got)
		}
	}
	ws := w.dial(w.bob)
	defer ws.Close(websocket.StatusNormalClosure, "")
	for _, msg := range []string{open, `{"protocol_version":"0.1","id":2,"method":"events.subscribe","params":{"session_ids":["` + id + `"]}}`} {
		got := frames(t, ws, msg)
		if e, _ := got["error"].(map[string]any); e["code"] != "session_not_found" {
			t.Errorf("/v1/ws: got %v", got)
		}
	}
	if n := len(w.fake.Calls("page.open")); n != 0 {
		t.Errorf("%d calls went through", n)
	}
}
