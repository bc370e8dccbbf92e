package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/plugins/plugintest"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

func TestMain(m *testing.M) {
	plugintest.Main(map[string]func() *plugins.Server{"mine": newMine})
	goleak.VerifyTestMain(m)
}

func newMine() *plugins.Server {
	return plugins.NewServer(plugins.Info{ID: "mine", Label: "Mine", Version: "1.2.3", Families: []string{"chromium"}, Features: []string{"js_eval"}})
}

func method(t testing.TB, name string) *catalog.Method {
	t.Helper()
	m, ok := catalog.Lookup(name)
	if !ok {
		t.Fatalf("no method %s", name)
	}
	return m
}

func open(fn func(context.Context, *browserv1.OpenRequest) (*browserv1.OpenResponse, error)) *plugins.Server {
	s := newMine()
	plugins.Handle(s, fn)
	return s
}

func opening() *browserv1.OpenRequest {
	return &browserv1.OpenRequest{SessionId: "s1", Url: "http://127.0.0.1/"}
}

// Guards that a provider cannot claim what it lacks, nor forget what it has.
func TestDescribeListsExactlyWhatIsHandled(t *testing.T) {
	s := open(func(context.Context, *browserv1.OpenRequest) (*browserv1.OpenResponse, error) { return nil, nil })
	plugins.Handle(s, func(context.Context, *browserv1.ListTabsRequest) (*browserv1.ListTabsResponse, error) {
		return nil, nil
	})
	s.HandleCustom(&browserv1.CustomMethod{Name: "mine.dance", Description: "Dances."}, nil)
	s.OnConfigure(map[string]any{"type": "object"}, nil)
	s.OnDescribe(func(_ context.Context, d *browserv1.DescribeResponse) error {
		d.Browsers = append(d.Browsers, &browserv1.Browser{Family: "chromium", Label: "Test"})
		return nil
	})
	got, err := s.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	schema, _ := structpb.NewStruct(map[string]any{"type": "object"})
	want := &browserv1.DescribeResponse{
		ProviderId: "mine", ProviderLabel: "Mine", ProviderVersion: "1.2.3", ProtocolVersion: "0.1", BrowserFamilies: []string{"chromium"},
		Transport: "go-plugin-grpc", CertificationTier: browserv1.CertificationTier_CERTIFICATION_TIER_CANDIDATE,
		Capabilities: &browserv1.Capabilities{
			CoreMethods: []string{"provider.describe", "provider.status", "page.open"}, OptionalMethods: []string{"tab.list"}, Features: []string{"js_eval"},
			CustomMethods: []*browserv1.CustomMethod{{Name: "mine.dance", Description: "Dances.", Stability: browserv1.Stability_STABILITY_EXPERIMENTAL}},
		},
		Browsers:     []*browserv1.Browser{{Family: "chromium", Label: "Test"}},
		ConfigSchema: schema,
	}
	sorted := protocmp.SortRepeated(func(a, b string) bool { return a < b })
	if diff := cmp.Diff(want, got, protocmp.Transform(), sorted); diff != "" {
		t.Errorf("describe (-want +got):\n%s", diff)
	}
}

func TestRegistrationMistakesPanic(t *testing.T) {
	handle := func(s *plugins.Server) {
		plugins.Handle(s, func(context.Context, *browserv1.OpenRequest) (*browserv1.OpenResponse, error) { return nil, nil })
	}
	custom := func(name string) func() {
		return func() { newMine().HandleCustom(&browserv1.CustomMethod{Name: name}, nil) }
	}
	cases := map[string]struct {
		do   func()
		want string
	}{
		"twice": {func() { s := newMine(); handle(s); handle(s) }, "page.open is registered twice"},
		"no method": {func() {
			plugins.Handle(newMine(), func(context.Context, *browserv1.Size) (*browserv1.Rect, error) { return nil, nil })
		}, "no request of a normalized method"},
		"other response": {func() {
			plugins.Handle(newMine(), func(context.Context, *browserv1.OpenRequest) (*browserv1.Rect, error) { return nil, nil })
		}, "answers with"},
		"the broker's":    {func() { newMine().HandleMethod(method(t, "session.list"), nil) }, "not a provider's to answer"},
		"describe":        {func() { newMine().HandleMethod(method(t, "provider.describe"), nil) }, "use OnDescribe"},
		"configure":       {func() { newMine().HandleMethod(method(t, "provider.configure"), nil) }, "use OnConfigure"},
		"custom no space": {custom("dance"), "no namespace"},
		"custom normal":   {custom("page.open"), "normalized method"},
		"late":            {func() { s := newMine(); s.NewGRPC(); handle(s) }, "before Serve"},
		"bad id":          {func() { plugins.NewServer(plugins.Info{ID: "My Browser"}) }, "no provider id"},
		"bad feature":     {func() { plugins.NewServer(plugins.Info{ID: "a", Features: []string{"flying"}}) }, "no feature"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), c.want) {
					t.Errorf("panic %v, want one with %q", r, c.want)
				}
			}()
			c.do()
		})
	}
}

// The default status can be replaced, the answer of a provider that says nothing is ready.
func TestStatus(t *testing.T) {
	status := func(s *plugins.Server) browserv1.Availability {
		resp, err := s.Call(t.Context(), method(t, "provider.status"), &browserv1.StatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return resp.(*browserv1.StatusResponse).GetAvailability()
	}
	if got := status(newMine()); got != browserv1.Availability_AVAILABILITY_READY {
		t.Errorf("default status is %s", got)
	}
	s := newMine()
	plugins.Handle(s, func(context.Context, *browserv1.StatusRequest) (*browserv1.StatusResponse, error) {
		return &browserv1.StatusResponse{Availability: browserv1.Availability_AVAILABILITY_DEGRADED}, nil
	})
	if got := status(s); got != browserv1.Availability_AVAILABILITY_DEGRADED {
		t.Errorf("own status is %s", got)
	}
}

func TestCallFaults(t *testing.T) {
	short := opening()
	short.TimeoutMs = proto.Int32(20)
	own := fault.New(fault.ElementNotFound, "gone").Reason("stale_ref")
	cases := map[string]struct {
		fn     func(context.Context, *browserv1.OpenRequest) (*browserv1.OpenResponse, error)
		req    *browserv1.OpenRequest
		code   fault.Code
		reason string
	}{
		"field":     {nil, &browserv1.OpenRequest{SessionId: "s1"}, fault.InvalidRequest, ""},
		"panic":     {func(context.Context, *browserv1.OpenRequest) (*browserv1.OpenResponse, error) { panic("ouch") }, opening(), fault.InternalError, "panic"},
		"nothing":   {func(context.Context, *browserv1.OpenRequest) (*browserv1.OpenResponse, error) { return nil, nil }, opening(), fault.InternalError, ""},
		"own fault": {func(context.Context, *browserv1.OpenRequest) (*browserv1.OpenResponse, error) { return nil, own }, opening(), fault.ElementNotFound, "stale_ref"},
		"plain error": {func(context.Context, *browserv1.OpenRequest) (*browserv1.OpenResponse, error) {
			return nil, errors.New("boo")
		}, opening(), fault.InternalError, ""},
		"deadline": {func(ctx context.Context, _ *browserv1.OpenRequest) (*browserv1.OpenResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, short, fault.NavigationTimeout, "deadline_exceeded"},
		"odd deadline": {func(ctx context.Context, _ *browserv1.OpenRequest) (*browserv1.OpenResponse, error) {
			<-ctx.Done()
			return nil, errors.New("websocket closed")
		}, short, fault.NavigationTimeout, "deadline_exceeded"},
		"own deadline": {func(context.Context, *browserv1.OpenRequest) (*browserv1.OpenResponse, error) {
			return nil, fault.New(fault.NotReady, "slow").Reason("deadline_exceeded")
		}, opening(), fault.NavigationTimeout, "deadline_exceeded"},
		"late own": {func(ctx context.Context, _ *browserv1.OpenRequest) (*browserv1.OpenResponse, error) {
			<-ctx.Done()
			return nil, own
		}, short, fault.ElementNotFound, "stale_ref"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := open(c.fn).Call(t.Context(), method(t, "page.open"), c.req)
			if fault.CodeOf(err) != c.code || fault.ReasonOf(err) != c.reason {
				t.Errorf("got %v, want %s/%s", err, fault.Word(c.code), c.reason)
			}
		})
	}
}

// A call that may have acted is not to be sent again because it ran out of time; one that cannot have is.
func TestTimedOutSaysWhetherToTryAgain(t *testing.T) {
	for name, same := range map[string]bool{"page.open": true, "page.snapshot": true, "page.click": false, "session.close": true} {
		e := plugins.TimedOut(method(t, name), time.Second)
		if e.Retryable != same {
			t.Errorf("%s: retryable %v, want %v", name, e.Retryable, same)
		}
	}
}

func TestUnsupported(t *testing.T) {
	_, err := newMine().Call(t.Context(), method(t, "page.open"), opening())
	if fault.CodeOf(err) != fault.UnsupportedMethod {
		t.Errorf("page.open: %v", err)
	}
	_, err = newMine().Custom(t.Context(), &browserv1.CustomRequest{Method: "mine.dance"})
	if fault.CodeOf(err) != fault.UnsupportedMethod {
		t.Errorf("mine.dance: %v", err)
	}
}

// Closing cancels calls, runs the functions in reverse and outlives one that panics.
func TestClose(t *testing.T) {
	entered := make(chan struct{})
	s := open(func(ctx context.Context, _ *browserv1.OpenRequest) (*browserv1.OpenResponse, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	var order []string
	s.OnClose(func(context.Context) { order = append(order, "first") })
	s.OnClose(func(context.Context) { panic("ouch") })
	s.OnClose(func(context.Context) { order = append(order, "last") })
	result := make(chan error, 1)
	go func() {
		_, err := s.Call(context.Background(), method(t, "page.open"), opening())
		result <- err
	}()
	<-entered
	s.Close(t.Context())
	if err := <-result; fault.CodeOf(err) != fault.BrowserNotRunning || fault.ReasonOf(err) != "provider_exited" {
		t.Errorf("call in flight: %v", err)
	}
	if diff := cmp.Diff([]string{"last", "first"}, order); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Call(t.Context(), method(t, "page.open"), opening()); fault.ReasonOf(err) != "provider_exited" {
		t.Errorf("call after close: %v", err)
	}
}

func TestDecodeConfig(t *testing.T) {
	type config struct {
		Headless bool `json:"headless"`
		Viewport struct {
			Width int `json:"width"`
		} `json:"viewport"`
	}
	cases := map[string]struct {
		in   map[string]any
		path string
	}{
		"good":    {map[string]any{"headless": true, "viewport": map[string]any{"width": 3}}, ""},
		"empty":   {map[string]any{}, ""},
		"unknown": {map[string]any{"headles": true}, "headles"},
		"type":    {map[string]any{"viewport": map[string]any{"width": "wide"}}, "viewport.width"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in, err := structpb.NewStruct(c.in)
			if err != nil {
				t.Fatal(err)
			}
			var into config
			found := plugins.DecodeConfig(in, &into)
			switch {
			case c.path == "" && found != nil:
				t.Errorf("found %v", found)
			case c.path != "" && (len(found) != 1 || found[0].GetPath() != c.path || found[0].GetLevel() != browserv1.Level_LEVEL_ERROR):
				t.Errorf("found %v, want one error at %s", found, c.path)
			}
		})
	}
}

// A person who runs a provider by hand gets a sentence, not a stack trace.
func TestRunByHand(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "drover-provider-mine")
	if err := os.Symlink(exe, link); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(link)
	cmd.Env = append(os.Environ(), "DROVER_PLUGINTEST_PROVIDER=mine")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("ended with %v", err)
	}
	if !strings.HasPrefix(string(out), "drover-provider-mine is a browser provider for Drover.") || !strings.Contains(string(out), "drover provider describe mine") {
		t.Errorf("it said:\n%s", out)
	}
}
