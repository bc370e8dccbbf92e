package cdp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// A ref dies with its document. When going back brings the very document back (back-forward cache), it lives again and means
// what it meant; when the page is loaded anew it stays dead. It never acts in the document between, nor is it given again.
func TestRefsAfterGoingBack(t *testing.T) {
	r := newRig(t, nil)
	button := func(name string) string {
		return fmt.Sprintf(`<title>%[1]s</title><button onclick="log.push('%[1]s')">%[1]s</button><a href="/second">Go on</a><script>log=[];born=Math.random()</script>`, name)
	}
	base := site(t, map[string]string{"/first": button("Delete draft"), "/second": button("Delete account")})
	u := r.session("back")
	u.open(base + "/first")
	born := u.eval("born")
	old := u.ref("button", "Delete draft")
	if c := u.clickOn("link", "Go on"); !c.GetNavigationOccurred() || c.GetUrl() != base+"/second" {
		t.Errorf("the click on the link said %v", c)
	}
	began := time.Now()
	fails(r, &browserv1.ClickRequest{SessionId: u.id, Target: byRef(old)}, fault.ElementNotFound, "stale_ref")
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the stale click took %v", took)
	}
	between := u.ref("button", "Delete account")
	do[*browserv1.GoBackResponse](r, &browserv1.GoBackRequest{SessionId: u.id})
	same := u.eval("born") == born
	now := u.ref("button", "Delete draft")
	if now == between || !same && now == old || same && now != old {
		t.Errorf("the same document: %v; the button was %s, is %s; the other page's was %s", same, old, now, between)
	}
	resp, err := try[*browserv1.ClickResponse](r, &browserv1.ClickRequest{SessionId: u.id, Target: byRef(old)})
	want := `"Delete draft"`
	if !same {
		want = `""`
		if fault.ReasonOf(err) != "stale_ref" {
			t.Errorf("the old ref said %v %v", resp, err)
		}
	}
	if got := u.eval("log.join()"); got != want {
		t.Errorf("the page got %s, want %s", got, want)
	}
	fails(r, &browserv1.ClickRequest{SessionId: u.id, Target: byRef(between)}, fault.ElementNotFound, "stale_ref")
	u.click(byRef(now))
	t.Logf("the back-forward cache kept the document: %v", same)
}

// A ref of one session or tab means nothing in another, though the numbers may be the same.
func TestRefsOfOtherTabsAndSessions(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": "<title>P</title><button onclick='document.title=\"pressed\"'>Press</button>"})
	one, two := r.session("one"), r.session("two")
	one.open(base + "/")
	two.open(base + "/")
	first := one.ref("button", "Press")
	tab := do[*browserv1.NewTabResponse](r, &browserv1.NewTabRequest{SessionId: one.id, Url: ptr(base + "/")})
	second := one.ref("button", "Press")
	if first == second {
		t.Errorf("two tabs of a session have the ref %s", first)
	}
	// It carries its page: without a page_id it is found where it lives, with another's it is refused.
	fails(r, &browserv1.ClickRequest{SessionId: one.id, PageId: ptr(tab.GetPageId()), Target: byRef(first)}, fault.ElementNotFound, "stale_ref")
	fails(r, &browserv1.ClickRequest{SessionId: two.id, Target: byRef(second)}, fault.ElementNotFound, "stale_ref")
	for _, u := range []*user{one, two} {
		if got := u.eval("document.title"); got != `"P"` {
			t.Errorf("a page was pressed: %s", got)
		}
	}
}

// Closing a tab that stands before the active one leaves the active one active.
func TestCloseAnEarlierTab(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/1": "<title>1</title>", "/2": "<title>2</title>", "/3": "<title>3</title>"})
	u := r.session("tabs")
	ids := []string{u.open(base + "/1").GetPageId()}
	for _, path := range []string{"/2", "/3"} {
		ids = append(ids, do[*browserv1.OpenResponse](r, &browserv1.OpenRequest{SessionId: u.id, Url: base + path, NewPage: true}).GetPageId())
	}
	do[*browserv1.ActivateTabResponse](r, &browserv1.ActivateTabRequest{SessionId: u.id, PageId: &ids[1]})
	do[*browserv1.CloseTabResponse](r, &browserv1.CloseTabRequest{SessionId: u.id, PageId: &ids[0]})
	if s := u.snapshot(); s.GetPageId() != ids[1] || s.GetTitle() != "2" {
		t.Errorf("the active page is %s %q", s.GetPageId(), s.GetTitle())
	}
	for i, tab := range do[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: u.id}).GetTabs() {
		if tab.GetPageId() != ids[i+1] || tab.GetActive() != (i == 0) {
			t.Errorf("tab %d is %v", i, tab)
		}
	}
	fails(r, &browserv1.CloseTabRequest{SessionId: u.id, PageId: &ids[0]}, fault.PageNotFound, "")
}

// The options of a list that the browser draws itself cannot be hit: clicking one either chooses it or says why not, and
// the list stays usable.
func TestClickOnANativeOption(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": "<title>S</title><select id=s aria-label=Way><option value=n>North<option value=s>South</select>"})
	u := r.session("option")
	u.open(base + "/")
	var south string
	for _, n := range u.snapshot().GetSnapshot().GetNodes() {
		if n.GetRole() == "option" && n.GetName() == "South" {
			south = n.GetElementRef()
		}
	}
	_, err := try[*browserv1.ClickResponse](r, &browserv1.ClickRequest{SessionId: u.id, Target: byRef(south)})
	if got := u.eval("s.value"); err == nil && got != `"s"` || err != nil && (got != `"n"` || fault.CodeOf(err) != fault.ElementNotActionable) {
		t.Errorf("the click said %v, the list holds %s", err, got)
	}
	if got := do[*browserv1.SelectResponse](r, &browserv1.SelectRequest{SessionId: u.id, Target: byRef(u.ref("combobox", "Way")), Labels: []string{"South"}}).GetSelected(); strings.Join(got, "") != "s" {
		t.Errorf("select said %v", got)
	}
}

// A page that asks for files holds nobody up: neither the click that made it ask, nor what comes after.
func TestFileChooserHoldsNobodyUp(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": `<title>F</title><input type=file id=f aria-label=Upload><label for=g>Pick</label><input type=file id=g hidden multiple>
		<button onclick="f.click()">Script</button><button onclick="document.title='went on'">Other</button><input type=file id=no aria-label=Refused onclick="event.preventDefault()">`})
	u := r.session("chooser")
	u.open(base + "/")
	for _, target := range []*browserv1.Target{bySelector("#f"), {TextQuery: ptr("Pick")}, {TextQuery: ptr("Script")}} {
		began := time.Now()
		asked(t, u.click(target).GetWarnings(), u)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("%v took %v", target, took)
		}
	}
	asked(t, do[*browserv1.PressResponse](r, &browserv1.PressRequest{SessionId: u.id, Target: bySelector("#f"), Key: "Enter"}).GetWarnings(), u)
	for _, quiet := range []*browserv1.Target{bySelector("#no"), {TextQuery: ptr("Other")}} {
		if w := u.click(quiet).GetWarnings(); len(w) != 0 {
			t.Errorf("%v warned: %v", quiet, w)
		}
	}
	if got := u.eval("document.title+f.files.length"); got != `"went on1"` {
		t.Errorf("the page is %s", got)
	}
	do[*browserv1.ScreenshotResponse](r, &browserv1.ScreenshotRequest{SessionId: u.id})
}

// asked checks that an action said that the page asked for files, and for which input, and that the input takes them.
func asked(t *testing.T, warnings []*browserv1.Warning, u *user) {
	t.Helper()
	if len(warnings) != 1 || warnings[0].GetCode() != "file_chooser" || !strings.Contains(warnings[0].GetMessage(), "upload.set_files") {
		t.Errorf("the warnings are %v", warnings)
		return
	}
	ref := warnings[0].GetDetails().GetFields()["element_ref"].GetStringValue()
	path := filepath.Join(u.upload, "a.txt")
	if err := os.WriteFile(path, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	do[*browserv1.SetFilesResponse](u.rig, &browserv1.SetFilesRequest{SessionId: u.id, Target: byRef(ref), Paths: []string{path}})
}

// A script that a navigation ended may have acted, so nobody is told to call it again.
func TestScriptThatNavigates(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": "<title>A</title>", "/b": "<title>B</title>"})
	u := r.session("eval")
	u.open(base + "/")
	e := fails(r, &browserv1.EvalRequest{SessionId: u.id, Expression: "location.href = '/b'; new Promise(() => {})"}, fault.NotReady, "navigated")
	if e.Retryable || !strings.Contains(e.Message, "may have acted") {
		t.Errorf("the error is %v", e)
	}
}
