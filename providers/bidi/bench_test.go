package bidi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// rows is a table of 2,000 rows with a link and a button each.
func rows() string {
	var b strings.Builder
	b.WriteString(`<!doctype html><title>Rows</title><button id="b">Click</button><table>`)
	for i := range 2000 {
		fmt.Fprintf(&b, `<tr><td>Row %d</td><td><a href="#%d">Open %d</a></td><td><button>Edit %d</button></td></tr>`, i, i, i, i)
	}
	return b.String() + "</table>"
}

// BenchmarkCosts measures what a caller waits for, on each family: a warm session, a click, a small and a large snapshot.
func BenchmarkCosts(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		page := formPage
		if r.URL.Path == "/rows" {
			page = rows()
		}
		_, _ = w.Write([]byte(page))
	}))
	defer srv.Close()
	s := New()
	defer s.Close(b.Context())
	call := func(req any) {
		if err := callAny(b.Context(), s, req); err != nil {
			b.Fatal(err)
		}
	}
	call(&browserv1.ConfigureRequest{Host: &browserv1.HostSettings{RunDir: b.TempDir()}})
	for _, family := range families {
		b.Run(family+"/cold session", func(b *testing.B) {
			for i := range b.N {
				own := New()
				if err := callAny(b.Context(), own, &browserv1.EnsureSessionRequest{ClientSessionId: fmt.Sprint("c", i), BrowserPreference: &family}); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				own.Close(b.Context())
				b.StartTimer()
			}
		})
		call(&browserv1.EnsureSessionRequest{ClientSessionId: family, BrowserPreference: &family})
		b.Run(family+"/warm session", func(b *testing.B) {
			for i := range b.N {
				id := ensureID(b, s, fmt.Sprintf("%s w%d/%d", family, b.N, i), family)
				b.StopTimer()
				call(&browserv1.CloseSessionRequest{SessionId: id})
				b.StartTimer()
			}
		})
		id := ensureID(b, s, family, family)
		call(&browserv1.OpenRequest{SessionId: id, Url: srv.URL + "/"})
		b.Run(family+"/snapshot small", func(b *testing.B) {
			for range b.N {
				call(&browserv1.SnapshotRequest{SessionId: id})
			}
		})
		b.Run(family+"/click", func(b *testing.B) {
			for range b.N {
				call(&browserv1.ClickRequest{SessionId: id, Target: bySelector("button")})
			}
		})
		b.Run(family+"/open", func(b *testing.B) {
			for range b.N {
				call(&browserv1.OpenRequest{SessionId: id, Url: srv.URL + "/"})
			}
		})
		call(&browserv1.OpenRequest{SessionId: id, Url: srv.URL + "/rows"})
		b.Run(family+"/snapshot 2000 rows outline", func(b *testing.B) {
			for range b.N {
				call(&browserv1.SnapshotRequest{
					SessionId: id, Format: browserv1.SnapshotFormat_SNAPSHOT_FORMAT_OUTLINE.Enum(), MaxNodes: ptr(int32(0)), IncludeText: ptr(false),
				})
			}
		})
	}
}
