package main

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/plugins/plugintest"
	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/providers/cdp"
)

// Guards the draft's ten minimal conformance scenarios, through the broker, on a real browser: with the provider as a
// process of its own, and in this process.
func TestMinimalConformance(t *testing.T) {
	page := site(t)
	t.Run("process", func(t *testing.T) {
		h := setHomes(t)
		e, err := newEngine(engineOptions{config: policy.Default(), log: hclog.NewNullLogger(), uploads: []string{t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := e.closeAfter(nil); err != nil {
				t.Error(err)
			}
			eventually(t, patience, "everything is gone", func() error { return h.gone(true) })
		})
		conform(t, e.broker, page)
	})
	t.Run("in process", func(t *testing.T) {
		run, err := os.MkdirTemp("", "drv")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(run) })
		i := plugintest.ConnectSpec(t, cdp.New(), host.Spec{ID: "cdp", Settings: &browserv1.HostSettings{RunDir: run, StateDir: t.TempDir()}})
		b := broker.New(broker.Options{Sources: []broker.Source{here{i}}})
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			b.Close(ctx)
		})
		conform(t, b, page)
	})
}

// here is a provider in this process that always runs.
type here struct{ *host.Instance }

func (h here) Describe() (*browserv1.DescribeResponse, bool) { return h.Instance.Describe(), true }
func (h here) Status() *browserv1.StatusResponse {
	return &browserv1.StatusResponse{ProviderId: h.ID(), Availability: browserv1.Availability_AVAILABILITY_READY}
}
func (h here) Acquire(context.Context) (broker.Provider, error) { return h.Instance, nil }

// conform runs the scenarios one after another: each needs what the ones before it made.
func conform(t *testing.T, b *broker.Broker, page string) {
	c := b.Connect(broker.Principal{ID: "test", Name: "test"}, broker.Bound)
	var session, ref string
	send := func(t *testing.T, req proto.Message) (proto.Message, error) {
		t.Helper()
		m, ok := catalog.ByRequest(req)
		if !ok {
			t.Fatalf("no method takes %T", req)
		}
		if session != "" {
			catalog.SetSessionID(req, session)
		}
		return c.Call(t.Context(), m, req)
	}
	for _, scenario := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"provider.describe succeeds", func(t *testing.T) {
			// A provider that never spoke is asked by the first call that needs it, so that one comes first.
			if _, err := b.Explain(t.Context(), c, must("session.ensure"), &browserv1.EnsureSessionRequest{ClientSessionId: "a"}); err != nil {
				t.Fatal(err)
			}
			d := get[*browserv1.DescribeResponse](t, send, &browserv1.DescribeRequest{ProviderId: "cdp"})
			for _, m := range catalog.All() {
				if m.Core() && !slices.Contains(d.GetCapabilities().GetCoreMethods(), m.Name) {
					t.Errorf("it lacks %s", m.Name)
				}
			}
			if d.GetProviderId() != "cdp" || d.GetProtocolVersion() != catalog.Version || len(d.GetBrowsers()) == 0 {
				t.Errorf("described as %v", d)
			}
		}},
		{"provider.status reports a coherent state", func(t *testing.T) {
			s := get[*browserv1.StatusResponse](t, send, &browserv1.StatusRequest{ProviderId: "cdp"})
			if s.GetAvailability() != browserv1.Availability_AVAILABILITY_READY || s.GetRequiresManualSetup() {
				t.Errorf("the state is %v", s)
			}
		}},
		{"session.ensure creates or reuses a session", func(t *testing.T) {
			s := get[*browserv1.EnsureSessionResponse](t, send, &browserv1.EnsureSessionRequest{ClientSessionId: "a"})
			again := get[*browserv1.EnsureSessionResponse](t, send, &browserv1.EnsureSessionRequest{ClientSessionId: "a"})
			if !s.GetCreated() || again.GetCreated() || s.GetSessionId() != again.GetSessionId() || s.GetProviderId() != "cdp" {
				t.Errorf("first %v, then %v", s, again)
			}
			session = s.GetSessionId()
		}},
		{"page.open navigates to a test page", func(t *testing.T) {
			r := get[*browserv1.OpenResponse](t, send, &browserv1.OpenRequest{Url: page + "/form"})
			if r.GetTitle() != "Order form" || r.GetUrl() != page+"/form" || r.GetHttpStatus() != 200 {
				t.Errorf("opened %v", r)
			}
		}},
		{"page.snapshot returns usable text and an actionable reference", func(t *testing.T) {
			r := get[*browserv1.SnapshotResponse](t, send, &browserv1.SnapshotRequest{})
			for _, el := range r.GetElements() {
				if el.GetName() == "Name" && el.GetActionable() {
					ref = el.GetElementRef()
				}
			}
			if ref == "" || !strings.Contains(r.GetText(), "Order form") {
				t.Errorf("read %v", r)
			}
		}},
		{"page.click can activate a known element", func(t *testing.T) {
			r := get[*browserv1.ClickResponse](t, send, &browserv1.ClickRequest{Target: &browserv1.Target{ElementRef: &ref}})
			e := get[*browserv1.EvalResponse](t, send, &browserv1.EvalRequest{Expression: "document.activeElement.id"})
			if !r.GetClicked() || e.GetValue().GetStringValue() != "who" {
				t.Errorf("clicked %v, the focus is on %v", r, e)
			}
		}},
		{"page.type can fill a known input", func(t *testing.T) {
			r := get[*browserv1.TypeResponse](t, send, &browserv1.TypeRequest{Target: &browserv1.Target{ElementRef: &ref}, Text: "Ada", Submit: true})
			if !r.GetTyped() || r.GetValue() != "Ada" {
				t.Errorf("typed %v", r)
			}
		}},
		{"page.wait observes a deterministic page change", func(t *testing.T) {
			r := get[*browserv1.WaitResponse](t, send, &browserv1.WaitRequest{TextPresent: proto.String("Thanks Ada")})
			if !r.GetSatisfied() || r.GetMatchedCondition() != "text_present" {
				t.Errorf("waited %v", r)
			}
		}},
		{"page.screenshot returns an image", func(t *testing.T) {
			r := get[*browserv1.ScreenshotResponse](t, send, &browserv1.ScreenshotRequest{})
			img, err := png.Decode(bytes.NewReader(r.GetImage()))
			if err != nil || img.Bounds().Dx() != int(r.GetWidth()) || img.Bounds().Dy() != int(r.GetHeight()) || r.GetMediaType() != "image/png" {
				t.Errorf("no picture of %d by %d: %v", r.GetWidth(), r.GetHeight(), err)
			}
		}},
		{"session.close cleans up", func(t *testing.T) {
			r := get[*browserv1.CloseSessionResponse](t, send, &browserv1.CloseSessionRequest{})
			if !r.GetClosed() {
				t.Errorf("closed %v", r)
			}
			if _, err := send(t, &browserv1.SnapshotRequest{}); fault.CodeOf(err) != fault.SessionNotFound {
				t.Errorf("a call afterwards: %v", err)
			}
		}},
	} {
		if !t.Run(scenario.name, scenario.run) {
			return
		}
	}
}

func get[T proto.Message](t *testing.T, send func(*testing.T, proto.Message) (proto.Message, error), req proto.Message) T {
	t.Helper()
	resp, err := send(t, req)
	if err != nil {
		t.Fatalf("%T: %v", req, err)
	}
	out, ok := resp.(T)
	if !ok {
		t.Fatalf("%T was answered with %T", req, resp)
	}
	return out
}
