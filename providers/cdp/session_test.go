package cdp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

const cookiePage = "<title>C</title><script>document.cookie='who='+(new URL(location)).searchParams.get('me')+'; path=/'</script>"

// Sessions see nothing of each other, come back by name, and keep their demands.
func TestSessions(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/c": cookiePage, "/": "<title>Plain</title>"})
	a, b := r.session("a"), r.session("b")
	a.open(base + "/c?me=a")
	b.open(base + "/")
	if got := b.eval("document.cookie"); got != `""` {
		t.Errorf("b sees %s", got)
	}
	again := r.session("a")
	if again.id != a.id || again.info.GetCreated() {
		t.Errorf("ensure again said %v", again.info)
	}
	r.session("a", func(q *browserv1.EnsureSessionRequest) { q.Viewport = &browserv1.Size{Width: 501, Height: 402} })
	if got := a.eval("[innerWidth,innerHeight]"); got != "[501,402]" {
		t.Errorf("the viewport is %s", got)
	}
	tab := do[*browserv1.NewTabResponse](r, &browserv1.NewTabRequest{SessionId: a.id})
	if got := a.eval("[innerWidth,innerHeight]"); got != "[501,402]" {
		t.Errorf("the viewport of the new tab %s is %s", tab.GetTabId(), got)
	}
	fails(r, &browserv1.EnsureSessionRequest{ClientSessionId: "a", Persist: ptr(true)}, fault.InvalidRequest, "session_mismatch")
	fails(r, &browserv1.EnsureSessionRequest{ClientSessionId: "a", Isolation: browserv1.Isolation_ISOLATION_SHARED.Enum()}, fault.InvalidRequest, "session_mismatch")
	fails(r, &browserv1.EnsureSessionRequest{ClientSessionId: "a", Attach: browserv1.Attach_ATTACH_REQUIRE.Enum()}, fault.InvalidRequest, "session_mismatch")

	shared := func(q *browserv1.EnsureSessionRequest) { q.Isolation = browserv1.Isolation_ISOLATION_SHARED.Enum() }
	s1, s2 := r.session("s1", shared), r.session("s2", shared)
	s1.open(base + "/c?me=shared")
	s2.open(base + "/")
	if got := s2.eval("document.cookie"); got != `"who=shared"` {
		t.Errorf("the second shared session sees %s", got)
	}
	if tabs := do[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: s2.id}).GetTabs(); len(tabs) != 1 {
		t.Errorf("the second shared session has tabs %v", tabs)
	}
	do[*browserv1.CloseSessionResponse](r, &browserv1.CloseSessionRequest{SessionId: a.id})
	fails(r, &browserv1.SnapshotRequest{SessionId: a.id}, fault.SessionNotFound, "")
	fails(r, &browserv1.SnapshotRequest{SessionId: "nobody"}, fault.SessionNotFound, "")
	if c := r.session("a"); !c.info.GetCreated() || c.id == a.id {
		t.Errorf("a new session of an old name: %v", c.info)
	}
	s2.open(base + "/")
}

// A kept profile survives its session, and has one user at a time.
func TestPersist(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": "<title>K</title>"})
	keep := func(q *browserv1.EnsureSessionRequest) { q.Persist = ptr(true) }
	u := r.session("kept", keep)
	u.open(base + "/")
	u.eval("localStorage.k = 'v'; document.cookie='c=1; max-age=9999'; 0")

	other := newRig(t, nil)
	do[*browserv1.ConfigureResponse](other, &browserv1.ConfigureRequest{Host: &browserv1.HostSettings{RunDir: other.run, StateDir: r.state}})
	fails(other, &browserv1.EnsureSessionRequest{ClientSessionId: "kept", Persist: ptr(true)}, fault.NotReady, "in_use")

	do[*browserv1.CloseSessionResponse](r, &browserv1.CloseSessionRequest{SessionId: u.id})
	u = r.session("kept", keep)
	u.open(base + "/")
	if got := u.eval("localStorage.k"); got != `"v"` {
		t.Errorf("the kept storage is %s", got)
	}
}

// personsBrowser starts a browser as a person would who lets others drive it, and gives the address of its debugging port.
// It keeps pages in the back-forward cache.
func personsBrowser(t *testing.T) (url string, pid int) {
	t.Helper()
	dir := t.TempDir()
	// The browser's pages about itself, one of which discards tabs, open only with this.
	if err := os.WriteFile(filepath.Join(dir, "Local State"), []byte(`{"internal_only_uis_enabled":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(slices.DeleteFunc(Config{}.arguments()[2:], func(arg string) bool { return arg == "--disable-back-forward-cache" }), "--remote-debugging-port=0", "--user-data-dir="+dir, "about:blank")
	found, err := Config{}.choose("")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(found.path, args...)
	cmd.SysProcAttr = processAttributes()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killGroup(cmd.Process.Pid); _ = cmd.Wait() })
	port := ""
	for end := time.Now().Add(20 * time.Second); port == ""; time.Sleep(20 * time.Millisecond) {
		if data, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort")); err == nil {
			port, _, _ = strings.Cut(string(data), "\n")
		}
		if time.Now().After(end) {
			t.Fatal("the browser told no port")
		}
	}
	return "http://127.0.0.1:" + port, cmd.Process.Pid
}

// The browser that was attached to runs on, without the session's tabs.
func TestAttach(t *testing.T) {
	url, pid := personsBrowser(t)
	r := newRig(t, map[string]any{"attach_url": url})
	base := site(t, map[string]string{"/": formPage, "/c": cookiePage})
	require := func(q *browserv1.EnsureSessionRequest) { q.Attach = browserv1.Attach_ATTACH_REQUIRE.Enum() }
	u := r.session("own", require)
	if !u.info.GetAttachedToExistingBrowser() {
		t.Errorf("ensure said %v", u.info)
	}
	u.open(base + "/")
	u.clickOn("button", "Save")
	shared := r.session("shared", require, func(q *browserv1.EnsureSessionRequest) { q.Isolation = browserv1.Isolation_ISOLATION_SHARED.Enum() })
	shared.open(base + "/c?me=x")
	tabs := do[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: shared.id}).GetTabs()
	if len(tabs) != 2 {
		t.Errorf("the shared session sees tabs %v, want its own and the person's", tabs)
	}
	for _, s := range []*user{u, shared} {
		if c := do[*browserv1.CloseSessionResponse](r, &browserv1.CloseSessionRequest{SessionId: s.id}); c.GetDisposition() != browserv1.Disposition_DISPOSITION_DETACHED {
			t.Errorf("close said %v", c)
		}
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the person's browser is gone: %v", err)
	}
	third := r.session("third", require, func(q *browserv1.EnsureSessionRequest) { q.Isolation = browserv1.Isolation_ISOLATION_SHARED.Enum() })
	if tabs := do[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: third.id}).GetTabs(); len(tabs) != 2 {
		t.Errorf("tabs were left behind: %v", tabs)
	}

	none := newRig(t, map[string]any{"attach_url": "http://127.0.0.1:9"})
	fails(none, &browserv1.EnsureSessionRequest{ClientSessionId: "x", Attach: browserv1.Attach_ATTACH_REQUIRE.Enum()}, fault.NotReady, "attach_failed")
	if s := none.session("y", func(q *browserv1.EnsureSessionRequest) { q.Attach = browserv1.Attach_ATTACH_PREFER.Enum() }); s.info.GetAttachedToExistingBrowser() || len(s.info.GetWarnings()) == 0 {
		t.Errorf("prefer said %v", s.info)
	}
}

// A tab that the browser discarded is listed, and loads again when it is used.
func TestDiscardedTab(t *testing.T) {
	browser, _ := personsBrowser(t)
	base := site(t, map[string]string{"/": `<title>Kept</title><button onclick="document.title='went on'">Go</button>`})
	ask := func(method, path string, into any) {
		req, err := http.NewRequestWithContext(t.Context(), method, browser+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	type tab struct{ ID, URL string }
	var victim tab
	ask(http.MethodPut, "/json/new?"+url.QueryEscape(base+"/"), &victim)
	ask(http.MethodPut, "/json/new?about:blank", &tab{}) // What is shown is never discarded.
	r := newRig(t, map[string]any{"attach_url": browser})
	// The page of the browser's own that discards a tab, as a person would by hand. Its rows stand in shadow roots.
	hand := r.session("hand", func(q *browserv1.EnsureSessionRequest) { q.Attach = browserv1.Attach_ATTACH_REQUIRE.Enum() })
	hand.open("chrome://discards/#discards")
	discard := fmt.Sprintf(`(() => {
		const all = (n, out = []) => { for (const c of n.querySelectorAll('*')) { out.push(c); if (c.shadowRoot) all(c.shadowRoot, out) } return out };
		const row = all(document).find(e => e.localName === 'tr' && e.textContent.includes(%q) && /loaded/.test(e.textContent));
		[...row?.querySelectorAll('*') ?? []].find(e => !e.children.length && /Urgent/.test(e.textContent))?.click();
	})()`, base)
	for end, pause := time.Now().Add(20*time.Second), time.NewTicker(100*time.Millisecond); ; <-pause.C {
		hand.eval(discard)
		var tabs []tab
		ask(http.MethodGet, "/json/list", &tabs)
		if !slices.ContainsFunc(tabs, func(other tab) bool { return other.ID == victim.ID }) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the tab was not discarded: %v", tabs)
		}
	}
	u := r.session("shared", func(q *browserv1.EnsureSessionRequest) {
		q.Attach, q.Isolation = browserv1.Attach_ATTACH_REQUIRE.Enum(), browserv1.Isolation_ISOLATION_SHARED.Enum()
	})
	for _, found := range do[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: u.id}).GetTabs() {
		if found.GetUrl() != base+"/" {
			continue
		}
		snap := do[*browserv1.SnapshotResponse](r, &browserv1.SnapshotRequest{SessionId: u.id, PageId: ptr(found.GetPageId())})
		do[*browserv1.ClickResponse](r, &browserv1.ClickRequest{SessionId: u.id, PageId: ptr(found.GetPageId()), Target: byRef(snap.GetElements()[0].GetElementRef())})
		got := do[*browserv1.EvalResponse](r, &browserv1.EvalRequest{SessionId: u.id, PageId: ptr(found.GetPageId()), Expression: "document.title"})
		if got.GetValue().GetStringValue() != "went on" {
			t.Errorf("the title is %v", got)
		}
		return
	}
	t.Error("the discarded tab is not listed")
}

// A document that the back-forward cache kept comes back with its refs, and those of the document between are stale.
func TestBackForwardCache(t *testing.T) {
	url, _ := personsBrowser(t)
	r := newRig(t, map[string]any{"attach_url": url})
	base := site(t, map[string]string{
		"/":  `<title>First</title><script>born = Math.random()</script><button onclick="document.title='draft'">Delete</button>`,
		"/2": `<title>Second</title><button onclick="document.title='account'">Delete</button>`,
	})
	u := r.session("cache", func(q *browserv1.EnsureSessionRequest) { q.Attach = browserv1.Attach_ATTACH_REQUIRE.Enum() })
	u.open(base + "/")
	born, first := u.eval("born"), u.ref("button", "Delete")
	u.open(base + "/2")
	second := u.ref("button", "Delete")
	fails(r, &browserv1.ClickRequest{SessionId: u.id, Target: byRef(first)}, fault.ElementNotFound, "stale_ref")
	do[*browserv1.GoBackResponse](r, &browserv1.GoBackRequest{SessionId: u.id})
	if got := u.eval("born"); got != born {
		t.Fatalf("the document was made anew: %s, not %s", got, born)
	}
	fails(r, &browserv1.ClickRequest{SessionId: u.id, Target: byRef(second)}, fault.ElementNotFound, "stale_ref")
	if got := u.ref("button", "Delete"); got != first {
		t.Errorf("the button is %s, it was %s", got, first)
	}
	u.click(byRef(first))
	if got := u.eval("document.title"); got != `"draft"` {
		t.Errorf("the title is %s", got)
	}
	do[*browserv1.GoForwardResponse](r, &browserv1.GoForwardRequest{SessionId: u.id})
	u.click(byRef(second))
	if got := u.eval("document.title"); got != `"account"` {
		t.Errorf("the title is %s", got)
	}
}

// Without a browser the provider says what to do, and nothing crashes.
func TestNoBrowser(t *testing.T) {
	r := newRig(t, map[string]any{"browser": "/nonexistent/chromium"})
	st := do[*browserv1.StatusResponse](r, &browserv1.StatusRequest{})
	if st.GetAvailability() != browserv1.Availability_AVAILABILITY_UNAVAILABLE || !st.GetRequiresManualSetup() || len(st.GetManualSteps()) == 0 || st.GetBrowserDetected() {
		t.Errorf("status said %v", st)
	}
	fails(r, &browserv1.EnsureSessionRequest{ClientSessionId: "x"}, fault.SetupRequired, "browser_not_found")
	v := do[*browserv1.VerifyResponse](r, &browserv1.VerifyRequest{})
	if len(v.GetChecks()) != 1 || v.GetChecks()[0].GetStatus() != browserv1.CheckStatus_CHECK_STATUS_FAIL || v.GetChecks()[0].GetFix() == "" {
		t.Errorf("verify said %v", v)
	}
	if d := do[*browserv1.DescribeResponse](r, &browserv1.DescribeRequest{}); len(d.GetBrowsers()) != 0 {
		t.Errorf("describe lists %v", d.GetBrowsers())
	}

	// Something that is there, but no browser.
	fake := filepath.Join(t.TempDir(), "chromium")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\necho 'no such library' >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	broken := newRig(t, map[string]any{"browser": fake})
	if e := fails(broken, &browserv1.EnsureSessionRequest{ClientSessionId: "x"}, fault.NotReady, "browser_start_failed"); !strings.Contains(e.Message, "no such library") {
		t.Errorf("the error says %q", e.Message)
	}
}

// provider.verify and provider.describe with a real browser.
func TestVerify(t *testing.T) {
	r := newRig(t, nil)
	v := do[*browserv1.VerifyResponse](r, &browserv1.VerifyRequest{})
	for _, c := range v.GetChecks() {
		if c.GetStatus() == browserv1.CheckStatus_CHECK_STATUS_FAIL {
			t.Errorf("%s: %s", c.GetId(), c.GetMessage())
		}
	}
	if len(v.GetChecks()) < 6 {
		t.Errorf("only %v was checked", v.GetChecks())
	}
	d := do[*browserv1.DescribeResponse](r, &browserv1.DescribeRequest{})
	if len(d.GetBrowsers()) == 0 || d.GetBrowsers()[0].GetFamily() != "chromium" || d.GetBrowsers()[0].GetVersion() == "" {
		t.Errorf("describe lists %v", d.GetBrowsers())
	}
}

// What is wrong with a configuration is told with its path, and the old one stays.
func TestConfigure(t *testing.T) {
	for _, c := range []struct {
		config map[string]any
		path   string
	}{
		{map[string]any{"headles": true}, "headles"},
		{map[string]any{"headless": "yes"}, "headless"},
		{map[string]any{"browser": "netscape"}, "browser"},
		{map[string]any{"args": []any{"no-dashes"}}, "args"},
		{map[string]any{"args": []any{"--user-data-dir=/x"}}, "args"},
		{map[string]any{"attach_url": "9222"}, "attach_url"},
	} {
		r := &rig{t: t, srv: New()}
		got := do[*browserv1.ConfigureResponse](r, configureRequest(t, c.config))
		found := false
		for _, d := range got.GetDiagnostics() {
			found = found || d.GetLevel() == browserv1.Level_LEVEL_ERROR && d.GetPath() == c.path
		}
		if !found {
			t.Errorf("%v: %v", c.config, got.GetDiagnostics())
		}
	}
}
