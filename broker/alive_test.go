package broker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// Guards that provider.status says whether a browser runs now, not as of the provider's start; and that it waits only for a
// moment for a provider that does not answer.
func TestStatusTellsOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs, hangs atomic.Bool
		f := cdp().On("provider.status", func(ctx context.Context, _ proto.Message) (proto.Message, error) {
			if hangs.Load() {
				return stuck(ctx, nil)
			}
			return &browserv1.StatusResponse{BrowserRunning: runs.Load()}, nil
		})
		u := build(t, "", f).user("ann")
		u.ensure("a")
		for _, want := range []bool{true, false, true} {
			runs.Store(want)
			all, one := do[*browserv1.StatusResponse](u, &browserv1.StatusRequest{}), do[*browserv1.StatusResponse](u, &browserv1.StatusRequest{ProviderId: "cdp"})
			if all.GetBrowserRunning() != want || one.GetBrowserRunning() != want || one.GetState() != "ready" {
				t.Errorf("it runs: %v, and the answers are %v and %v", want, all, one)
			}
		}
		hangs.Store(true)
		start := time.Now()
		if one := do[*browserv1.StatusResponse](u, &browserv1.StatusRequest{ProviderId: "cdp"}); one.GetBrowserRunning() || time.Since(start) > time.Second {
			t.Errorf("after %v: %v", time.Since(start), one)
		}
	})
}
