package mcp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/face/door"
	"github.com/droverhq/drover/broker/face/envelope"
	"github.com/droverhq/drover/broker/face/mcp"
	"github.com/droverhq/drover/broker/trace"
	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/plugins/plugintest"
	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

const (
	theirTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	traceparent = "00-" + theirTrace + "-00f067aa0ba902b7-01"
	secretURL   = "http://shop.test/cart?card=4242"
)

// heard notes the trace context that a provider gets.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) add(ctx context.Context) {
	md, _ := metadata.FromIncomingContext(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, strings.Join(md.Get("traceparent"), ","))
}

func (h *heard) last() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) == 0 {
		return ""
	}
	return h.all[len(h.all)-1]
}

// tracedHouse is a house whose spans are kept, before a provider over a real gRPC connection.
func tracedHouse(t *testing.T) (*house, *tracetest.InMemoryExporter, *heard) {
	t.Helper()
	told := &heard{}
	f := plugintest.NewSessions(plugins.Info{ID: "cdp", Families: []string{"chromium"}})
	f.On("page.open", plugintest.Step{Do: func(ctx context.Context, _ proto.Message) (proto.Message, error) {
		told.add(ctx)
		return &browserv1.OpenResponse{PageId: "page-1", Url: secretURL, Title: "A secret title"}, nil
	}})
	spans := tracetest.NewInMemoryExporter()
	p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	t.Cleanup(func() { _ = p.Shutdown(context.WithoutCancel(t.Context())) })
	h := &house{t: t, broker: broker.New(broker.Options{
		Policy: policy.New(policy.Default()), Sources: []broker.Source{running{plugintest.Connect(t, f.Server())}}, Tracer: trace.New(p),
	})}
	h.face = mcp.New(mcp.Options{Broker: h.broker, Version: "test"})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		h.face.Close(ctx)
		h.broker.Close(ctx)
	})
	return h, spans, told
}

// chain gives the names of a span and of those around it, the innermost last, when all are of the caller's trace.
func chain(t *testing.T, all tracetest.SpanStubs, inner string) []string {
	t.Helper()
	for _, s := range all {
		if s.Name != inner || s.SpanContext.TraceID().String() != theirTrace {
			continue
		}
		names := []string{s.Name}
		for parent := s.Parent; ; {
			found := false
			for _, p := range all {
				if p.SpanContext.SpanID() == parent.SpanID() {
					names, parent, found = append([]string{p.Name}, names...), p.Parent, true
					break
				}
			}
			if !found {
				if parent.SpanID().String() != "00f067aa0ba902b7" {
					t.Errorf("%v does not begin at the caller's span", names)
				}
				return names
			}
		}
	}
	t.Fatalf("there is no span %q of the caller's trace", inner)
	return nil
}

// quiet tests that spans tell nothing of pages: no URL, no text, no session's id.
func quiet(t *testing.T, all tracetest.SpanStubs, secrets ...string) {
	t.Helper()
	for _, s := range all {
		for _, kv := range s.Attributes {
			for _, secret := range append(secrets, "shop.test", "4242", "secret") {
				if strings.Contains(kv.Value.String(), secret) {
					t.Errorf("%s tells %s=%s", s.Name, kv.Key, kv.Value.String())
				}
			}
		}
	}
}

// Guards that one trace spans the agent, the face, the broker and the provider process, over streams by _meta.
func TestTraceByMeta(t *testing.T) {
	h, spans, told := tracedHouse(t)
	u := h.connect("mcp", mcp.Hello{}, nil)
	res, err := u.CallTool(t.Context(), &sdk.CallToolParams{
		Name: "browser_open", Arguments: map[string]any{"url": secretURL}, Meta: sdk.Meta{"traceparent": traceparent},
	})
	if err != nil || res.IsError {
		t.Fatal(res, err)
	}
	all := spans.GetSpans()
	for inner, want := range map[string]string{
		"provider page.open":      "tools/call browser_open > route > provider page.open",
		"provider session.ensure": "tools/call browser_open > route > provider session.ensure",
	} {
		if got := strings.Join(chain(t, all, inner), " > "); got != want {
			t.Errorf("the way is %s", got)
		}
	}
	for _, s := range all {
		if s.Name == "provider page.open" && !strings.Contains(told.last(), theirTrace+"-"+s.SpanContext.SpanID().String()) {
			t.Errorf("the provider heard %q", told.last())
		}
	}
	quiet(t, all)
}

// Guards the same over HTTP, by headers: for MCP and for envelopes. Errors tell their code.
func TestTraceByHeader(t *testing.T) {
	h, spans, told := tracedHouse(t)
	web := &envelope.Server{Broker: h.broker, Door: door.Door{Tokens: tokens{}}, Mounts: map[string]http.Handler{"/mcp": h.face.Handler()}}
	s := httptest.NewServer(web.Handler())
	t.Cleanup(s.Close)
	call := func(body string) int {
		req := request(t, s.URL+"/v1/call", "ann", strings.NewReader(body))
		req.Header.Set("traceparent", traceparent)
		return status(t, req)
	}
	call(`{"protocol_version":"0.1","id":1,"method":"session.ensure","params":{"client_session_id":"a"}}`)
	if got := strings.Join(chain(t, spans.GetSpans(), "provider session.ensure"), " > "); got != "POST /v1/call > route > provider session.ensure" {
		t.Errorf("the way is %s", got)
	}
	spans.Reset()
	call(`{"protocol_version":"0.1","id":1,"method":"page.open","params":{"session_id":"nobody","url":"` + secretURL + `"}}`)
	for _, sp := range spans.GetSpans() {
		if sp.Name == "route" {
			words := ""
			for _, kv := range sp.Attributes {
				words += string(kv.Key) + "=" + kv.Value.String() + " "
			}
			if sp.Status.Description != "session_not_found" || !strings.Contains(words, "error.type=session_not_found") || !strings.Contains(words, "drover.method=page.open") {
				t.Errorf("a failure tells %s %v", words, sp.Status)
			}
		}
	}
	quiet(t, spans.GetSpans(), "nobody")
	spans.Reset()
	req := request(t, s.URL+"/mcp", "ann", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"browser_open","arguments":{"url":"`+secretURL+`"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`))
	req.Header.Set("traceparent", traceparent)
	req.Header.Set("MCP-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", "tools/call")
	req.Header.Set("Mcp-Name", "browser_open")
	if got := status(t, req); got != http.StatusOK {
		t.Fatalf("MCP gives %d", got)
	}
	if got := strings.Join(chain(t, spans.GetSpans(), "provider page.open"), " > "); got != "tools/call browser_open > route > provider page.open" {
		t.Errorf("the way is %s", got)
	}
	if !strings.Contains(told.last(), theirTrace) {
		t.Errorf("the provider heard %q", told.last())
	}
}
