package mcp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/droverhq/drover/broker/face/mcp"
	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/providers/bidi"
	"github.com/droverhq/drover/providers/cdp"
)

// Guards progress on real browsers: a client that asks for it hears, in order, what the face does and what the provider
// says of itself: that a browser is chosen and starts, that it navigates, and that the page loads, while it loads.
func TestProgressOfChromium(t *testing.T) { progressOf(t, cdp.New(), "chromium") }

// Guards the same on Firefox.
func TestProgressOfFirefox(t *testing.T) { progressOf(t, bidi.New(), "firefox") }

func progressOf(t *testing.T, provider *plugins.Server, browser string) {
	h, _ := real(t, provider)
	heard := make(chan string, 64)
	u := h.connect("mcp", mcp.Hello{Browser: browser}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			heard <- r.Params.Message
		},
	})
	loading := make(chan struct{}) // closed when the client heard that the page loads: only then it is whole
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<title>Slow</title><p>" + strings.Repeat("first ", 500)))
		w.(http.Flusher).Flush()
		select {
		case <-loading:
		case <-r.Context().Done():
		}
		_, _ = w.Write([]byte("<p>last"))
	}))
	t.Cleanup(site.Close)
	t.Cleanup(site.CloseClientConnections)
	done := make(chan error, 1)
	go func() {
		params := call("browser_open", args{"url": site.URL})
		params.SetProgressToken("p1")
		res, err := u.CallTool(t.Context(), params)
		if err == nil && res.IsError {
			t.Errorf("browser_open: %v", res.Content)
		}
		done <- err
	}()
	var got []string
	for late := time.After(2 * patience); !slices.Contains(got, "the page is loading"); {
		select {
		case message := <-heard:
			got = append(got, message)
		case <-late:
			t.Fatalf("only %q was told", got)
		}
	}
	close(loading)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, want := range []string{"choosing a browser", "starting ", " is ready, by the provider ", "navigating", "the page is loading"} {
		i := slices.IndexFunc(got, func(s string) bool { return strings.Contains(s, want) })
		if i <= last {
			t.Errorf("%q is not in its place in %q", want, got)
		}
		last = i
	}
}
