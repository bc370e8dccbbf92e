package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/providers/cdp"
)

// envBroken names, in a broken provider's process, what is wrong with it.
const envBroken = "DROVER_TEST_BROKEN"

// breakage is one way for a provider to be wrong: everything else about it is the real one for Chromium.
type breakage struct {
	// check is the check that must catch it, and says a part of what it must say.
	check, says string
	// begin runs before anything else in the process.
	begin func()
	// features it claims; nil for the real one's.
	features []string
	// describe changes what it says of itself.
	describe func(*browserv1.DescribeResponse)
	// instead answers a method in place of the real provider, or after asking it.
	instead map[string]answerer
	// lacks is a method that it lists and does not have.
	lacks string
	// setup is given the server that serves.
	setup func(*plugins.Server)
	// harmful ones are also run beside a good session in a broker.
	harmful bool
}

type answerer = func(ctx context.Context, req proto.Message, real func() (proto.Message, error)) (proto.Message, error)

// on answers some methods in another way.
func on(fn answerer, methods ...string) map[string]answerer {
	out := map[string]answerer{}
	for _, m := range methods {
		out[m] = fn
	}
	return out
}

// changed asks the real provider and changes its answer.
func changed[T proto.Message](change func(T)) answerer {
	return func(_ context.Context, _ proto.Message, real func() (proto.Message, error)) (proto.Message, error) {
		resp, err := real()
		if t, ok := resp.(T); ok && err == nil {
			change(t)
		}
		return resp, err
	}
}

func forEver(context.Context, proto.Message, func() (proto.Message, error)) (proto.Message, error) {
	select {}
}

var (
	snapshots atomic.Int32
	oldRef    atomic.Value
)

// breakages are the broken providers by name.
var breakages = map[string]breakage{
	"lists what it lacks": {
		check: "provider.describe/truth-listed", says: "lists page.hover", lacks: "page.hover",
	},
	"hides what it has": {
		check: "provider.describe/truth-unlisted", says: "does not list tab.list",
		describe: func(d *browserv1.DescribeResponse) {
			d.Capabilities.OptionalMethods = without(d.Capabilities.OptionalMethods, "tab.list")
		},
	},
	"invents a feature": {
		check: "provider.describe/known-words", says: "mind_reading",
		describe: func(d *browserv1.DescribeResponse) {
			d.Capabilities.Features = append(d.Capabilities.Features, "mind_reading")
		},
	},
	"lacks a core method": {
		check: "provider.describe/core", says: "page.screenshot",
		describe: func(d *browserv1.DescribeResponse) {
			d.Capabilities.CoreMethods = without(d.Capabilities.CoreMethods, "page.screenshot")
		},
	},
	"speaks another version": {
		check: "provider/starts", says: "protocol version",
		describe: func(d *browserv1.DescribeResponse) { d.ProtocolVersion = "9.0" },
	},
	"hangs in describe": {
		check: "provider/starts", says: "did not come up", harmful: true,
		describe: func(*browserv1.DescribeResponse) { select {} },
	},
	"talks on stdout": {
		check: "provider/starts", says: "did not start", harmful: true,
		begin: func() { fmt.Println("Hello! I am a provider, and I log to stdout.") },
	},
	"needs stdin": {
		check: "provider/starts", says: "did not come up",
		begin: func() { _, _ = bufio.NewReader(os.Stdin).ReadString('\n') },
	},
	"exits at once": {
		check: "provider/starts", says: "did not start", harmful: true,
		begin: func() { fmt.Fprintln(os.Stderr, "I cannot be run here"); os.Exit(3) },
	},
	"exits in the middle of a call": {
		check: "wire/lives", says: "has exited", harmful: true,
		instead: on(func(context.Context, proto.Message, func() (proto.Message, error)) (proto.Message, error) {
			os.Exit(4)
			return nil, nil
		}, "page.click"),
	},
	"never answers": {check: "wire/deadlines", says: "page.wait was not answered", instead: on(forEver, "page.wait"), harmful: true},
	"answers long after its deadline": {
		check: "wire/deadlines", says: "after its deadline",
		instead: on(func(_ context.Context, _ proto.Message, real func() (proto.Message, error)) (proto.Message, error) {
			<-time.After(30 * time.Second)
			return real()
		}, "page.wait"),
	},
	"goes on with what was cancelled": {
		check: "page.type/cancel", says: "although the call was cancelled",
		instead: map[string]answerer{"page.type": nil}, // its context is cut loose below
	},
	"panics": {
		check: "wire/errors", says: "panic", harmful: true,
		instead: on(func(context.Context, proto.Message, func() (proto.Message, error)) (proto.Message, error) {
			panic("no more")
		}, "page.click"),
	},
	"says internal_error for everything": {
		check: "wire/errors", says: "internal_error",
		instead: on(func(_ context.Context, _ proto.Message, real func() (proto.Message, error)) (proto.Message, error) {
			resp, err := real()
			if err != nil {
				err = errors.New("something went wrong")
			}
			return resp, err
		}, "page.click"),
	},
	"replies with 80 MB": {
		check: "wire/size", says: "80 MiB", harmful: true,
		instead: on(changed(func(r *browserv1.SnapshotResponse) { r.Text = proto.String(strings.Repeat("x", 80<<20)) }), "page.snapshot"),
	},
	"floods events": {
		check: "provider/quiet", says: "events in a second", features: []string{"events"}, harmful: true,
		setup: func(s *plugins.Server) {
			go func() {
				for range time.Tick(time.Millisecond) {
					s.Emit("page.navigated", map[string]any{"session_id": "x", "url": "about:blank"})
				}
			}()
		},
	},
	"mixes pages up": {
		check: "wire/pages", says: "names page",
		instead: on(changed(func(r *browserv1.SnapshotResponse) { r.PageId = "another" }), "page.snapshot"),
	},
	"gives everyone one session": {
		check: "session.ensure/apart", says: "same session_id",
		instead: on(func(ctx context.Context, req proto.Message, real func() (proto.Message, error)) (proto.Message, error) {
			if r, ok := req.(*browserv1.EnsureSessionRequest); ok {
				r.ClientSessionId = "everyone"
			}
			return real()
		}, "session.ensure"),
	},
	"closes nothing": {
		check: "scenario/10-close", says: "session_not_found",
		instead: on(func(context.Context, proto.Message, func() (proto.Message, error)) (proto.Message, error) {
			return &browserv1.CloseSessionResponse{Closed: true, Disposition: browserv1.Disposition_DISPOSITION_CLOSED}, nil
		}, "session.close"),
	},
	"numbers refs anew each time": {
		check: "page.snapshot/steady-refs", says: "nothing like",
		instead: on(changed(func(r *browserv1.SnapshotResponse) { renumber(r, int(snapshots.Add(1))*1000) }), "page.snapshot"),
	},
	"uses refs twice": {
		check: "page.snapshot/fresh-refs", says: "nothing like",
		instead: on(changed(func(r *browserv1.SnapshotResponse) {
			for _, e := range r.GetElements() {
				switch e.GetName() {
				case "Old one":
					oldRef.Store(e.GetElementRef())
				case "New one":
					e.ElementRef, _ = oldRef.Load().(string)
				}
			}
		}), "page.snapshot"),
	},
	"tells passwords": {
		check: "page.snapshot/no-passwords", says: "value",
		instead: on(func(_ context.Context, req proto.Message, real func() (proto.Message, error)) (proto.Message, error) {
			resp, err := real()
			if r, ok := resp.(*browserv1.TypeResponse); ok && err == nil {
				t, _ := req.(*browserv1.TypeRequest)
				r.Value = proto.String(t.GetText())
			}
			return resp, err
		}, "page.type"),
	},
	"says that it clicked": {
		check: "page.click/covered", says: "answers success",
		instead: on(func(_ context.Context, _ proto.Message, real func() (proto.Message, error)) (proto.Message, error) {
			if resp, err := real(); err == nil {
				return resp, nil
			}
			return &browserv1.ClickResponse{PageId: "p", Clicked: true}, nil
		}, "page.click"),
	},
	"lies about its pictures": {
		check: "scenario/09-screenshot", says: "the answer says",
		instead: on(changed(func(r *browserv1.ScreenshotResponse) { r.Width *= 2 }), "page.screenshot"),
	},
	"opens new pages over old ones": {
		check: "page.open/new-page", says: "again",
		instead: on(func(_ context.Context, req proto.Message, real func() (proto.Message, error)) (proto.Message, error) {
			if r, ok := req.(*browserv1.OpenRequest); ok {
				r.NewPage = false
			}
			return real()
		}, "page.open"),
	},
	"takes every status for 200": {
		check: "page.open/status", says: "http_status is 200",
		instead: on(changed(func(r *browserv1.OpenResponse) { r.HttpStatus = proto.Int32(200) }), "page.open"),
	},
	"fails where a wait runs out": {
		check: "page.wait/runs-out", says: "not_ready",
		instead: on(func(_ context.Context, _ proto.Message, real func() (proto.Message, error)) (proto.Message, error) {
			resp, err := real()
			if r, ok := resp.(*browserv1.WaitResponse); ok && !r.GetSatisfied() {
				return nil, fault.New(fault.NotReady, "it did not come").Reason("deadline_exceeded")
			}
			return resp, err
		}, "page.wait"),
	},
	"takes settings that it does not have": {check: "provider/configures", says: "takes a setting"},
	"will not end": {
		check: "provider/ends", says: "had to be killed", harmful: true,
		setup: func(s *plugins.Server) { s.OnClose(func(context.Context) { select {} }) },
	},
	"leaves children": {
		check: "provider/ends", says: "left behind", harmful: true,
		instead: on(func(_ context.Context, _ proto.Message, real func() (proto.Message, error)) (proto.Message, error) {
			c := exec.Command("sleep", "300")
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := c.Start(); err != nil {
				return nil, err
			}
			return real()
		}, "session.ensure"),
	},
}

func without(list []string, name string) []string {
	var out []string
	for _, e := range list {
		if e != name {
			out = append(out, e)
		}
	}
	return out
}

// renumber gives the actionable elements refs by their place.
func renumber(r *browserv1.SnapshotResponse, from int) {
	for i, e := range r.GetElements() {
		e.ElementRef = fmt.Sprintf("d1e%d", from+i)
	}
}

// serveBroken is the process of a broken provider.
func serveBroken() {
	name := os.Getenv(envBroken)
	b, ok := breakages[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "there is no breakage %q\n", name)
		os.Exit(1)
	}
	if b.begin != nil {
		b.begin()
	}
	real := cdp.New()
	d, err := real.Describe(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	info := real.Info()
	info.ID, info.Features = "broken", without(info.Features, "events")
	if b.features != nil {
		info.Features = append(without(info.Features, ""), b.features...)
	}
	s := plugins.NewServer(info)
	for _, m := range catalog.All() {
		if !real.Handles(m.Name) || !m.Routed() || m.Name == "provider.describe" || m.Name == "provider.configure" ||
			m.Name == b.lacks {
			continue
		}
		s.HandleMethod(m, brokenReply(real, m, b))
	}
	s.OnDescribe(func(_ context.Context, r *browserv1.DescribeResponse) error {
		r.Browsers = d.GetBrowsers()
		if b.lacks != "" {
			r.Capabilities.OptionalMethods = append(r.Capabilities.OptionalMethods, b.lacks)
		}
		if b.describe != nil {
			b.describe(r)
		}
		return nil
	})
	s.OnConfigure(map[string]any{"type": "object"}, func(ctx context.Context, _ *structpb.Struct, host *browserv1.HostSettings) ([]*browserv1.Diagnostic, error) {
		m := must("provider.configure")
		_, err := real.Call(ctx, m, &browserv1.ConfigureRequest{Config: &structpb.Struct{}, Host: host})
		return nil, err
	})
	s.OnClose(real.Close)
	if b.setup != nil {
		b.setup(s)
	}
	plugins.Serve(s)
}

// brokenReply is the real provider's function for a method, or what is broken about it.
func brokenReply(real *plugins.Server, m *catalog.Method, b breakage) func(context.Context, proto.Message) (proto.Message, error) {
	instead, broken := b.instead[m.Name]
	return func(ctx context.Context, req proto.Message) (proto.Message, error) {
		if broken && instead == nil {
			ctx = context.WithoutCancel(ctx)
		}
		ask := func() (proto.Message, error) { return real.Call(ctx, m, req) }
		if instead == nil {
			return ask()
		}
		return instead(ctx, req, ask)
	}
}
