package broker_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// The next session of a profile that persists is made only when the provider has forgotten the one that was lost: they are
// called the same below, so a late close would end the new one.
func TestPersistentSessionComesAfterItsLastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cdp()
		f.Description.Capabilities.Features = append(f.Description.Capabilities.Features, "persistent_profile")
		var mu sync.Mutex
		var order []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, what)
		}
		f.On("session.close", func(context.Context, proto.Message) (proto.Message, error) {
			<-time.After(time.Second)
			note("closed")
			return &browserv1.CloseSessionResponse{Closed: true}, nil
		})
		f.On("session.ensure", func(context.Context, proto.Message) (proto.Message, error) {
			note("made")
			return &browserv1.EnsureSessionResponse{SessionId: "same"}, nil
		})
		f.On("page.click", func(context.Context, proto.Message) (proto.Message, error) {
			return nil, fault.New(fault.BrowserNotRunning, "gone")
		})
		u := build(t, "", f).user("ann")
		keep := func(r *browserv1.EnsureSessionRequest) { r.Persist = proto.Bool(true) }
		s := u.ensure("a", keep).GetSessionId()
		u.fails(click(s, ""), fault.BrowserNotRunning, "provider_exited")
		u.ensure("a", keep)
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"made", "closed", "made"}; !slices.Equal(order, want) {
			t.Errorf("it went %v", order)
		}
	})
}
