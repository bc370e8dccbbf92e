package envelope

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// stream opens a stream of events and gives its lines; the returned function ends it.
func (w *web) stream(token, query string) (*http.Response, *bufio.Reader, func()) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+w.port+"/v1/events"+query, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	end := func() {
		cancel()
		_ = resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
	}
	w.t.Cleanup(end)
	return resp, bufio.NewReader(resp.Body), end
}

// block reads one event or comment.
func block(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	var all strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream broke after %q: %v", all.String(), err)
		}
		if line == "\n" {
			return all.String()
		}
		all.WriteString(line)
	}
}

// dialogEvent is an event of a page, with a text that tries to be another event.
func dialogEvent(session string, n int) *browserv1.Event {
	p, err := structpb.NewStruct(map[string]any{"session_id": session, "page_id": "p", "message": fmt.Sprintf("%d\n\nevent: forged\ndata: {}\n\n", n)})
	if err != nil {
		panic(err)
	}
	return &browserv1.Event{Type: "dialog.opened", Payload: p}
}

// Events come as they are asked for, one line of data each whatever a page puts into them; another principal's stay where
// they are; silence is filled with comments; types and sessions that are not there are refused with the envelope's error.
func TestEventStream(t *testing.T) {
	w := serveWeb(t)
	_, out := w.call(w.ann, ensureBody)
	s, _ := out["result"].(map[string]any)["session_id"].(string)
	for query, want := range map[string]int{
		"?types=dialog.open": http.StatusBadRequest, "?session_ids=nobody": http.StatusNotFound, "?types=dialog.opened,nope": http.StatusBadRequest,
	} {
		if resp, _, end := w.stream(w.ann, query); resp.StatusCode != want || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s gives %d", query, resp.StatusCode)
		} else {
			end()
		}
	}
	if resp, _, _ := w.stream(w.bob, "?session_ids="+s); resp.StatusCode != http.StatusNotFound {
		t.Errorf("another's session gives %d", resp.StatusCode)
	}
	resp, ann, _ := w.stream(w.ann, "?types=dialog.opened,dialog.closed&session_ids="+s)
	if h := resp.Header; resp.StatusCode != http.StatusOK || h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", resp.StatusCode, h)
	}
	_, bob, _ := w.stream(w.bob, "")
	for _, r := range []*bufio.Reader{ann, bob} {
		if got := block(t, r); !strings.HasPrefix(got, ": ") {
			t.Errorf("a stream begins with %q", got)
		}
	}
	native := w.fake.Native()
	w.fake.Emit(dialogEvent(native, 1))
	got := block(t, ann)
	for strings.HasPrefix(got, ": ") {
		got = block(t, ann)
	}
	if !strings.HasPrefix(got, "event: dialog.opened\ndata: {\"protocol_version\":") || strings.Count(got, "\n") != 2 || !strings.Contains(got, s) || strings.Contains(got, `"session_id":"`+native+`"`) {
		t.Errorf("got %q", got)
	}
	if got := block(t, bob); got != ": alive\n" {
		t.Errorf("the other one gets %q", got)
	}
}

// A client that does not read costs a bounded queue: it is told how much it missed.
func TestEventStreamLags(t *testing.T) {
	w := serveWeb(t)
	w.call(w.ann, ensureBody)
	_, r, _ := w.stream(w.ann, "")
	block(t, r)
	native := w.fake.Native()
	big := strings.Repeat("x", 16<<10)
	for n := range 3000 { // 48 MiB: more than sockets hold
		ev := dialogEvent(native, n)
		ev.Payload.Fields["message"] = structpb.NewStringValue(big)
		w.fake.Emit(ev)
	}
	for {
		if got := block(t, r); strings.Contains(got, "event: events.lagged\n") {
			if !strings.Contains(got, `"count":`) {
				t.Errorf("got %q", got)
			}
			return
		}
	}
}

// A stream ends with its client: nothing listens for it any more. It ends when the server is told so, too.
func TestEventStreamEnds(t *testing.T) {
	w := serveWeb(t)
	_, a, end := w.stream(w.ann, "")
	_, b, _ := w.stream(w.ann, "")
	block(t, a)
	block(t, b)
	end()
	w.server.EndStreams()
	for {
		if _, err := b.ReadString('\n'); err != nil {
			break
		}
	}
	done := make(chan struct{})
	go func() {
		w.server.sockets.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("a stream goes on without its client")
	}
}
