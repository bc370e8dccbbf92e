package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/plugins/plugintest"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

var info = plugins.Info{ID: "fake", Families: []string{"chromium"}}

// gRPC's default limit of 4 MiB would cut snapshots, screenshots and evaluated values.
func TestBigMessages(t *testing.T) {
	i := launch(t, plugintest.Spec(t, "null"))
	big := strings.Repeat("z", 64<<20)
	resp, err := call(t.Context(), i, &browserv1.EvalRequest{SessionId: "s1", Expression: big})
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.(*browserv1.EvalResponse).GetValue().GetStringValue(); got != big {
		t.Errorf("%d bytes came back, want %d", len(got), len(big))
	}
}

// A message over the limit fails its own call, tells the limit, and leaves the connection in order.
func TestTooBigMessage(t *testing.T) {
	i := plugintest.Connect(t, newNull())
	over := strings.Repeat("z", plugins.MaxMessageBytes+1)
	_, err := call(t.Context(), i, &browserv1.EvalRequest{SessionId: "s1", Expression: over})
	if e := wantFault(t, err, fault.InvalidRequest, "payload_too_large"); e.Details["limit_bytes"] != plugins.MaxMessageBytes {
		t.Errorf("details %v", e.Details)
	}
	if _, err := call(t.Context(), i, &browserv1.StatusRequest{}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestUnsupportedMethod(t *testing.T) {
	i := plugintest.Connect(t, plugintest.NewFake(info).Server())
	_, err := call(t.Context(), i, click(1000))
	if e := wantFault(t, err, fault.UnsupportedMethod, ""); e.Details["provider_id"] != "fake" || e.Details["method"] != "page.click" {
		t.Errorf("details %v", e.Details)
	}
}

// A fault crosses the connection as it is and gains the provider's name in this broker.
func TestFaultCrosses(t *testing.T) {
	want := fault.New(fault.ElementNotActionable, "a banner is in the way").Reason("covered").With("covered_by", "div.banner").Provider("inner")
	f := plugintest.NewFake(info).On("page.click", plugintest.Step{Fault: want})
	_, err := call(t.Context(), plugintest.Connect(t, f.Server()), click(1000))
	e := wantFault(t, err, fault.ElementNotActionable, "covered")
	if !e.Retryable || e.Message != want.Message || e.Details["covered_by"] != "div.banner" || e.Details["provider_id"] != "fake" {
		t.Errorf("%+v", e)
	}
}

// The provider ends a call at its deadline; the code says whether it was to navigate.
func TestDeadlines(t *testing.T) {
	f := plugintest.NewFake(info).On("page.click", plugintest.Step{Hang: true}).On("page.open", plugintest.Step{Hang: true})
	i := plugintest.Connect(t, f.Server())
	began := time.Now()
	_, err := call(t.Context(), i, click(50))
	if e := wantFault(t, err, fault.NotReady, "deadline_exceeded"); e.Retryable {
		t.Error("a click that may have acted is said to be retryable")
	}
	_, err = call(t.Context(), i, &browserv1.OpenRequest{SessionId: "s1", Url: "http://127.0.0.1/", TimeoutMs: proto.Int32(50)})
	wantFault(t, err, fault.NavigationTimeout, "deadline_exceeded")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // the caller's own deadline is the sooner one
	defer cancel()
	_, err = call(ctx, i, &browserv1.OpenRequest{SessionId: "s1", Url: "http://127.0.0.1/"})
	wantFault(t, err, fault.NavigationTimeout, "deadline_exceeded")
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %s", took)
	}
}

// A caller that gives up gives the provider up, and gets its own reason back.
func TestCancelReachesTheFunction(t *testing.T) {
	ended := make(chan error, 1)
	f := plugintest.NewFake(info).On("page.click", plugintest.Step{Do: func(ctx context.Context, _ proto.Message) (proto.Message, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}})
	i := plugintest.Connect(t, f.Server())
	ctx, cancel := context.WithCancelCause(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := call(ctx, i, click(60_000))
		result <- err
	}()
	if err := f.Await(t.Context(), "page.click", 1); err != nil {
		t.Fatal(err)
	}
	cancel(fault.New(fault.NotReady, "the user pressed stop").Reason("cancelled"))
	if err := within(t, time.Second, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the function saw %v", err)
	}
	if e := wantFault(t, within(t, time.Second, result), fault.NotReady, "cancelled"); e.Message != "the user pressed stop" {
		t.Errorf("message %q", e.Message)
	}
}

func TestCustom(t *testing.T) {
	i := plugintest.Connect(t, plugintest.NewFake(info).OnCustom("fake.echo").Server())
	params, err := structpb.NewStruct(map[string]any{"a": []any{1.0, nil, "ü"}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := i.Custom(t.Context(), &browserv1.CustomRequest{Method: "fake.echo", Params: params})
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(resp.GetResult().GetStructValue(), params) {
		t.Errorf("got %v", resp)
	}
	_, err = i.Custom(t.Context(), &browserv1.CustomRequest{Method: "fake.dance"})
	wantFault(t, err, fault.UnsupportedMethod, "")
	if names := i.Describe().GetCapabilities().GetCustomMethods(); len(names) != 1 || names[0].GetName() != "fake.echo" {
		t.Errorf("described %v", names)
	}
}

// Events that came before anyone listened are there, progress carries the caller's id, and the end of the process ends the
// loop with its reason.
func TestEvents(t *testing.T) {
	f := plugintest.NewFake(info).On("page.click", plugintest.Step{Progress: []string{"half_way"}})
	s := f.Server()
	i := plugintest.Connect(t, s)
	s.Emit("page.opened", map[string]any{"session_id": "s1", "title": string([]byte{0xff, 'a'})})
	ctx := metadata.AppendToOutgoingContext(t.Context(), plugins.CallIDKey, "req_7")
	if _, err := call(ctx, i, click(1000)); err != nil {
		t.Fatal(err)
	}
	var got []*browserv1.Event
	var last error
	for e, err := range i.Events(t.Context()) {
		if err != nil {
			last = err
			break
		}
		got = append(got, e)
		if len(got) == 2 {
			go stop(t, i)
		}
	}
	if len(got) != 2 || got[0].GetType() != "page.opened" || got[0].GetPayload().GetFields()["title"].GetStringValue() != "\uFFFDa" {
		t.Fatalf("events %v", got)
	}
	p := got[1].GetPayload().AsMap()
	if got[1].GetType() != plugins.EventProgress || p["id"] != "req_7" || p["stage"] != "half_way" || p["session_id"] != "s1" {
		t.Errorf("progress %v", got[1])
	}
	wantFault(t, last, fault.BrowserNotRunning, "provider_exited")
}

// A listener that is too slow is told how much it missed and does not hold the provider up.
func TestSlowListenerIsToldWhatItMissed(t *testing.T) {
	s := newNull()
	i := plugintest.Connect(t, s)
	s.Emit("first", nil)
	const total = 20_000
	filler := strings.Repeat("x", 1000) // so that gRPC's windows do not hold them all
	seen, missed, began := 0, 0, false
	for e, err := range i.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.GetType() {
		case "first":
		case plugins.EventLagged:
			missed += int(e.GetPayload().GetFields()["count"].GetNumberValue())
		default:
			seen++
		}
		if !began {
			began = true
			for range total {
				s.Emit("console.message", map[string]any{"session_id": "s1", "text": filler})
			}
		}
		if seen+missed == total {
			break
		}
	}
	if missed == 0 || seen == 0 {
		t.Errorf("seen %d, missed %d", seen, missed)
	}
}

func TestEventsEndWithTheirContext(t *testing.T) {
	i := plugintest.Connect(t, newNull())
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	for e, err := range i.Events(ctx) {
		t.Errorf("got %v, %v", e, err)
	}
}
