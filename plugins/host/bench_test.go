package host_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/plugins/plugintest"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
)

// BenchmarkHop measures one call through a provider process that does nothing: the host, gRPC both ways, the server. The
// payload goes both ways.
func BenchmarkHop(b *testing.B) {
	for _, mtls := range []bool{true, false} {
		spec := plugintest.Spec(b, "null")
		spec.NoMTLS = !mtls
		i := launch(b, spec)
		for _, size := range []int{1 << 10, 200 << 10} {
			for _, parallel := range []int{1, 16} {
				b.Run(fmt.Sprintf("mtls=%t/%dKB/parallel=%d", mtls, size>>10, parallel), func(b *testing.B) {
					hop(b, i, size, parallel)
				})
			}
		}
	}
}

func hop(b *testing.B, i *host.Instance, size, parallel int) {
	m, ok := catalog.Lookup("page.eval")
	if !ok {
		b.Fatal("no page.eval")
	}
	req := &browserv1.EvalRequest{SessionId: "s1", Expression: strings.Repeat("x", size)}
	b.ReportAllocs()
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range parallel {
		wg.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= b.N {
					return
				}
				began := time.Now()
				if _, err := i.Call(b.Context(), m, req); err != nil {
					b.Error(err)
					return
				}
				took[n] = time.Since(began)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkLaunch measures a start until the provider is described and configured, and the stop.
func BenchmarkLaunch(b *testing.B) {
	for _, mtls := range []bool{true, false} {
		b.Run(fmt.Sprintf("mtls=%t", mtls), func(b *testing.B) {
			spec := plugintest.Spec(b, "null")
			spec.NoMTLS = !mtls
			var stopping time.Duration
			for range b.N {
				i, err := host.Launch(b.Context(), spec)
				if err != nil {
					b.Fatal(err)
				}
				began := time.Now()
				stop(b, i)
				stopping += time.Since(began)
			}
			b.ReportMetric(float64(stopping.Microseconds())/float64(b.N), "stop-µs/op")
		})
	}
}
