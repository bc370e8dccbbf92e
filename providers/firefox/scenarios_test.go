package firefox

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/plugins/plugintest"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// here is a provider in this process that always runs.
type here struct{ *host.Instance }

func (h here) Describe() (*browserv1.DescribeResponse, bool) { return h.Instance.Describe(), true }
func (h here) Status() *browserv1.StatusResponse {
	return &browserv1.StatusResponse{ProviderId: h.ID(), Availability: browserv1.Availability_AVAILABILITY_READY}
}
func (h here) Acquire(context.Context) (broker.Provider, error) { return h.Instance, nil }

// caller is somebody who uses a broker of their own.
type caller struct {
	t       *testing.T
	c       *broker.Caller
	session string
}

func newCaller(t *testing.T) *caller {
	t.Helper()
	i := plugintest.ConnectSpec(t, New(), host.Spec{ID: "firefox", Settings: &browserv1.HostSettings{RunDir: t.TempDir()}})
	b := broker.New(broker.Options{Sources: []broker.Source{here{i}}})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		b.Close(ctx)
	})
	return &caller{t: t, c: b.Connect(broker.Principal{ID: "test", Name: "test"}, broker.Bound)}
}

func (c *caller) send(req proto.Message) (proto.Message, error) {
	m, ok := catalog.ByRequest(req)
	if !ok {
		return nil, fmt.Errorf("no method takes %T", req)
	}
	if c.session != "" {
		catalog.SetSessionID(req, c.session)
	}
	return c.c.Call(c.t.Context(), m, req)
}

func get[T proto.Message](c *caller, req proto.Message) T {
	c.t.Helper()
	resp, err := c.send(req)
	if err != nil {
		c.t.Fatalf("%T: %v", req, err)
	}
	return resp.(T)
}

func (c *caller) ensure(name string) *browserv1.EnsureSessionResponse {
	c.t.Helper()
	return get[*browserv1.EnsureSessionResponse](c, &browserv1.EnsureSessionRequest{
		ClientSessionId: name, BrowserPreference: ptr("firefox"), Attach: browserv1.Attach_ATTACH_REQUIRE.Enum(),
	})
}

const orderPage = `<!doctype html><title>Order form</title><h1>Order form</h1><form id=f><label>Name <input id=who></label></form><p id=out></p>
<script>document.getElementById('f').onsubmit = e => { e.preventDefault(); out.textContent = 'Thanks ' + who.value }</script>`

// The draft's ten minimal scenarios, through a broker whose caller prefers Firefox.
func TestMinimalScenarios(t *testing.T) {
	person(t)
	page := site(t, map[string]string{"/": orderPage})
	c := newCaller(t)
	d := get[*browserv1.DescribeResponse](c, &browserv1.DescribeRequest{ProviderId: "firefox"})
	for _, m := range catalog.All() {
		if m.Core() && !slices.Contains(d.GetCapabilities().GetCoreMethods(), m.Name) {
			t.Errorf("it lacks %s", m.Name)
		}
	}
	if len(d.GetBrowsers()) != 1 || !slices.Contains(d.GetCapabilities().GetFeatures(), "synthetic_input") || slices.Contains(d.GetCapabilities().GetFeatures(), "input_trusted") {
		t.Errorf("described as %v", d)
	}
	st := get[*browserv1.StatusResponse](c, &browserv1.StatusRequest{ProviderId: "firefox"})
	if st.GetAvailability() != browserv1.Availability_AVAILABILITY_READY || st.GetRequiresManualSetup() {
		t.Errorf("the state is %v", st)
	}
	s, again := c.ensure("a"), c.ensure("a")
	if !s.GetCreated() || again.GetCreated() || s.GetSessionId() != again.GetSessionId() || s.GetBrowserFamily() != "firefox" {
		t.Errorf("first %v, then %v", s, again)
	}
	c.session = s.GetSessionId()
	if r := get[*browserv1.OpenResponse](c, &browserv1.OpenRequest{Url: page}); r.GetTitle() != "Order form" || r.GetHttpStatus() != 200 {
		t.Errorf("opened %v", r)
	}
	ref := ""
	snap := get[*browserv1.SnapshotResponse](c, &browserv1.SnapshotRequest{})
	for _, el := range snap.GetElements() {
		if el.GetName() == "Name" && el.GetActionable() {
			ref = el.GetElementRef()
		}
	}
	if ref == "" || !strings.Contains(snap.GetText(), "Order form") {
		t.Fatalf("read %v", snap)
	}
	target := &browserv1.Target{ElementRef: &ref}
	if r := get[*browserv1.ClickResponse](c, &browserv1.ClickRequest{Target: target}); !r.GetClicked() {
		t.Errorf("clicked %v", r)
	}
	if r := get[*browserv1.TypeResponse](c, &browserv1.TypeRequest{Target: target, Text: "Ada", Submit: true}); !r.GetTyped() || r.GetValue() != "Ada" {
		t.Errorf("typed %v", r)
	}
	if r := get[*browserv1.WaitResponse](c, &browserv1.WaitRequest{TextPresent: ptr("Thanks Ada")}); !r.GetSatisfied() || r.GetMatchedCondition() != "text_present" {
		t.Errorf("waited %v", r)
	}
	pic := get[*browserv1.ScreenshotResponse](c, &browserv1.ScreenshotRequest{})
	img, err := png.Decode(bytes.NewReader(pic.GetImage()))
	if err != nil || img.Bounds().Dx() != int(pic.GetWidth()) || img.Bounds().Dy() != int(pic.GetHeight()) {
		t.Errorf("no picture of %d by %d: %v", pic.GetWidth(), pic.GetHeight(), err)
	}
	if r := get[*browserv1.CloseSessionResponse](c, &browserv1.CloseSessionRequest{}); !r.GetClosed() {
		t.Errorf("closed %v", r)
	}
	if _, err := c.send(&browserv1.SnapshotRequest{}); fault.CodeOf(err) != fault.SessionNotFound {
		t.Errorf("a call afterwards: %v", err)
	}
}

// Three brokers use one Firefox at once, as serve, stdio and mcp do: each with its own tabs, no answer to another's call.
func TestBrokersSideBySide(t *testing.T) {
	person(t)
	page := site(t, map[string]string{"/": formPage})
	var callers []*caller
	for range 3 {
		callers = append(callers, newCaller(t))
	}
	for i, c := range callers {
		c.session = c.ensure("same name").GetSessionId()
		get[*browserv1.OpenResponse](c, &browserv1.OpenRequest{Url: fmt.Sprintf("%s/?%d", page, i)})
	}
	var wg sync.WaitGroup
	for i, c := range callers {
		wg.Go(func() {
			for n := range 10 {
				want := fmt.Sprintf("%d of %d", n, i)
				r, err := c.send(&browserv1.TypeRequest{Target: bySelector("#name"), Text: want, Replace: true})
				if typed, ok := r.(*browserv1.TypeResponse); err != nil || !ok || typed.GetValue() != want {
					t.Errorf("caller %d typed %q and got %v (%v)", i, want, r, err)
					return
				}
			}
		})
	}
	wg.Wait()
	for i, c := range callers {
		r := get[*browserv1.ListTabsResponse](c, &browserv1.ListTabsRequest{})
		if len(r.GetTabs()) != 1 || !strings.HasSuffix(r.GetTabs()[0].GetUrl(), fmt.Sprint("?", i)) {
			t.Errorf("caller %d has %v", i, r.GetTabs())
		}
	}
}
