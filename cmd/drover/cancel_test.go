package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker/face/grpc/client"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/wire"
)

// slowSite serves a page that never comes, and one that tells when somebody types. Whoever asks for the first is told of on
// asked, and on gone when the browser gives it up.
type slowSite struct {
	url                string
	asked, gone, typed chan string
}

func newSlowSite(t *testing.T) *slowSite {
	s := &slowSite{asked: make(chan string, 16), gone: make(chan string, 16), typed: make(chan string, 1024)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := r.URL.Query().Get("who")
		switch r.URL.Path {
		case "/never":
			s.asked <- who
			<-r.Context().Done()
			s.gone <- who
		case "/typed":
			s.typed <- who
		default:
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, `<!doctype html><title>Form</title><input id=who aria-label=Words><script>who.oninput = () => fetch('/typed' + location.search)</script>`)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	s.url = server.URL
	return s
}

// hears waits for a word on a channel, and skips others.
func hears(t *testing.T, from chan string, word string) {
	t.Helper()
	late := time.After(patience / 2)
	for {
		select {
		case got := <-from:
			if got == word {
				return
			}
		case <-late:
			t.Fatal("it does not come to the browser")
		}
	}
}

// caller is a way to call: do calls and waits, start calls and gives what cancels the call and waits for its end.
type caller interface {
	do(method, params string) string
	start(method, params string) (cancel func())
}

// Guards that a call which is given up ends in the browser too, on every face: a navigation is broken off, as its server
// sees, and typing stops, as the page sees; the page is then free for the next call.
func TestCancellationReachesTheBrowser(t *testing.T) {
	h, s := setHomes(t), newSlowSite(t)
	ready := startServe(t)
	base, token := addressOf(t, ready)
	for name, open := range map[string]func(*testing.T) caller{
		"HTTP":                     func(t *testing.T) caller { return &overHTTP{t: t, base: base, token: token} },
		"WebSocket":                func(t *testing.T) caller { return dialWebSocket(t, base, token) },
		"stdio":                    func(t *testing.T) caller { return byLines(t, "stdio", "--connect") },
		"gRPC":                     func(t *testing.T) caller { return dialGRPC(t, h) },
		"MCP on stdio":             func(t *testing.T) caller { return byLines(t, "mcp", "--connect") },
		"MCP over HTTP":            func(t *testing.T) caller { return &overMCP{t: t, base: base, token: token} },
		"MCP over HTTP, eras past": func(t *testing.T) caller { return oldMCP(t, base, token) },
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t)
			session := ""
			if made := c.do("session.ensure", `{"client_session_id":"`+name+`"}`); made != "" {
				session = `"session_id":"` + made + `",`
			}
			at := func(path string) string { return `{` + session + `"url":"` + s.url + path + `","timeout_ms":600000}` }
			c.do("page.open", at("/form?who="+strings.ReplaceAll(name, " ", "+")))

			cancel := c.start("page.open", at("/never?who="+strings.ReplaceAll(name, " ", "+")))
			hears(t, s.asked, name)
			cancel()
			hears(t, s.gone, name)

			c.do("page.open", at("/form?who="+strings.ReplaceAll(name, " ", "+")))
			cancel = c.start("page.type", `{`+session+`"selector":"#who","text":"`+strings.Repeat("a", 1500)+`","delay_ms":300,"timeout_ms":600000}`)
			hears(t, s.typed, name)
			cancel()
			if got := c.do("page.type", `{`+session+`"selector":"#who","text":"z"}`); !strings.HasSuffix(got, "az") || len(got) > 1000 {
				t.Errorf("the field holds %q", got)
			}
		})
	}
}

// telling gives what a test looks at of an answer: the session's id, or the value of the field.
func telling(t *testing.T, answer []byte) string {
	t.Helper()
	var r struct {
		Result struct {
			Session    string `json:"session_id"`
			Value      string `json:"value"`
			IsError    bool   `json:"isError"`
			Structured struct {
				Value string `json:"value"`
			} `json:"structuredContent"`
		} `json:"result"`
		Error any `json:"error"`
	}
	if err := json.Unmarshal(answer, &r); err != nil || r.Error != nil || r.Result.IsError {
		t.Fatalf("the answer is %s, %v", answer, err)
	}
	return r.Result.Session + r.Result.Value + r.Result.Structured.Value
}

func envelopeOf(id int, method, params string) string {
	return fmt.Sprintf(`{"protocol_version":"0.1","id":%d,"method":%q,"params":%s}`, id, method, params)
}

// toolOf gives a call of a method as a call of its tool.
func toolOf(id int, method, params, meta string) string {
	name := "browser_" + strings.TrimPrefix(method, "page.")
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, id, name, params, meta)
}

// modern is the _meta of the newest era.
const modern = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// overHTTP sends an envelope a request, and gives up by hanging up.
type overHTTP struct {
	t           *testing.T
	base, token string
}

func (c *overHTTP) do(method, params string) string {
	body, err := post(c.t.Context(), c.base+"/v1/call", c.token, envelopeOf(1, method, params), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return telling(c.t, body)
}

func (c *overHTTP) start(method, params string) func() {
	return hangUp(c.t, func(ctx context.Context) error {
		_, err := post(ctx, c.base+"/v1/call", c.token, envelopeOf(1, method, params), nil)
		return err
	})
}

// hangUp runs a call until it is given up.
func hangUp(t *testing.T, call func(context.Context) error) func() {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	return func() {
		cancel()
		if err := <-done; err == nil {
			t.Error("the call succeeded")
		}
	}
}

func post(ctx context.Context, url, token, body string, headers map[string]string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + token} {
		req.Header.Set(k, v)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	resp, err := (&http.Client{Timeout: 2 * patience}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	for line := range strings.Lines(string(out)) { // the answer of MCP may be the last event of a stream
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			out = []byte(data)
		}
	}
	return out, err
}

// overMCP calls tools over HTTP, and gives up by hanging up; past has the headers of a session of an era past.
type overMCP struct {
	t           *testing.T
	base, token string
	past        map[string]string
	last        int
}

func oldMCP(t *testing.T, base, token string) caller {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + token}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	c := &overMCP{t: t, base: base, token: token, past: map[string]string{
		"Mcp-Session-Id": resp.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version": "2025-06-18",
	}}
	if _, err := post(t.Context(), base+"/mcp", token, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, c.past); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *overMCP) request(method, params string) (body string, headers map[string]string) {
	c.last++
	if c.past != nil {
		return toolOf(c.last, method, params, ""), c.past
	}
	params = `{"session":"` + c.t.Name() + `",` + params[1:]
	return toolOf(c.last, method, params, modern), map[string]string{
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "browser_" + strings.TrimPrefix(method, "page."),
	}
}

func (c *overMCP) do(method, params string) string {
	if method == "session.ensure" {
		return "" // the first call makes it
	}
	body, headers := c.request(method, params)
	answer, err := post(c.t.Context(), c.base+"/mcp", c.token, body, headers)
	if err != nil {
		c.t.Fatal(err)
	}
	return telling(c.t, answer)
}

func (c *overMCP) start(method, params string) func() {
	body, headers := c.request(method, params)
	id := c.last
	if c.past == nil {
		return hangUp(c.t, func(ctx context.Context) error {
			_, err := post(ctx, c.base+"/mcp", c.token, body, headers)
			return err
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = post(c.t.Context(), c.base+"/mcp", c.token, body, headers)
	}()
	return func() {
		if _, err := post(c.t.Context(), c.base+"/mcp", c.token, cancelled(id), c.past); err != nil {
			c.t.Fatal(err)
		}
		<-done
	}
}

func cancelled(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":"the person changed their mind"}}`, id)
}

// overGRPC gives up by the end of the call's context.
type overGRPC struct {
	t *testing.T
	*client.Client
}

func dialGRPC(t *testing.T, h homes) caller {
	t.Helper()
	c, err := client.Dial("unix://"+h.socket()+".grpc", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &overGRPC{t, c}
}

func (c *overGRPC) call(ctx context.Context, method, params string) (proto.Message, error) {
	m := must(method)
	req, resp := m.NewRequest(), m.NewResponse()
	if err := wire.Unmarshal([]byte(params), req); err != nil {
		c.t.Fatal(err)
	}
	return resp, c.Conn().Invoke(ctx, m.Path, req, resp)
}

func (c *overGRPC) do(method, params string) string {
	resp, err := c.call(c.t.Context(), method, params)
	if err != nil {
		c.t.Fatal(err)
	}
	switch r := resp.(type) {
	case *browserv1.EnsureSessionResponse:
		return r.GetSessionId()
	case *browserv1.TypeResponse:
		return r.GetValue()
	}
	return ""
}

func (c *overGRPC) start(method, params string) func() {
	return hangUp(c.t, func(ctx context.Context) error {
		_, err := c.call(ctx, method, params)
		return err
	})
}

// lines sends messages one by one, and gives up by another message.
type lines struct {
	t    *testing.T
	mcp  bool
	pid  int // of drover; 0 where it is not the test's child
	last int
	send func(string)
	next func() ([]byte, error)
}

func dialWebSocket(t *testing.T, base, token string) caller {
	t.Helper()
	ws, resp, err := websocket.Dial(t.Context(), strings.Replace(base, "http", "ws", 1)+"/v1/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body != nil {
		resp.Body.Close()
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	return &lines{
		t: t, send: func(msg string) {
			if err := ws.Write(t.Context(), websocket.MessageText, []byte(msg)); err != nil {
				t.Fatal(err)
			}
		},
		next: func() ([]byte, error) {
			_, msg, err := ws.Read(t.Context())
			return msg, err
		},
	}
}

// byLines starts drover with these arguments.
func byLines(t *testing.T, args ...string) caller {
	t.Helper()
	cmd := exec.Command("drover", append(args, "--log-level", "error")...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	read := bufio.NewReader(out)
	return &lines{
		t: t, mcp: args[0] == "mcp", pid: cmd.Process.Pid,
		send: func(msg string) {
			if _, err := io.WriteString(in, msg+"\n"); err != nil {
				t.Fatal(err)
			}
		},
		next: func() ([]byte, error) { return read.ReadBytes('\n') },
	}
}

func (c *lines) request(method, params string) {
	c.last++
	if c.mcp {
		c.send(toolOf(c.last, method, params, modern))
		return
	}
	c.send(envelopeOf(c.last, method, params))
}

// answer reads until the answer to a request comes.
func (c *lines) answer(id int) []byte {
	for {
		msg, err := c.next()
		if err != nil {
			c.t.Fatal(err)
		}
		if strings.Contains(string(msg), fmt.Sprintf(`"id":%d,`, id)) {
			return msg
		}
	}
}

func (c *lines) do(method, params string) string {
	if c.mcp && method == "session.ensure" {
		return ""
	}
	c.request(method, params)
	return telling(c.t, c.answer(c.last))
}

func (c *lines) start(method, params string) func() {
	c.request(method, params)
	id := c.last
	return func() {
		if c.mcp {
			c.send(cancelled(id))
			return
		}
		c.request("call.cancel", fmt.Sprintf(`{"id":%d}`, id))
		if got := c.answer(id); !strings.Contains(string(got), `"reason":"cancelled"`) {
			c.t.Errorf("the call that was cancelled is answered %s", got)
		}
	}
}
