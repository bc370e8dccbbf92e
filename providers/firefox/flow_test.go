package firefox

import (
	"testing"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

const formPage = `<!doctype html><html lang="en"><title>Form</title>
<label>Name <input id="name"></label><button onclick="document.title='clicked '+document.getElementById('name').value">Save</button>
<a href="/next">Next</a><p id="out">hello</p></html>`

// The main job in a person's Firefox: open, read, type, click, wait, picture, back, close.
func TestMainJob(t *testing.T) {
	person(t)
	r := newRig(t)
	base := site(t, map[string]string{"/": formPage, "/next": "<title>Next page</title><h1>There</h1>"})
	u := r.session("main")
	if u.info.GetDefaultPageId() == "" || !u.info.GetCreated() || !u.info.GetAttachedToExistingBrowser() {
		t.Errorf("ensure said %v", u.info)
	}
	o := u.open(base + "/")
	if o.GetTitle() != "Form" || o.GetHttpStatus() != 200 || o.GetUrl() != base+"/" || o.GetNavigationState() != browserv1.NavigationState_NAVIGATION_STATE_COMPLETE {
		t.Errorf("open said %v", o)
	}
	typed := ask[*browserv1.TypeResponse](r, &browserv1.TypeRequest{SessionId: u.id, Target: byRef(u.ref("textbox", "Name")), Text: "Ada Löv 😀"})
	if typed.GetValue() != "Ada Löv 😀" {
		t.Errorf("type said %v", typed)
	}
	if c := u.clickOn("button", "Save"); !c.GetClicked() || c.GetNavigationOccurred() {
		t.Errorf("click said %v", c)
	}
	if got := u.eval("document.title"); got != `"clicked Ada Löv 😀"` {
		t.Errorf("the page's title is %s", got)
	}
	c := u.clickOn("link", "Next")
	if !c.GetNavigationOccurred() || c.GetUrl() != base+"/next" {
		t.Errorf("the click on the link said %v", c)
	}
	w := ask[*browserv1.WaitResponse](r, &browserv1.WaitRequest{SessionId: u.id, TextPresent: ptr("There"), NavigationComplete: true})
	if !w.GetSatisfied() {
		t.Errorf("wait said %v", w)
	}
	pic := ask[*browserv1.ScreenshotResponse](r, &browserv1.ScreenshotRequest{SessionId: u.id})
	if pic.GetWidth() < 100 || pic.GetHeight() < 100 || len(pic.GetImage()) == 0 {
		t.Errorf("the picture is %d by %d", pic.GetWidth(), pic.GetHeight())
	}
	back := ask[*browserv1.GoBackResponse](r, &browserv1.GoBackRequest{SessionId: u.id})
	if back.GetUrl() != base+"/" {
		t.Errorf("back said %v", back)
	}
	fails(r, &browserv1.GoBackRequest{SessionId: u.id}, fault.InvalidRequest, "no_history_entry")
	if done := ask[*browserv1.CloseSessionResponse](r, &browserv1.CloseSessionRequest{SessionId: u.id}); !done.GetClosed() {
		t.Errorf("close said %v", done)
	}
}
