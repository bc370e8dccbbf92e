package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/plugins/conformance"
	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
)

// brokenSpec is a broken provider's process.
func brokenSpec(t *testing.T, name string) host.Spec {
	t.Helper()
	path, err := exec.LookPath("broken")
	if err != nil {
		t.Fatal(err)
	}
	return host.Spec{
		ID: "broken", Path: path, SetEnv: map[string]string{envBroken: name, "GORACE": "atexit_sleep_ms=0"},
		StartTimeout: startFor(name), Digests: &host.Digests{File: filepath.Join(cacheHome, "digests.json")},
	}
}

// startFor is short for those that never come up.
func startFor(name string) time.Duration {
	if strings.Contains(breakages[name].says, "did not come up") {
		return 3 * time.Second
	}
	return 0
}

// Guards that each check of the conformance suite can fail: a provider that is broken in one way is caught by the check for
// that, by name, is not certified, and leaves nothing behind when the suite is done with it.
func TestBrokenProvidersAreCaught(t *testing.T) {
	h := setHomes(t)
	for name, b := range breakages {
		t.Run(name, func(t *testing.T) {
			o := conformance.Options{ID: "broken", Checks: []string{b.check}}
			switch b.check {
			case "wire/lives", "wire/errors":
				o.Checks = []string{"page.click/no-such", "scenario/06-click"}
			case "wire/deadlines":
				o.Checks = []string{"page.wait/runs-out"}
			case "wire/size", "wire/pages":
				o.Checks = []string{"scenario/05-snapshot", "page.snapshot/steady-refs", "page.open/new-page"}
			}
			r, err := conformance.JudgeBinary(t.Context(), findPlaces().runs(), brokenSpec(t, name), o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Outcome == conformance.Certified {
				t.Errorf("it is certified")
			}
			for _, c := range r.Checks {
				if c.ID == b.check {
					if c.Status != conformance.Fail || !strings.Contains(c.Message, b.says) {
						t.Errorf("%s: %s %q, want a failure that says %q", c.ID, c.Status, c.Message, b.says)
					}
					return
				}
			}
			t.Errorf("%s was not made: %v", b.check, r.Failures())
		})
	}
	if err := h.gone(true); err != nil {
		t.Error(err)
	}
}

// Guards that a broken provider harms nobody else: whatever it does, a session of another provider in the same broker goes on
// at once, the call in the broken one ends, and the broker closes in time with nothing left.
func TestBrokenProvidersHarmNobody(t *testing.T) {
	page := site(t)
	good, err := exec.LookPath("drover-provider-cdp")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range breakages {
		if !b.harmful {
			continue
		}
		t.Run(name, func(t *testing.T) {
			h := setHomes(t)
			spec := brokenSpec(t, name)
			t.Setenv(envBroken, name)
			cfg := policy.Default()
			cfg.Prefer = []string{"good", "broken"}
			cfg.Providers = []*policy.Provider{
				{ID: "good", Plugin: "cdp", Path: good, MTLS: true, Env: []string{"GORACE"}},
				{ID: "broken", Plugin: "broken", Path: spec.Path, MTLS: true, Env: []string{envBroken, "GORACE"}},
			}
			e, err := newEngine(engineOptions{config: cfg, log: hclog.NewNullLogger(), uploads: []string{t.TempDir()}})
			if err != nil {
				t.Fatal(err)
			}
			who := e.broker.Connect(broker.Principal{ID: "test", Name: "test"}, broker.Bound)
			call := func(ctx context.Context, req proto.Message) (proto.Message, error) {
				m, _ := catalog.ByRequest(req)
				return who.Call(ctx, m, req)
			}
			ours, err := call(t.Context(), &browserv1.EnsureSessionRequest{ClientSessionId: "good", ProviderId: proto.String("good")})
			if err != nil {
				t.Fatal(err)
			}
			id := catalog.SessionID(ours)
			if _, err := call(t.Context(), &browserv1.OpenRequest{SessionId: id, Url: page + "/form"}); err != nil {
				t.Fatal(err)
			}
			over := make(chan struct{})
			go func() {
				defer close(over)
				ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
				defer cancel()
				theirs, err := call(ctx, &browserv1.EnsureSessionRequest{ClientSessionId: "bad", ProviderId: proto.String("broken")})
				if err != nil {
					return // it does not even come up
				}
				bad := catalog.SessionID(theirs)
				_, _ = call(ctx, &browserv1.OpenRequest{SessionId: bad, Url: page + "/form"})
				_, _ = call(ctx, &browserv1.SnapshotRequest{SessionId: bad})
				_, _ = call(ctx, &browserv1.ClickRequest{SessionId: bad, Target: &browserv1.Target{Selector: proto.String("h1")}})
				_, _ = call(ctx, &browserv1.WaitRequest{SessionId: bad, TextPresent: proto.String("never"), TimeoutMs: proto.Int32(500)})
			}()
			for done := false; !done; {
				if _, err := call(t.Context(), &browserv1.ClickRequest{SessionId: id, Target: &browserv1.Target{Selector: proto.String("h1")}}); err != nil {
					t.Errorf("the good session: %v", err)
				}
				select {
				case <-over:
					done = true
				default:
				}
			}
			if err := e.closeAfter(nil); err != nil {
				t.Error(err)
			}
			eventually(t, patience, "everything is gone", func() error { return h.gone(true) })
		})
	}
}
