package bidi

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// TestMain ends what the tests shared, and looks for what is left.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := common.end(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Firefox is offered first, each browser with its version, and verify really drives one.
func TestDescribeStatusVerify(t *testing.T) {
	r := newRig(t, nil)
	d, err := r.srv.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(d.GetBrowsers()) < 2 || d.GetBrowsers()[0].GetFamily() != familyFirefox || d.GetBrowsers()[1].GetFamily() != familyChromium {
		t.Fatalf("the browsers are %v", d.GetBrowsers())
	}
	for _, b := range d.GetBrowsers() {
		if !strings.Contains(b.GetVersion(), ".") || b.GetLabel() == "" {
			t.Errorf("a browser is %v", b)
		}
	}
	if n := len(d.GetCapabilities().GetOptionalMethods()) + len(d.GetCapabilities().GetCoreMethods()); n < 39 {
		t.Errorf("%d methods are listed", n)
	}
	for _, m := range d.GetCapabilities().GetCustomMethods() {
		if m.GetInputSchema() == nil || m.GetOutputSchema() == nil {
			t.Errorf("%s has no schemas", m.GetName())
		}
	}
	st := ask[*browserv1.StatusResponse](r, &browserv1.StatusRequest{})
	if st.GetAvailability() != browserv1.Availability_AVAILABILITY_READY || st.GetRecommendedBrowser() != "firefox" || st.GetBrowserRunning() {
		t.Errorf("status said %v", st)
	}
	for _, c := range ask[*browserv1.VerifyResponse](r, &browserv1.VerifyRequest{}).GetChecks() {
		if c.GetStatus() == browserv1.CheckStatus_CHECK_STATUS_FAIL {
			t.Errorf("verify said %v", c)
		}
	}
	if g := ask[*browserv1.SetupGuideResponse](r, &browserv1.SetupGuideRequest{}); len(g.GetSteps()) < 3 || !g.GetSteps()[0].GetDone() || !g.GetSteps()[1].GetDone() {
		t.Errorf("the guide is %v", g)
	}
}

// What is not there is named with what to do, and a wrong configuration with its path.
func TestNotThere(t *testing.T) {
	r := newRig(t, nil)
	e := fails(r, &browserv1.EnsureSessionRequest{ClientSessionId: "x", BrowserPreference: ptr("edge")}, fault.SetupRequired, "browser_not_found")
	if e.Details["manual_steps"] == nil {
		t.Errorf("it said %v", e.Details)
	}
	none := newRig(t, map[string]any{"browser": "/nonexistent/firefox"})
	if st := ask[*browserv1.StatusResponse](none, &browserv1.StatusRequest{}); st.GetAvailability() != browserv1.Availability_AVAILABILITY_UNAVAILABLE || len(st.GetManualSteps()) == 0 {
		t.Errorf("status said %v", st)
	}
	for path, c := range map[string]Config{
		"browser": {Browser: "netscape"}, "driver": {Driver: "chromedriver"}, "args": {Args: []string{"--profile"}},
		"prefs": {Prefs: map[string]any{"a": 1.5}}, "attach_url": {AttachURL: "http://x"},
	} {
		if found := c.check(); len(found) != 1 || found[0].GetPath() != path {
			t.Errorf("%s: %v", path, found)
		}
	}
}

// A kept profile is there again for the same client session, and for nobody else meanwhile.
func TestPersist(t *testing.T) {
	keep := func(r *browserv1.EnsureSessionRequest) { r.Persist = ptr(true) }
	eachOwn(t, func(t *testing.T, r *rig, family string) {
		base := site(t, map[string]string{"/": formPage})
		u := r.session("kept", prefer(family), keep)
		u.open(base + "/")
		u.eval("document.cookie='k=v;max-age=86400';localStorage.setItem('a','b')")
		other := New()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		defer other.Close(ctx)
		if err := callAny(ctx, other, &browserv1.ConfigureRequest{Host: &browserv1.HostSettings{RunDir: r.run, StateDir: r.state}}); err != nil {
			t.Fatal(err)
		}
		err := callAny(ctx, other, &browserv1.EnsureSessionRequest{ClientSessionId: "kept", BrowserPreference: &family, Persist: ptr(true)})
		if fault.ReasonOf(err) != "in_use" {
			t.Errorf("a second user got %v", err)
		}
		ask[*browserv1.CloseSessionResponse](r, &browserv1.CloseSessionRequest{SessionId: u.id})
		again := r.session("kept", prefer(family), keep)
		again.open(base + "/")
		if got := again.eval("document.cookie+localStorage.getItem('a')"); got != `"k=vb"` {
			t.Errorf("the profile holds %s", got)
		}
	})
}

// A running Firefox is attached to and left running; what the session opened goes with it.
func TestAttach(t *testing.T) {
	base := site(t, map[string]string{"/": formPage})
	host := newRig(t, nil)
	dir := t.TempDir()
	if err := writePrefs(dir, nil); err != nil {
		t.Fatal(err)
	}
	config := Config{}
	found, err := config.choose(familyFirefox)
	if err != nil {
		t.Fatal(err)
	}
	person, err := startProcess(found.path, []string{"--headless", "--remote-debugging-port=0", "--no-remote", "--profile", dir}, nil, "", "WebDriver BiDi listening on ")
	if err != nil {
		t.Fatal(err)
	}
	now, cancel := context.WithCancel(t.Context())
	defer person.stop(now)
	defer cancel()
	ctx, done := context.WithTimeout(t.Context(), 30*time.Second)
	defer done()
	address, err := person.address(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, map[string]any{"attach_url": address})
	require := func(q *browserv1.EnsureSessionRequest) { q.Attach = browserv1.Attach_ATTACH_REQUIRE.Enum() }
	u := r.session("guest", require)
	if !u.info.GetAttachedToExistingBrowser() {
		t.Errorf("ensure said %v", u.info)
	}
	u.open(base + "/")
	u.clickOn("link", "Next")
	c := ask[*browserv1.CloseSessionResponse](r, &browserv1.CloseSessionRequest{SessionId: u.id})
	if c.GetDisposition() != browserv1.Disposition_DISPOSITION_DETACHED {
		t.Errorf("close said %v", c)
	}
	r.srv.Close(ctx)
	select {
	case <-person.done:
		t.Errorf("the person's Firefox ended: %s", person.out.lastLine())
	default:
	}
	fails(host, &browserv1.EnsureSessionRequest{ClientSessionId: "x", Attach: browserv1.Attach_ATTACH_REQUIRE.Enum(), BrowserPreference: ptr("chromium")}, fault.SetupRequired, "not_attached")
}
