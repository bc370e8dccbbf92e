package extension

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/providers/cdp"
)

// The way through the extension costs a small multiple of a debugging pipe. Aimed at are a click at most twice, a snapshot of
// 2,000 rows at most one and a half times, in the same run.
func BenchmarkBesideCDP(t *testing.B) {
	var rows strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&rows, `<tr><td>Row %d</td><td><button>Open %d</button></td></tr>`, i, i)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html><title>Rows</title><button id="go">Go</button><table>%s</table>`, rows.String())
	}))
	t.Cleanup(s.Close)
	at := newPlace(t)
	ours := newRig(t, at, nil)
	startChrome(t, unpacked(t)).pair(at.url(), "websocket")
	piped := &rig{t: t, srv: cdp.New()}
	t.Cleanup(piped.close)
	ids := map[*rig]string{ours: ours.session("a"), piped: do[*browserv1.EnsureSessionResponse](piped, &browserv1.EnsureSessionRequest{ClientSessionId: "a"}).GetSessionId()}
	clicks, snaps := map[*rig][]time.Duration{}, map[*rig][]time.Duration{}
	for r, id := range ids {
		do[*browserv1.OpenResponse](r, &browserv1.OpenRequest{SessionId: id, Url: s.URL})
	}
	for range 15 {
		for r, id := range ids {
			began := time.Now()
			do[*browserv1.ClickResponse](r, &browserv1.ClickRequest{SessionId: id, Target: selector("#go")})
			clicks[r] = append(clicks[r], time.Since(began))
		}
	}
	for range 7 {
		for r, id := range ids {
			began := time.Now()
			do[*browserv1.SnapshotResponse](r, &browserv1.SnapshotRequest{SessionId: id, MaxNodes: new(int32)})
			snaps[r] = append(snaps[r], time.Since(began))
		}
	}
	median := func(d []time.Duration) float64 { slices.Sort(d); return float64(d[len(d)/2]) }
	click, snap := median(clicks[ours])/median(clicks[piped]), median(snaps[ours])/median(snaps[piped])
	t.ReportMetric(click, "x-click")
	t.ReportMetric(snap, "x-snapshot")
}
