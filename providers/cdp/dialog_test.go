package cdp

import (
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

const dialogPage = `<!doctype html><title>D</title><script>window.got=[]</script>
<button onclick="got.push(confirm('Sure?'))">Ask</button><button onclick="got.push(prompt('Name?','old'))">Name</button>
<button onclick="setTimeout(()=>alert('later'),50)">Later</button>`

// A dialog answers the call that opened it, stops the calls that need the page, and nobody else.
func TestDialogs(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{
		"/": dialogPage, "/load": "<title>L</title><script>alert('hi')</script><h1>done</h1>",
		"/leave": "<title>Leave</title><script>addEventListener('beforeunload',e=>e.preventDefault())</script><input>", "/other": "<title>Other</title>",
	})
	u := r.session("dialogs")
	u.open(base + "/")
	ref := u.ref("button", "Ask")
	began := time.Now()
	c := u.click(byRef(ref))
	if d := c.GetDialog(); d.GetType() != "confirm" || d.GetMessage() != "Sure?" || time.Since(began) > 3*time.Second {
		t.Fatalf("the click said %v after %v", c, time.Since(began))
	}
	began = time.Now()
	e := fails(r, &browserv1.SnapshotRequest{SessionId: u.id}, fault.NotReady, "dialog_open")
	if d, _ := e.Details["dialog"].(map[string]any); d["message"] != "Sure?" || !e.Retryable || time.Since(began) > time.Second {
		t.Errorf("the snapshot said %v", e.Details)
	}
	fails(r, &browserv1.EvalRequest{SessionId: u.id, Expression: "1"}, fault.NotReady, "dialog_open")
	other := r.session("bystander")
	other.open(base + "/other")
	answer := func(a browserv1.DialogAction, text *string) {
		t.Helper()
		do[*browserv1.RespondDialogResponse](r, &browserv1.RespondDialogRequest{SessionId: u.id, Action: a, Text: text})
	}
	answer(browserv1.DialogAction_DIALOG_ACTION_DISMISS, nil)
	if d := u.clickOn("button", "Name").GetDialog(); d.GetDefaultValue() != "old" || d.GetType() != "prompt" {
		t.Errorf("the prompt is %v", d)
	}
	answer(browserv1.DialogAction_DIALOG_ACTION_ACCEPT, ptr(""))
	u.clickOn("button", "Name")
	answer(browserv1.DialogAction_DIALOG_ACTION_ACCEPT, nil)
	if got := u.eval("got"); got != `[false,"","old"]` {
		t.Errorf("the page got %s", got)
	}
	fails(r, &browserv1.RespondDialogRequest{SessionId: u.id, Action: browserv1.DialogAction_DIALOG_ACTION_ACCEPT}, fault.InvalidRequest, "no_dialog")

	// A wait that is under way when a dialog opens ends at once.
	u.clickOn("button", "Later")
	if e := fails(r, &browserv1.WaitRequest{SessionId: u.id, TextPresent: ptr("never")}, fault.NotReady, "dialog_open"); e == nil {
		t.Error("the wait went on")
	}
	answer(browserv1.DialogAction_DIALOG_ACTION_ACCEPT, nil)

	if o := u.open(base + "/load"); o.GetDialog().GetMessage() != "hi" {
		t.Errorf("a dialog while loading: %v", o)
	}
	answer(browserv1.DialogAction_DIALOG_ACTION_ACCEPT, nil)

	u.open(base + "/leave")
	u.click(bySelector("input")) // The browser asks only a person who touched the page.
	e = fails(r, &browserv1.OpenRequest{SessionId: u.id, Url: base + "/other"}, fault.NotReady, "dialog_open")
	if d, _ := e.Details["dialog"].(map[string]any); d["type"] != "beforeunload" {
		t.Errorf("leaving said %v", e.Details)
	}
	answer(browserv1.DialogAction_DIALOG_ACTION_DISMISS, nil)
	if s := u.snapshot(); s.GetTitle() != "Leave" {
		t.Errorf("after staying the page is %q", s.GetTitle())
	}
	fails(r, &browserv1.OpenRequest{SessionId: u.id, Url: base + "/other"}, fault.NotReady, "dialog_open")
	answer(browserv1.DialogAction_DIALOG_ACTION_ACCEPT, nil)
	if w := do[*browserv1.WaitResponse](r, &browserv1.WaitRequest{SessionId: u.id, UrlMatches: ptr("**/other"), NavigationComplete: true}); !w.GetSatisfied() {
		t.Errorf("after leaving the page is %s", w.GetUrl())
	}
}

// With a policy nobody has to answer.
func TestDialogPolicy(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": dialogPage})
	u := r.session("policy", func(q *browserv1.EnsureSessionRequest) {
		q.DialogPolicy = browserv1.DialogPolicy_DIALOG_POLICY_ACCEPT.Enum()
	})
	u.open(base + "/")
	if c := u.clickOn("button", "Ask"); c.GetDialog() != nil {
		t.Errorf("the click told of %v", c.GetDialog())
	}
	u.clickOn("button", "Name")
	if got := u.eval("got"); got != `[true,"old"]` {
		t.Errorf("the page got %s", got)
	}
}
