package cdp

import (
	"strings"
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Where navigations end, and what they are told as: redirects, fragments, downloads, pages that never come.
func TestNavigation(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{
		"/a": "<title>A</title><h1 id=top>A</h1><a href='#x'>jump</a><p style='height:3000px'></p><h2 id=x>X</h2>", "/b": "<title>B</title><h1>B</h1>",
		"/script":  "<title>S</title><script>location.replace('/b?from=script')</script>",
		"/onload":  "<title>L</title><body onload=\"location.href='/b?from=load'\">",
		"/refresh": "<title>R</title><meta http-equiv=refresh content='0;url=/b?from=refresh'>",
		"/slowimg": "<title>Slow</title><h1>slow</h1><img src=/never>",
		"/push":    "<title>P</title><button onclick=\"history.pushState({},'','/pushed')\">Push</button>",
		"/app":     "<title>App</title><h1>app</h1><script>location.href='acme-chat://x'</script>",
		"/leave":   "<title>Leave</title><script>onbeforeunload=e=>{e.preventDefault();return 'x'}</script><input id=i>",
	})
	u := r.session("nav")
	open := func(path string, until browserv1.WaitUntil, ms int32) (*browserv1.OpenResponse, error) {
		return try[*browserv1.OpenResponse](r, &browserv1.OpenRequest{SessionId: u.id, Url: base + path, WaitUntil: &until, TimeoutMs: &ms})
	}
	const (
		load = browserv1.WaitUntil_WAIT_UNTIL_LOAD
		dom  = browserv1.WaitUntil_WAIT_UNTIL_DOMCONTENTLOADED
		idle = browserv1.WaitUntil_WAIT_UNTIL_NETWORKIDLE
	)
	const (
		complete = browserv1.NavigationState_NAVIGATION_STATE_COMPLETE
		same     = browserv1.NavigationState_NAVIGATION_STATE_SAME_DOCUMENT
		external = browserv1.NavigationState_NAVIGATION_STATE_EXTERNAL_SCHEME
		download = browserv1.NavigationState_NAVIGATION_STATE_DOWNLOAD
	)
	for _, c := range []struct {
		path, url, title string
		state            browserv1.NavigationState
		status           int32
		until            browserv1.WaitUntil
	}{
		{"/a", "/a", "A", complete, 200, load},
		{"/a#x", "/a#x", "A", same, 0, load},
		{"/a#x", "/a#x", "A", same, 0, idle},
		{"/a", "/a", "A", complete, 200, load},
		{"/go?to=/b", "/b", "B", complete, 200, load},
		{"/script", "/b?from=script", "B", complete, 200, load},
		{"/onload", "/b?from=load", "B", complete, 200, load},
		{"/refresh", "/b?from=refresh", "B", complete, 200, load},
		{"/b", "/b", "B", complete, 200, idle},
		{"/slowimg", "/slowimg", "Slow", complete, 200, dom},
		{"/app", "/app", "App", complete, 200, load},
		{"/missing", "/missing", "", complete, 404, load},
		{"/204", "/missing", "", same, 204, load},
		{"/dl/x?name=x.csv", "/missing", "", download, 0, load},
	} {
		began := time.Now()
		o, err := open(c.path, c.until, 8000)
		if err != nil {
			t.Errorf("open %s: %v", c.path, err)
			continue
		}
		if o.GetUrl() != base+c.url || o.GetTitle() != c.title || o.GetNavigationState() != c.state || o.GetHttpStatus() != c.status {
			t.Errorf("open %s said %v, after %v", c.path, o, time.Since(began))
		}
	}
	if o := u.open("acme-chat://hello"); o.GetNavigationState() != external || o.GetUrl() != base+"/missing" {
		t.Errorf("a custom scheme said %v", o)
	}
	if o := u.open("data:text/html,<title>Data</title>"); o.GetTitle() != "Data" {
		t.Errorf("a data URL said %v", o)
	}
	if o := u.open("about:blank"); o.GetUrl() != "about:blank" {
		t.Errorf("about:blank said %v", o)
	}
	for _, c := range []struct {
		path  string
		until browserv1.WaitUntil
	}{{"/never", load}, {"/slowimg", load}} {
		began := time.Now()
		_, err := open(c.path, c.until, 700)
		if e := fault.From(err); err == nil || e.Code != fault.NavigationTimeout || e.ReasonWord() != "deadline_exceeded" {
			t.Errorf("open %s: %v", c.path, err)
		}
		if took := time.Since(began); took < 650*time.Millisecond || took > 2*time.Second {
			t.Errorf("open %s gave up after %v", c.path, took)
		}
		if s := u.snapshot(); s.GetUrl() == "" { // The page that is shown can be read again.
			t.Errorf("after open %s: %v", c.path, s)
		}
	}
	for _, c := range []struct{ url, net string }{{"http://127.0.0.1:9/", "net::ERR_"}, {"http://nowhere.invalid/", "net::ERR_NAME_NOT_RESOLVED"}} {
		e := fails(r, &browserv1.OpenRequest{SessionId: u.id, Url: c.url}, fault.NotReady, "navigation_failed")
		if got, _ := e.Details["net_error"].(string); !strings.HasPrefix(got, c.net) || !e.Retryable {
			t.Errorf("open %s: %v", c.url, e.Details)
		}
	}
	fails(r, &browserv1.OpenRequest{SessionId: u.id, Url: "not a url"}, fault.InvalidRequest, "")
	fails(r, &browserv1.OpenRequest{SessionId: u.id, Url: "javascript:1"}, fault.PermissionDenied, "url_refused")

	u.open(base + "/push")
	if c := u.clickOn("button", "Push"); !c.GetNavigationOccurred() || c.GetUrl() != base+"/pushed" {
		t.Errorf("pushState: %v", c)
	}
}

// The page's history, and what is said when it has no entry to go to.
func TestHistory(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/1": "<title>1</title>", "/2": "<title>2</title><a href=#h>h</a>", "/3": "<title>3</title>"})
	u := r.session("history")
	u.open(base + "/1")
	fails(r, &browserv1.GoBackRequest{SessionId: u.id}, fault.InvalidRequest, "no_history_entry")
	fails(r, &browserv1.GoForwardRequest{SessionId: u.id}, fault.InvalidRequest, "no_history_entry")
	u.open(base + "/2")
	u.open(base + "/2#h")
	u.open(base + "/3")
	back := func() *browserv1.GoBackResponse {
		return do[*browserv1.GoBackResponse](r, &browserv1.GoBackRequest{SessionId: u.id})
	}
	if b := back(); b.GetUrl() != base+"/2#h" || b.GetHttpStatus() != 200 {
		t.Errorf("back said %v", b)
	}
	if b := back(); b.GetUrl() != base+"/2" || b.GetNavigationState() != browserv1.NavigationState_NAVIGATION_STATE_SAME_DOCUMENT {
		t.Errorf("back within the document said %v", b)
	}
	if b := back(); b.GetUrl() != base+"/1" || b.GetTitle() != "1" {
		t.Errorf("back said %v", b)
	}
	if f := do[*browserv1.GoForwardResponse](r, &browserv1.GoForwardRequest{SessionId: u.id}); f.GetUrl() != base+"/2" {
		t.Errorf("forward said %v", f)
	}
	if l := do[*browserv1.ReloadResponse](r, &browserv1.ReloadRequest{SessionId: u.id}); l.GetUrl() != base+"/2" || l.GetNavigationState() != browserv1.NavigationState_NAVIGATION_STATE_COMPLETE {
		t.Errorf("reload said %v", l)
	}
}
