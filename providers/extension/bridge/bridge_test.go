package bridge

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/droverhq/drover/proto/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// origin is that of some extension.
const origin = "chrome-extension://abcdefghijklmnopabcdefghijklmnop"

func settings(t *testing.T) Settings {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	seat, err := os.MkdirTemp("", "seat") // short, because a socket's path is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(seat) })
	return Settings{Listen: l.Addr().String(), StateDir: t.TempDir(), SeatDir: filepath.Join(seat, "d")}
}

func open(t *testing.T, s Settings) *Node {
	t.Helper()
	n, err := Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	until(t, n, "its role", func() bool { ok, _ := n.Ready(); return ok })
	return n
}

func until(t *testing.T, n *Node, what string, ok func() bool) {
	t.Helper()
	end := time.NewTimer(20 * time.Second)
	defer end.Stop()
	for {
		changed := n.Changed()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-end.C:
			t.Fatalf("never: %s", what)
		}
	}
}

// client is an extension of the plain catalog, or, with a life, one of ours.
type client struct {
	t    *testing.T
	ws   *websocket.Conn
	life string
}

func dial(t *testing.T, n *Node, header http.Header) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return websocket.Dial(ctx, "ws://"+n.set.Listen+socketPath, &websocket.DialOptions{HTTPHeader: header})
}

func connect(t *testing.T, n *Node, token, life string, pending ...string) *client {
	t.Helper()
	ws, _, err := dial(t, n, http.Header{"Origin": {origin}})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t, ws, life}
	t.Cleanup(func() { _ = ws.CloseNow() })
	hello := map[string]any{"type": "auth", "token": token}
	if life != "" {
		hello["life"], hello["pending"] = life, pending
	}
	c.say(hello)
	return c
}

func (c *client) say(m map[string]any) {
	c.t.Helper()
	data, _ := json.Marshal(m)
	if err := c.ws.Write(c.t.Context(), websocket.MessageText, data); err != nil {
		c.t.Fatal(err)
	}
}

// read gives the next frame of a type.
func (c *client) read(kind string) map[string]any {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	for {
		_, data, err := c.ws.Read(ctx)
		if err != nil {
			c.t.Fatalf("reading a %s: %v", kind, err)
		}
		var m map[string]any
		if json.Unmarshal(data, &m) == nil && m["type"] == kind {
			return m
		}
	}
}

// closed gives the code that the connection was closed with.
func (c *client) closed() websocket.StatusCode {
	for {
		ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
		_, _, err := c.ws.Read(ctx)
		cancel()
		if err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

// command reads a command and sees that it is the tool.
func (c *client) command(tool string) string {
	c.t.Helper()
	m := c.read("command")
	if m["tool"] != tool {
		c.t.Fatalf("the command is %v, want %s", m, tool)
	}
	return m["id"].(string)
}

// greet answers the question what it can as an extension of the plain catalog does.
func (c *client) greet() {
	c.t.Helper()
	c.say(map[string]any{"type": "result", "commandId": c.command("capabilities"), "error": "Unknown tool: capabilities"})
}

func (c *client) give(id, text string) {
	c.t.Helper()
	c.say(map[string]any{"type": "result", "commandId": id, "result": map[string]any{"content": []map[string]any{{"type": "text", "text": text}}}})
}

func offer(t *testing.T, n *Node) Config {
	t.Helper()
	c, err := n.Offer("websocket")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func connected(n *Node, target string) func() bool {
	return func() bool {
		for _, b := range n.Browsers() {
			if b.Target == target && b.Connected {
				return true
			}
		}
		return false
	}
}

// ask sends a command in the background and gives where its outcome comes.
func ask(t *testing.T, n *Node, target, tool string) <-chan outcome {
	t.Helper()
	out := make(chan outcome, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		r, err := n.Command(ctx, target, tool, map[string]any{})
		out <- outcome{r, err}
	}()
	return out
}

type outcome struct {
	r   *Result
	err error
}

func (o outcome) text(t *testing.T) string {
	t.Helper()
	if o.err != nil {
		t.Fatal(o.err)
	}
	return o.r.Text()
}

// The result of a command whose connection was cut meanwhile comes over the next one, and the command is sent once.
func TestAResultFindsItsCallerOverANewConnection(t *testing.T) {
	n := open(t, settings(t))
	o := offer(t, n)
	c := connect(t, n, o.Token, "")
	c.greet()
	until(t, n, "connected", connected(n, o.Target))
	got := ask(t, n, o.Target, "navigate")
	id := c.command("navigate")
	_ = c.ws.CloseNow()
	c = connect(t, n, o.Token, "")
	c.greet()
	c.give(id, "late")
	if text := (<-got).text(t); text != "late" {
		t.Errorf("the result is %q", text)
	}
}

// A browser that does not come back fails its calls; what a command did is then not known, and it is not sent again.
func TestALostLinkFailsItsCalls(t *testing.T) {
	n := open(t, settings(t))
	o := offer(t, n)
	c := connect(t, n, o.Token, "")
	c.greet()
	until(t, n, "connected", connected(n, o.Target))
	got := ask(t, n, o.Target, "computer")
	c.command("computer")
	_ = c.ws.CloseNow()
	lost := <-got
	if f := fault.From(lost.err); f == nil || fault.ReasonOf(lost.err) != "browser_disconnected" || f.Retryable {
		t.Errorf("under way: %v", lost.err)
	}
	away := <-ask(t, n, o.Target, "computer")
	if f := fault.From(away.err); fault.ReasonOf(away.err) != "browser_disconnected" || !f.Retryable {
		t.Errorf("while it was away: %v", away.err)
	}
}

// A worker that was killed knows nothing of the commands it had: they fail when it is back, not at their deadline.
func TestCommandsOfAKilledWorkerAreTold(t *testing.T) {
	n := open(t, settings(t))
	o := offer(t, n)
	c := connect(t, n, o.Token, "first")
	c.greet()
	until(t, n, "connected", connected(n, o.Target))
	lost := ask(t, n, o.Target, "navigate")
	c.command("navigate")
	kept := ask(t, n, o.Target, "find")
	id := c.command("find")
	_ = c.ws.CloseNow()
	c = connect(t, n, o.Token, "second", id)
	if got := <-lost; fault.ReasonOf(got.err) != "browser_disconnected" {
		t.Errorf("the lost one: %v", got)
	}
	c.say(map[string]any{"type": "result", "commandId": id, "result": map[string]any{"content": []any{}}, "life": "second", "seq": 1})
	if got := <-kept; got.err != nil {
		t.Errorf("the kept one: %v", got.err)
	}
	if ack := c.read("ack"); ack["seq"] != 1.0 {
		t.Errorf("acknowledged %v", ack)
	}
}

// Tokens: wrong ones are refused and change nothing, revoked ones stay revoked, and none is on the disk.
func TestTokens(t *testing.T) {
	set := settings(t)
	n := open(t, set)
	o := offer(t, n)
	for _, wrong := range []string{"", "drv_wrong", o.Token + "0"} {
		if code := connect(t, n, wrong, "").closed(); code != closeBadToken {
			t.Errorf("token %q: closed with %d", wrong, code)
		}
	}
	other := offer(t, n)
	ws, _, err := dial(t, n, http.Header{"Origin": {origin}})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, ws: ws}
	c.say(map[string]any{"type": "auth", "token": o.Token, "target": other.Target})
	if code := c.closed(); code != closeBadToken {
		t.Errorf("a token with another's target: closed with %d", code)
	}
	c = connect(t, n, o.Token, "")
	c.greet()
	until(t, n, "connected", connected(n, o.Target))
	if ok, err := n.Revoke(o.Target); !ok || err != nil {
		t.Fatalf("revoke: %v %v", ok, err)
	}
	if code := c.closed(); code != closeBadToken {
		t.Errorf("revoked: closed with %d", code)
	}
	if code := connect(t, n, o.Token, "").closed(); code != closeBadToken {
		t.Errorf("after that: closed with %d", code)
	}
	err = filepath.WalkDir(set.StateDir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "drv_") {
			t.Errorf("%s holds a token", path)
		}
		if info, _ := e.Info(); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Web pages, and pages whose name was made to point here, get in nowhere; an extension does.
func TestOnlyExtensionsGetIn(t *testing.T) {
	n := open(t, settings(t))
	o := offer(t, n)
	for _, bad := range []string{"https://evil.example", "http://127.0.0.1:9999", "null", "chrome-extension://x", n.URL()} {
		if _, resp, err := dial(t, n, http.Header{"Origin": {bad}}); err == nil || resp == nil || resp.StatusCode != http.StatusForbidden {
			t.Errorf("socket with origin %s: %v", bad, err)
		}
	}
	try := func(method, path, host string, header map[string]string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, n.URL()+path, strings.NewReader(`{"commandId":"x","result":{"content":[]}}`))
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			req.Host = host
		}
		for k, v := range header {
			req.Header.Set(k, v)
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s lets pages read", path)
		}
		return resp.StatusCode
	}
	_, port, _ := net.SplitHostPort(n.set.Listen)
	for _, host := range []string{"evil.example:" + port, "127.0.0.1.evil.example:" + port, "127.0.0.1:1", "localhost"} {
		for _, path := range []string{pairPath, commandPath, resultPath} {
			if got := try(http.MethodGet, path, host, nil); got != http.StatusMisdirectedRequest {
				t.Errorf("%s with host %s: %d", path, host, got)
			}
		}
	}
	good := map[string]string{"Authorization": "Bearer " + o.Token, "Content-Type": "application/json"}
	with := func(k, v string) map[string]string {
		out := map[string]string{k: v}
		for a, b := range good {
			out[a] = b
		}
		return out
	}
	for name, got := range map[string]int{
		"a result of a page":               try(http.MethodPost, resultPath, "", with("Origin", "https://evil.example")),
		"a result without origin, by page": try(http.MethodPost, resultPath, "", with("Sec-Fetch-Site", "cross-site")),
		"an offer to a page":               try(http.MethodPost, pairPath+"/offer", "", with("Origin", "https://evil.example")),
		"an offer to nobody":               try(http.MethodPost, pairPath+"/offer", "", good),
		"an offer to an extension":         try(http.MethodPost, pairPath+"/offer", "", with("Origin", origin)),
	} {
		if got != http.StatusForbidden {
			t.Errorf("%s: %d", name, got)
		}
	}
	if got := try(http.MethodPost, resultPath, "", map[string]string{"Authorization": "Bearer wrong", "Content-Type": "application/json", "Origin": origin}); got != http.StatusUnauthorized {
		t.Errorf("a wrong token: %d", got)
	}
	if got := try(http.MethodPost, pairPath+"/offer", "", map[string]string{"Content-Type": "application/json", "Origin": n.URL()}); got != http.StatusOK {
		t.Errorf("an offer to the pairing page: %d", got)
	}
	if got := try(http.MethodGet, pairPath, "LOCALHOST:"+port, nil); got != http.StatusOK {
		t.Errorf("the pairing page by its other name: %d", got)
	}
}

// The SSE transport: commands as events, results by POST, the target in both paths, 401, and the goodbye of a revocation.
func TestServerSentEvents(t *testing.T) {
	n := open(t, settings(t))
	o, err := n.Offer("sse-http")
	if err != nil {
		t.Fatal(err)
	}
	get := func(token string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.URL()+strings.ReplaceAll(o.CommandPath, "{target}", o.Target), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	bad := get("wrong")
	_ = bad.Body.Close()
	if bad.StatusCode != http.StatusUnauthorized {
		t.Errorf("a wrong token: %d", bad.StatusCode)
	}
	resp := get(o.Token)
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	next := func(prefix string) string {
		for in.Scan() {
			if rest, ok := strings.CutPrefix(in.Text(), prefix); ok {
				return rest
			}
		}
		t.Fatalf("the stream ended before %q: %v", prefix, in.Err())
		return ""
	}
	answer := func(text string) {
		var c Command
		if err := json.Unmarshal([]byte(next("data: ")), &c); err != nil {
			t.Fatal(err)
		}
		body, _ := json.Marshal(map[string]any{"commandId": c.ID, "result": map[string]any{"content": []map[string]any{{"type": "text", "text": text}}}})
		// A server URL that ends in a slash makes such a path.
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, n.URL()+"/"+strings.ReplaceAll(o.ResultPath, "{target}", o.Target), strings.NewReader(string(body)))
		req.Header.Set("Authorization", "Bearer "+o.Token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Origin", origin)
		done, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = done.Body.Close()
		if done.StatusCode != http.StatusNoContent {
			t.Fatalf("the result: %d", done.StatusCode)
		}
	}
	answer("what it can")
	until(t, n, "connected", connected(n, o.Target))
	got := ask(t, n, o.Target, "find")
	answer("found")
	if text := (<-got).text(t); text != "found" {
		t.Errorf("the result is %q", text)
	}
	if _, err := n.Revoke(o.Target); err != nil {
		t.Fatal(err)
	}
	if name := next("event: "); name != "disconnect" {
		t.Errorf("the last event is %q", name)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
}

// Several brokers of a user share one listener; when the process that holds it goes, another takes over, and the browser is
// found again with the same token.
func TestAnotherProcessTakesOver(t *testing.T) {
	set := settings(t)
	first := open(t, set)
	second, third := open(t, set), open(t, set)
	if !first.Holds() || second.Holds() || third.Holds() {
		t.Fatal("not exactly the first holds the listener")
	}
	o := offer(t, second) // any of them can pair
	c := connect(t, first, o.Token, "")
	c.greet()
	for _, n := range []*Node{second, third} {
		until(t, n, "connected", connected(n, o.Target))
		got := ask(t, n, o.Target, "find")
		c.give(c.command("find"), "found")
		if text := (<-got).text(t); text != "found" {
			t.Errorf("the result is %q", text)
		}
	}
	second.Lease(o.Target, 1)
	until(t, third, "the lease", func() bool { b := third.Browsers(); return len(b) == 1 && b[0].Leases == 1 })
	first.Close()
	until(t, second, "a holder", func() bool { return second.Holds() || third.Holds() })
	until(t, second, "a role", func() bool { ok, _ := second.Ready(); return ok })
	until(t, third, "a role", func() bool { ok, _ := third.Ready(); return ok })
	c = connect(t, second, o.Token, "")
	c.greet()
	until(t, third, "connected", connected(third, o.Target))
	until(t, third, "the lease again", func() bool { b := third.Browsers(); return len(b) == 1 && b[0].Leases == 1 })
	got := ask(t, third, o.Target, "find")
	c.give(c.command("find"), "found")
	if text := (<-got).text(t); text != "found" {
		t.Errorf("the result is %q", text)
	}
}

// A browser that takes nothing does not make the queue grow without bounds.
func TestTheQueueIsBounded(t *testing.T) {
	n := open(t, settings(t))
	o := offer(t, n)
	c := connect(t, n, o.Token, "")
	c.greet()
	until(t, n, "connected", connected(n, o.Target))
	var last error
	for range mostPending + queued + 1 {
		if _, last = n.Start(o.Target, "find", nil, func(*Result, error) {}); last != nil {
			break
		}
	}
	if fault.ReasonOf(last) != "capacity" {
		t.Errorf("the last one: %v", last)
	}
}
