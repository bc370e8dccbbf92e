package cdp

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/plugins/plugintest"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/wire"
)

// BenchmarkSnapshot measures the whole way of a snapshot of about 10,000 nodes, with every room that it passes: the page and
// the provider alone, the same over the plugin's gRPC, and with the JSON that a face writes in the end.
func BenchmarkSnapshot(b *testing.B) {
	var page strings.Builder
	page.WriteString("<title>Table</title><h1>Inventory</h1><table><tbody>")
	for i := range 1430 {
		fmt.Fprintf(&page, `<tr><td>Item %[1]d</td><td><a href="#%[1]d">details %[1]d</a></td><td><button>Add %[1]d</button></td></tr>`, i)
	}
	base := site(b, map[string]string{"/": page.String()})
	r := newRig(b, nil)
	u := r.session("bench")
	u.open(base + "/")
	over := plugintest.Connect(b, r.srv)
	m, _ := catalog.Lookup("page.snapshot")
	outline := browserv1.SnapshotFormat_SNAPSHOT_FORMAT_OUTLINE
	for _, form := range []struct {
		name string
		req  *browserv1.SnapshotRequest
	}{
		{"nodes", &browserv1.SnapshotRequest{MaxNodes: new(int32)}},
		{"outline", &browserv1.SnapshotRequest{MaxNodes: new(int32), Format: &outline}},
	} {
		form.req.SessionId = u.id
		for _, room := range []string{"provider", "grpc", "json"} {
			b.Run(form.name+"/"+room, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
					call := over.Call
					if room == "provider" {
						call = r.srv.Call
					}
					resp, err := call(ctx, m, form.req)
					cancel()
					if err != nil {
						b.Fatal(err)
					}
					if n := len(resp.(*browserv1.SnapshotResponse).GetSnapshot().GetNodes()); form.name == "nodes" && n < 8000 {
						b.Fatalf("only %d nodes", n)
					}
					if room == "json" {
						data, _, err := wire.MarshalResponse(resp)
						if err != nil {
							b.Fatal(err)
						}
						b.ReportMetric(float64(len(data)), "json-bytes")
					}
				}
			})
		}
	}
}
