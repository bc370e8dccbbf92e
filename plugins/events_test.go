package plugins

import (
	"context"
	"fmt"
	"testing"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// A subscriber that falls behind loses the oldest and is told how many, before the rest; the one who emits never waits.
func TestRingDropsTheOldestAndSaysSo(t *testing.T) {
	h := newHub()
	r := h.subscribe()
	for n := range ringSize + 3 {
		h.publish(&browserv1.Event{Type: fmt.Sprint(n)})
	}
	lag := r.take()
	if lag.GetType() != EventLagged || lag.GetPayload().GetFields()["count"].GetNumberValue() != 3 {
		t.Errorf("first is %v", lag)
	}
	for n := 3; n < ringSize+3; n++ {
		if got := r.take().GetType(); got != fmt.Sprint(n) {
			t.Fatalf("got %s, want %d", got, n)
		}
	}
	if e := r.take(); e != nil {
		t.Errorf("more: %v", e)
	}
}

// What happens before the broker listens is not lost, and goes to one subscriber only.
func TestBacklogGoesToTheFirstSubscriber(t *testing.T) {
	h := newHub()
	h.publish(&browserv1.Event{Type: "early"})
	first, second := h.subscribe(), h.subscribe()
	if got := first.take().GetType(); got != "early" {
		t.Errorf("first got %q", got)
	}
	if e := second.take(); e != nil {
		t.Errorf("second got %v", e)
	}
	h.publish(&browserv1.Event{Type: "both"})
	if first.take().GetType() != "both" || second.take().GetType() != "both" {
		t.Error("an event did not reach both")
	}
	h.unsubscribe(first)
	h.unsubscribe(second)
	h.publish(&browserv1.Event{Type: "between"})
	if got := h.subscribe().take().GetType(); got != "between" {
		t.Errorf("third got %q", got)
	}
}

func TestNextEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e := newRing(1).next(ctx); e != nil {
		t.Errorf("got %v", e)
	}
}
