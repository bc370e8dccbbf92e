package broker_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/brokertest"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

func emit(f *brokertest.Fake, kind string, payload map[string]any) {
	s, err := structpb.NewStruct(payload)
	if err != nil {
		panic(err)
	}
	f.Emit(&browserv1.Event{Type: kind, Payload: s})
}

// Events reach the owner of their session, with the broker's id, and nobody else; types and sessions can be chosen; what is
// about no session that is known goes nowhere.
func TestEventsReachTheirOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cdp()
		h := build(t, "", f)
		ann, bob := h.user("ann"), h.user("bob")
		s := ann.ensure("a").GetSessionId()
		native := f.Native()
		other := ann.ensure("b").GetSessionId()
		bob.ensure("a")
		all, foreign, dialogs := listen(t, ann), listen(t, bob), listen(t, ann, "dialog.opened")
		one, err := ann.Subscribe(nil, []string{other})
		if err != nil {
			t.Fatal(err)
		}
		emit(f, "page.navigated", map[string]any{"session_id": native, "page_id": "p", "url": "https://example.com/"})
		emit(f, "page.navigated", map[string]any{"session_id": "nobody"})
		emit(f, "page.navigated", map[string]any{})
		emit(f, "made.up", map[string]any{"session_id": native})
		emit(f, "provider.state_changed", map[string]any{"session_id": native})
		emit(f, "custom.event", map[string]any{"session_id": native, "name": "cdp.Network.dataReceived"})
		emit(f, "dialog.opened", map[string]any{"session_id": native})
		if ev := next(t, all); ev.GetType() != "page.navigated" || field(ev, "session_id") != s || field(ev, "page_id") != "p" {
			t.Errorf("heard %v", ev)
		}
		if ev := next(t, all); ev.GetType() != "dialog.opened" {
			t.Errorf("heard %v", ev)
		}
		if ev := next(t, dialogs); ev.GetType() != "dialog.opened" || field(ev, "session_id") != s {
			t.Errorf("heard %v", ev)
		}
		quiet(t, all)
		quiet(t, foreign)
		quiet(t, one)
		f.State = &browserv1.StatusResponse{State: "backoff"}
		h.broker.Changed("cdp")
		for _, sub := range []*broker.Subscription{all, foreign, one} {
			if ev := next(t, sub); ev.GetType() != "provider.state_changed" || field(ev, "state") != "backoff" {
				t.Errorf("heard %v", ev)
			}
		}
		one.Close()
		if _, err := one.Next(t.Context()); err == nil {
			t.Error("a closed subscription gives events")
		}
		if _, err := ann.Subscribe([]string{"page.navigate"}, nil); fault.From(err).Details["nearest"] != "page.navigated" {
			t.Errorf("an unknown type: %v", err)
		}
	})
}

// A custom event is told where the policy allows its name.
func TestCustomEvents(t *testing.T) {
	f := cdp()
	u := build(t, `passthrough { allow = ["cdp.*"] }`, f).user("ann")
	u.ensure("a")
	heard := listen(t, u)
	emit(f, "custom.event", map[string]any{"session_id": f.Native(), "name": "webdriver.x"})
	emit(f, "custom.event", map[string]any{"session_id": f.Native(), "name": "cdp.event"})
	if ev := next(t, heard); field(ev, "name") != "cdp.event" {
		t.Errorf("heard %v", ev)
	}
}

// A subscriber that does not keep up loses the oldest events, and is told how many before it hears the rest.
func TestEventsLag(t *testing.T) {
	f := cdp()
	h := build(t, "", f)
	u := h.user("ann")
	u.ensure("a")
	heard := listen(t, u, "console.message")
	const sent, kept = 700, 512
	for i := range sent {
		emit(f, "console.message", map[string]any{"session_id": f.Native(), "text": strconv.Itoa(i)})
	}
	emit(f, "page.closed", map[string]any{"session_id": f.Native()})
	ev := next(t, heard)
	if ev.GetType() != "events.lagged" || ev.GetPayload().GetFields()["count"].GetNumberValue() != sent-kept {
		t.Fatalf("heard %v", ev)
	}
	for i := sent - kept; i < sent; i++ {
		if ev := next(t, heard); field(ev, "text") != strconv.Itoa(i) {
			t.Fatalf("heard %v, want %d", ev, i)
		}
	}
	quiet(t, heard)
}

// Progress is told to the connection that made the call, under the caller's own id, and to no other of its principal.
func TestProgress(t *testing.T) {
	f := cdp()
	f.On("page.open", func(ctx context.Context, _ proto.Message) (proto.Message, error) {
		md, _ := metadata.FromOutgoingContext(ctx)
		emit(f, "call.progress", map[string]any{"id": md.Get("drover-call-id")[0], "stage": "loading", "message": "half"})
		emit(f, "call.progress", map[string]any{"id": "made up", "stage": "loading"})
		return &browserv1.OpenResponse{}, nil
	})
	h := build(t, "", f)
	u, other := h.user("ann"), h.user("ann")
	s := u.ensure("a").GetSessionId()
	heard, foreign := listen(t, u, "call.progress"), listen(t, other, "call.progress")
	ctx := broker.WithRequestID(t.Context(), structpb.NewStringValue("req_1"))
	if _, err := u.try(ctx, open(s, "https://example.com/")); err != nil {
		t.Fatal(err)
	}
	if ev := next(t, heard); field(ev, "id") != "req_1" || field(ev, "stage") != "loading" {
		t.Errorf("heard %v", ev)
	}
	quiet(t, heard)
	quiet(t, foreign)
}
