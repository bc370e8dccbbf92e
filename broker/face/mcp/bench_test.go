package mcp_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker/face/mcp"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// BenchmarkCall measures a tool call through the SDK's client, the face and the broker, to a provider that does nothing.
func BenchmarkCall(b *testing.B) {
	f := fake()
	f.Deaf = true
	u := build(b, "", f).connect("mcp", mcp.Hello{}, nil)
	args := map[string]any{"selector": "a"}
	for b.Loop() {
		u.do("browser_click", args)
	}
}

// BenchmarkSnapshot measures the reply with a large outline, whole.
func BenchmarkSnapshot(b *testing.B) {
	f := fake()
	f.Deaf = true
	shows(f, strings.Repeat("- button \"Add to the basket\" [ref=d1e1234]\n", 6000))
	u := build(b, "", f).connect("mcp", mcp.Hello{}, nil)
	args := map[string]any{"budget": 0}
	for b.Loop() {
		u.do("browser_snapshot", args)
	}
}

// BenchmarkServer measures what a new connection costs: a server with its tools.
func BenchmarkServer(b *testing.B) {
	h := build(b, "", fake())
	for b.Loop() {
		u := h.connect("mcp", mcp.Hello{}, nil)
		_ = u.Close()
	}
}

// BenchmarkPicture measures the reply with a picture of 100 KB.
func BenchmarkPicture(b *testing.B) {
	f := fake()
	f.Deaf = true
	image := bytes.Repeat([]byte("0123456789"), 10_000)
	f.On("page.screenshot", func(context.Context, proto.Message) (proto.Message, error) {
		return &browserv1.ScreenshotResponse{PageId: "page-1", Image: image, MediaType: "image/png"}, nil
	})
	u := build(b, "", f).connect("mcp", mcp.Hello{}, nil)
	for b.Loop() {
		u.do("browser_screenshot", nil)
	}
}
