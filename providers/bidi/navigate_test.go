package bidi

import (
	"strings"
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Every way in which a navigation can end has its own answer.
func TestNavigationStates(t *testing.T) {
	each(t, func(t *testing.T, r *rig, family string) {
		base := site(t, map[string]string{
			"/": formPage, "/b": "<title>B</title>b", "/slow": `<title>Slow</title><img src="/never">`,
			"/script": `<title>Script</title><script>location.replace('/b')</script>`,
		})
		u := r.session("nav", prefer(family))
		u.open(base + "/")
		for _, c := range []struct {
			url, want, title string
			state            browserv1.NavigationState
			status           int32
		}{
			{base + "/#x", base + "/#x", "Form", browserv1.NavigationState_NAVIGATION_STATE_SAME_DOCUMENT, 0},
			{base + "/go?to=/b", base + "/b", "B", browserv1.NavigationState_NAVIGATION_STATE_COMPLETE, 200},
			{base + "/missing", base + "/missing", "", browserv1.NavigationState_NAVIGATION_STATE_COMPLETE, 404},
			{base + "/dl/a?name=a.csv", base + "/missing", "", browserv1.NavigationState_NAVIGATION_STATE_DOWNLOAD, 0},
			{base + "/204", base + "/missing", "", browserv1.NavigationState_NAVIGATION_STATE_SAME_DOCUMENT, 204},
			{"drover-unknown:x", base + "/missing", "", browserv1.NavigationState_NAVIGATION_STATE_EXTERNAL_SCHEME, 0},
			{"data:text/html,<title>D</title>", "data:text/html,<title>D</title>", "D", browserv1.NavigationState_NAVIGATION_STATE_COMPLETE, 0},
		} {
			o := u.open(c.url)
			if o.GetNavigationState() != c.state || o.GetUrl() != c.want || o.GetTitle() != c.title || o.GetHttpStatus() != c.status && c.status != 204 && c.url[:4] == "http" {
				t.Errorf("%s: %v", c.url, o)
			}
		}
		u.open(base + "/script")
		ask[*browserv1.WaitResponse](r, &browserv1.WaitRequest{SessionId: u.id, UrlMatches: ptr(base + "/b"), NavigationComplete: true})
		if got := u.eval("document.title"); got != `"B"` {
			t.Errorf("the redirect of the script led to %s", got)
		}
		began := time.Now()
		fails(r, &browserv1.OpenRequest{SessionId: u.id, Url: base + "/slow", TimeoutMs: ptr(int32(800))}, fault.NavigationTimeout, "deadline_exceeded")
		fails(r, &browserv1.OpenRequest{SessionId: u.id, Url: base + "/never", TimeoutMs: ptr(int32(800))}, fault.NavigationTimeout, "deadline_exceeded")
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("two deadlines of 800 ms took %v", took)
		}
		o := ask[*browserv1.OpenResponse](r, &browserv1.OpenRequest{
			SessionId: u.id, Url: base + "/slow", WaitUntil: browserv1.WaitUntil_WAIT_UNTIL_DOMCONTENTLOADED.Enum(),
		})
		if o.GetTitle() != "Slow" {
			t.Errorf("domcontentloaded: %v", o)
		}
		e := fails(r, &browserv1.OpenRequest{SessionId: u.id, Url: "http://127.0.0.1:9/"}, fault.NotReady, "navigation_failed")
		if e.Details["url"] == nil {
			t.Errorf("a refused connection said %v", e.Details)
		}
		fails(r, &browserv1.OpenRequest{SessionId: u.id, Url: "javascript:alert(1)"}, fault.PermissionDenied, "url_refused")
		fails(r, &browserv1.OpenRequest{SessionId: u.id, Url: "/x"}, fault.InvalidRequest, "")
		idle := ask[*browserv1.OpenResponse](r, &browserv1.OpenRequest{
			SessionId: u.id, Url: base + "/b", WaitUntil: browserv1.WaitUntil_WAIT_UNTIL_NETWORKIDLE.Enum(),
		})
		if idle.GetTitle() != "B" {
			t.Errorf("networkidle: %v", idle)
		}
	})
}

// Calls answer at once while a dialog is open, the click that opened it says so, and each answer reaches the page.
func TestDialogs(t *testing.T) {
	each(t, func(t *testing.T, r *rig, family string) {
		base := site(t, map[string]string{"/": `<!doctype html><title>D</title><button onclick="window.r=confirm('Sure?')">Confirm</button>
<button onclick="window.r=prompt('Name?','Bo')">Prompt</button><button onclick="alert('Hi')">Alert</button>
<button onclick="onbeforeunload=e=>{e.preventDefault();return 'x'}">Guard</button>`, "/b": "<title>B</title>"})
		u := r.session("dialogs", prefer(family))
		u.open(base + "/")
		refs := map[string]string{}
		for _, e := range u.snapshot().GetElements() {
			refs[e.GetName()] = e.GetElementRef()
		}
		began := time.Now()
		c := u.click(byRef(refs["Prompt"]))
		if d := c.GetDialog(); d.GetType() != "prompt" || d.GetMessage() != "Name?" || d.GetDefaultValue() != "Bo" || time.Since(began) > 3*time.Second {
			t.Fatalf("after %v the click said %v", time.Since(began), c)
		}
		e := fails(r, &browserv1.SnapshotRequest{SessionId: u.id}, fault.NotReady, "dialog_open")
		if e.Details["dialog"] == nil {
			t.Errorf("dialog_open said %v", e.Details)
		}
		fails(r, &browserv1.OpenRequest{SessionId: u.id, Url: base + "/b"}, fault.NotReady, "dialog_open")
		answer := func(action browserv1.DialogAction, text *string) {
			t.Helper()
			ask[*browserv1.RespondDialogResponse](r, &browserv1.RespondDialogRequest{SessionId: u.id, Action: action, Text: text})
			if d := ask[*browserv1.GetDialogResponse](r, &browserv1.GetDialogRequest{SessionId: u.id}).GetDialog(); d != nil {
				t.Errorf("still open: %v", d)
			}
		}
		answer(browserv1.DialogAction_DIALOG_ACTION_ACCEPT, ptr("Ada"))
		if got := u.eval("r"); got != `"Ada"` {
			t.Errorf("the prompt gave %s", got)
		}
		u.click(byRef(refs["Confirm"]))
		answer(browserv1.DialogAction_DIALOG_ACTION_DISMISS, nil)
		if got := u.eval("r"); got != "false" {
			t.Errorf("the confirm gave %s", got)
		}
		fails(r, &browserv1.RespondDialogRequest{SessionId: u.id, Action: browserv1.DialogAction_DIALOG_ACTION_ACCEPT}, fault.InvalidRequest, "no_dialog")
		u.click(byRef(refs["Guard"]))
		o := u.open(base + "/b")
		if o.GetDialog().GetType() != "beforeunload" || o.GetNavigationState() != browserv1.NavigationState_NAVIGATION_STATE_LOADING {
			t.Fatalf("leaving said %v", o)
		}
		answer(browserv1.DialogAction_DIALOG_ACTION_DISMISS, nil)
		if got := u.eval("document.title"); got != `"D"` {
			t.Errorf("after staying the page is %s", got)
		}
		u.open(base + "/b")
		answer(browserv1.DialogAction_DIALOG_ACTION_ACCEPT, nil)
		left := ask[*browserv1.WaitResponse](r, &browserv1.WaitRequest{SessionId: u.id, UrlMatches: ptr(base + "/b"), NavigationComplete: true})
		if !left.GetSatisfied() {
			t.Errorf("leaving ended at %v", left)
		}
	})
}

// A dialog of a page that is not in front is answered as well, and a session can have its dialogs answered by itself.
func TestDialogInBackgroundAndPolicy(t *testing.T) {
	each(t, func(t *testing.T, r *rig, family string) {
		base := site(t, map[string]string{"/": `<!doctype html><title>D</title><button onclick="setTimeout(()=>window.r=confirm('late'),300)">Later</button>`})
		u := r.session("back", prefer(family))
		u.open(base + "/")
		u.clickOn("button", "Later")
		ask[*browserv1.NewTabResponse](r, &browserv1.NewTabRequest{SessionId: u.id, Url: ptr(base + "/")})
		first := ptr("p1")
		eventually(t, "the dialog", func() bool {
			return ask[*browserv1.GetDialogResponse](r, &browserv1.GetDialogRequest{SessionId: u.id, PageId: first}).GetDialog() != nil
		})
		u.snapshot() // The other page is served meanwhile.
		ask[*browserv1.RespondDialogResponse](r, &browserv1.RespondDialogRequest{SessionId: u.id, PageId: first, Action: browserv1.DialogAction_DIALOG_ACTION_ACCEPT})
		got := ask[*browserv1.EvalResponse](r, &browserv1.EvalRequest{SessionId: u.id, PageId: first, Expression: "r"})
		if !got.GetValue().GetBoolValue() {
			t.Errorf("the confirm gave %v", got)
		}
		a := r.session("auto", prefer(family), func(q *browserv1.EnsureSessionRequest) {
			q.DialogPolicy = browserv1.DialogPolicy_DIALOG_POLICY_ACCEPT.Enum()
		})
		a.open(base + "/")
		if got := a.eval("confirm('ok?')"); got != "true" {
			t.Errorf("the policy's answer is %s", got)
		}
	})
}

// A session's user context shares no cookies or storage with another's, and a shared session does.
func TestIsolation(t *testing.T) {
	each(t, func(t *testing.T, r *rig, family string) {
		base := site(t, map[string]string{"/": formPage})
		a, b := r.session("a", prefer(family)), r.session("b", prefer(family))
		a.open(base + "/")
		b.open(base + "/")
		a.eval("document.cookie='k=v';localStorage.setItem('x','1')")
		if got := b.eval("document.cookie+localStorage.getItem('x')"); got != `"null"` {
			t.Errorf("the other session sees %s", got)
		}
		shared := func(q *browserv1.EnsureSessionRequest) { q.Isolation = browserv1.Isolation_ISOLATION_SHARED.Enum() }
		c, d := r.session("c", prefer(family), shared), r.session("d", prefer(family), shared)
		c.open(base + "/")
		d.open(base + "/")
		c.eval("document.cookie='k=shared'")
		if got := d.eval("document.cookie"); !strings.Contains(got, "k=shared") {
			t.Errorf("the shared session sees %s", got)
		}
		ask[*browserv1.CloseSessionResponse](r, &browserv1.CloseSessionRequest{SessionId: c.id})
		d.ref("button", "Save")
		fails(r, &browserv1.SnapshotRequest{SessionId: c.id}, fault.SessionNotFound, "")
		again := r.session("d", prefer(family), func(q *browserv1.EnsureSessionRequest) { q.Viewport = &browserv1.Size{Width: 640, Height: 480} })
		if again.info.GetCreated() || again.id != d.id {
			t.Errorf("ensure again said %v", again.info)
		}
		eventually(t, "the new viewport", func() bool { return d.eval("innerWidth+'x'+innerHeight") == `"640x480"` })
		fails(r, &browserv1.EnsureSessionRequest{ClientSessionId: "d", Isolation: browserv1.Isolation_ISOLATION_PER_CLIENT_SESSION.Enum()}, fault.InvalidRequest, "session_mismatch")
	})
}
