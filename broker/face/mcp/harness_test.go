package mcp_test

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/brokertest"
	"github.com/droverhq/drover/broker/face/mcp"
	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// patience is how long a test waits for what has to come.
const patience = 20 * time.Second

// house is a face before a broker with fakes behind it.
type house struct {
	t      testing.TB
	broker *broker.Broker
	face   *mcp.Face
}

func build(t testing.TB, config string, fakes ...*brokertest.Fake) *house {
	t.Helper()
	c := policy.Default()
	if config != "" {
		var err error
		if c, err = policy.Load("test.hcl", []byte(config)); err != nil {
			t.Fatal(err)
		}
	}
	sources := make([]broker.Source, len(fakes))
	for i, f := range fakes {
		sources[i] = f
	}
	h := &house{t: t, broker: broker.New(broker.Options{Policy: policy.New(c), Sources: sources, Version: "test"})}
	h.face = mcp.New(mcp.Options{Broker: h.broker, Version: "test"})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		h.face.Close(ctx)
		h.broker.Close(ctx)
	})
	return h
}

func fake() *brokertest.Fake {
	return brokertest.New("cdp", []string{"chromium"}, "js_eval", "dialogs", "download_observe", "file_upload", "network_observe", "console_observe")
}

// stream gives the client's end of a stream that the face serves.
func (h *house) stream(principal string, hello mcp.Hello) net.Conn {
	h.t.Helper()
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	caller := h.broker.Connect(broker.Principal{ID: principal, Name: principal}, broker.Bound)
	go func() { done <- h.face.Serve(ctx, caller, hello, theirs, theirs) }()
	h.t.Cleanup(func() {
		_ = ours.Close()
		cancel()
		select {
		case err := <-done:
			if err != nil {
				h.t.Errorf("serve: %v", err)
			}
		case <-time.After(patience):
			h.t.Error("the face does not end")
		}
	})
	return ours
}

// user is a client of the SDK.
type user struct {
	t testing.TB
	*sdk.ClientSession
}

func (h *house) connect(principal string, hello mcp.Hello, o *sdk.ClientOptions) *user {
	h.t.Helper()
	c := h.stream(principal, hello)
	return h.dial(&sdk.IOTransport{Reader: c, Writer: c}, o)
}

func (h *house) dial(t sdk.Transport, o *sdk.ClientOptions) *user {
	h.t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	s, err := c.Connect(ctx, t, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = s.Close() })
	return &user{h.t, s}
}

// agent is a client with the default tools and a session of its own.
func (h *house) agent() *user { return h.connect("mcp", mcp.Hello{Session: "default"}, nil) }

// result is what a tool gave.
type result struct {
	*sdk.CallToolResult
	text   string
	fields map[string]json.RawMessage
}

// try calls a tool; the protocol must not fail.
func (u *user) try(name string, args map[string]any) result {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), patience)
	defer cancel()
	res, err := u.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		u.t.Fatalf("%s: %v", name, err)
	}
	r := result{CallToolResult: res}
	for _, c := range res.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			r.text += t.Text
		}
	}
	if res.StructuredContent != nil {
		data, err := json.Marshal(res.StructuredContent)
		if err == nil {
			err = json.Unmarshal(data, &r.fields)
		}
		if err != nil {
			u.t.Fatal(err)
		}
	}
	return r
}

// do calls a tool that must succeed.
func (u *user) do(name string, args map[string]any) result {
	u.t.Helper()
	r := u.try(name, args)
	if r.IsError {
		u.t.Fatalf("%s %v: %s", name, args, r.text)
	}
	return r
}

// fails calls a tool that must fail, and gives the text.
func (u *user) fails(name string, args map[string]any, code string) string {
	u.t.Helper()
	r := u.try(name, args)
	if !r.IsError || !strings.HasPrefix(r.text, code) {
		u.t.Fatalf("%s %v: got %s, want %s", name, args, r.text, code)
	}
	var e struct {
		Code string `json:"code"`
	}
	if err := json.Unmarshal(r.fields["error"], &e); err != nil || !strings.HasPrefix(code, e.Code) {
		u.t.Fatalf("%s: the structure says %s", name, r.fields["error"])
	}
	return r.text
}

func (r result) str(name string) string {
	var s string
	_ = json.Unmarshal(r.fields[name], &s)
	return s
}

// shows has a fake give this outline.
func shows(f *brokertest.Fake, outline string) {
	f.On("page.snapshot", func(context.Context, proto.Message) (proto.Message, error) {
		return &browserv1.SnapshotResponse{
			PageId: "page-1", Url: "http://shop.test:8080/cart?x=1", Title: "Cart", SnapshotId: "s1", Outline: &outline,
		}, nil
	})
}

// hang has calls of a method wait for the end of their context; both ends are told.
func hang(f *brokertest.Fake, method string) (began, ended chan error) {
	began, ended = make(chan error, 1), make(chan error, 1)
	f.On(method, func(ctx context.Context, _ proto.Message) (proto.Message, error) {
		began <- nil
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, fault.From(ctx.Err())
	})
	return began, ended
}

// await waits until something holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in time", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
