package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlptrace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker/face/grpc/client"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// collector takes spans by OTLP over HTTP.
type collector struct {
	url string

	mu    sync.Mutex
	spans []told
}

// told is a span and the program that told it.
type told struct {
	service string
	*otlptrace.Span
}

func collect(t *testing.T) *collector {
	c := &collector{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var req coltrace.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &req)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, rs := range req.GetResourceSpans() {
			service := ""
			for _, kv := range rs.GetResource().GetAttributes() {
				if kv.GetKey() == "service.name" {
					service = kv.GetValue().GetStringValue()
				}
			}
			for _, ss := range rs.GetScopeSpans() {
				for _, span := range ss.GetSpans() {
					c.spans = append(c.spans, told{service, span})
				}
			}
		}
	}))
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

// way gives the spans of a trace around the innermost one, from its root on, each as SERVICE:NAME.
func (c *collector) way(trace, inner string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	byID := map[string]told{}
	var at *told
	for _, s := range c.spans {
		if hex.EncodeToString(s.GetTraceId()) == trace {
			byID[string(s.GetSpanId())] = s
			if s.GetName() == inner {
				at = &s
			}
		}
	}
	if at == nil {
		return "", fmt.Errorf("there is no span %q in the trace", inner)
	}
	names := []string{}
	for s, ok := *at, true; ok; s, ok = byID[string(s.GetParentSpanId())] {
		names = append([]string{s.service + ":" + s.GetName()}, names...)
		if hex.EncodeToString(s.GetParentSpanId()) == theirSpan {
			return strings.Join(names, " > "), nil
		}
	}
	return "", fmt.Errorf("the way %v does not begin at the caller's span", names)
}

const theirSpan = "00f067aa0ba902b7"

// Guards that one trace holds the whole way of a call, from the caller's span over each face and the broker into the
// provider's own process, also for its own methods and for the start of the browser; and that no span tells a URL.
func TestOneTraceOverEveryFace(t *testing.T) {
	h, page, c := setHomes(t), site(t), collect(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.url)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	config := filepath.Join(h.dir, "config.hcl")
	if err := os.WriteFile(config, []byte(`passthrough { allow = ["cdp.send"] }`), 0o600); err != nil {
		t.Fatal(err)
	}
	ready := startServe(t, "--config", config)
	base, token := addressOf(t, ready)

	parent := func(n int) (trace, header string) {
		trace = fmt.Sprintf("%032x", 0xabc000+n)
		return trace, "00-" + trace + "-" + theirSpan + "-01"
	}
	post := func(path, traceparent, body string, more map[string]string) string {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Authorization": "Bearer " + token, "Traceparent": traceparent,
		} {
			req.Header.Set(k, v)
		}
		for k, v := range more {
			req.Header.Set(k, v)
		}
		resp, err := (&http.Client{Timeout: patience}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		out, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s %v", path, resp.Status, out, err)
		}
		return string(out)
	}
	open := func(session string) string {
		return `{"protocol_version":"0.1","id":1,"method":"page.open","params":{"session_id":"` + session + `","url":"` + page + `/form?secret=1"}}`
	}
	provider := " > drover:route > drover:provider page.open > drover-provider-cdp:browser page.open"
	want := map[string][2]string{} // by trace: the innermost span, and the way to it

	// HTTP, where the browser starts too.
	trace, header := parent(1)
	session := strings.Split(strings.SplitAfter(post("/v1/call", header, `{"protocol_version":"0.1","id":1,"method":"session.ensure","params":{"client_session_id":"a"}}`, nil), `"session_id":"`)[1], `"`)[0]
	want[trace] = [2]string{"start browser", "drover:POST /v1/call > drover:route > drover:provider session.ensure > drover-provider-cdp:browser session.ensure > drover-provider-cdp:start browser"}
	trace, header = parent(2)
	post("/v1/call", header, open(session), nil)
	want[trace] = [2]string{"browser page.open", "drover:POST /v1/call" + provider}

	// A method of the provider's own.
	trace, header = parent(3)
	post("/v1/call", header, `{"protocol_version":"0.1","id":1,"method":"provider.command","params":{"session_id":"`+session+`","provider_method":"cdp.send","params":{"method":"Page.enable"}}}`, nil)
	want[trace] = [2]string{"browser cdp.send", "drover:POST /v1/call > drover:route > drover:provider provider.command > drover-provider-cdp:browser cdp.send"}

	// A WebSocket, whose handshake carries the header.
	trace, header = parent(4)
	ws, resp, err := websocket.Dial(t.Context(), strings.Replace(base, "http", "ws", 1)+"/v1/ws", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + token}, "Traceparent": {header}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	if resp.Body != nil {
		resp.Body.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := ws.Write(ctx, websocket.MessageText, []byte(open(session))); err != nil {
		t.Fatal(err)
	}
	if _, answer, err := ws.Read(ctx); err != nil || !bytes.Contains(answer, []byte(`"ok":true`)) {
		t.Fatalf("over the WebSocket: %s %v", answer, err)
	}
	want[trace] = [2]string{"browser page.open", strings.TrimPrefix(provider, " > ")}

	// MCP over HTTP, by the header; and on stdio, by _meta.
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`
	tool := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"browser_open","arguments":{"url":"` + page + `/form?secret=1"},` + meta
	trace, header = parent(5)
	post("/mcp", header, tool+`}}}`, map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "browser_open"})
	want[trace] = [2]string{"browser page.open", "drover:tools/call browser_open" + provider}
	trace, header = parent(6)
	mcp := exec.Command("drover", "mcp", "--log-level", "error")
	mcp.Stdin = strings.NewReader(tool + `,"traceparent":"` + header + `"}}}` + "\n")
	if out, err := mcp.Output(); err != nil || !bytes.Contains(out, []byte(`"navigation_state":"complete"`)) {
		t.Fatalf("drover mcp: %s %v", out, err)
	}
	want[trace] = [2]string{"browser page.open", "drover:tools/call browser_open" + provider}

	// gRPC, by metadata.
	trace, header = parent(7)
	rpc, err := client.Dial("unix://"+h.socket()+".grpc", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rpc.Close() }()
	ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", header)
	own, err := client.Call[*browserv1.EnsureSessionResponse](ctx, rpc, &browserv1.EnsureSessionRequest{ClientSessionId: "g"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call[*browserv1.OpenResponse](ctx, rpc, &browserv1.OpenRequest{SessionId: own.GetSessionId(), Url: page + "/form"}); err != nil {
		t.Fatal(err)
	}
	want[trace] = [2]string{"browser page.open", "drover:browser.v1.PageService/Open" + provider}

	for trace, w := range want {
		eventually(t, patience, w[1], func() error {
			got, err := c.way(trace, w[0])
			if err == nil && got != w[1] {
				err = fmt.Errorf("the way is %s", got)
			}
			return err
		})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if text := s.String(); strings.Contains(text, "secret") || strings.Contains(text, "127.0.0.1") || strings.Contains(text, session) {
			t.Errorf("a span tells too much: %s", text)
		}
	}
}

// addressOf reads where a daemon serves HTTP, and its own token.
func addressOf(t *testing.T, ready string) (base, token string) {
	t.Helper()
	data, err := os.ReadFile(ready)
	var at struct {
		HTTP  string `json:"http"`
		Token string `json:"token_file"`
	}
	if err == nil {
		err = json.Unmarshal(data, &at)
	}
	if err != nil {
		t.Fatal(err)
	}
	plain, err := os.ReadFile(at.Token)
	if err != nil {
		t.Fatal(err)
	}
	return at.HTTP, strings.TrimSpace(string(plain))
}
