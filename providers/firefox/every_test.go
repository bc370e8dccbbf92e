package firefox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

const everyPage = `<!doctype html><title>Every</title><style>#far{margin-top:3000px}</style>
<input id="i"><select id="s"><option>one</option><option>two</option></select><input type="file" id="f">
<div id="from" style="width:60px;height:60px;background:red">from</div><div id="to" style="width:60px;height:60px">to</div><p id="far">far</p><pre id="log"></pre>
<script>
const log = w => { document.getElementById('log').textContent += w + ' ' };
i.onkeydown = e => log('key:' + e.key); s.onchange = () => log('chosen:' + s.value);
let held = false; from.onmousedown = () => { held = true }; to.onmouseup = () => { if (held) log('dropped') };
to.onmouseenter = () => log('over');
</script>`

// Every method that describe lists is really there: each is called once on a page, and what it should do is looked at.
func TestEveryMethod(t *testing.T) {
	person(t)
	r := newRig(t)
	base := site(t, map[string]string{"/": everyPage, "/next": "<title>Next page</title>"})
	u := r.session("every")
	called := map[string]bool{"session.ensure": true}
	do := func(req proto.Message) proto.Message {
		t.Helper()
		m, _ := catalog.ByRequest(req)
		called[m.Name] = true
		if req.ProtoReflect().Descriptor().Fields().ByName("session_id") != nil {
			catalog.SetSessionID(req, u.id)
		}
		resp, err := try[proto.Message](r, req)
		if err != nil {
			t.Fatalf("%s: %v %v", m.Name, err, fault.From(err).Details)
		}
		return resp
	}
	file := filepath.Join(r.upload, "up.txt")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	local := browserv1.StorageArea_STORAGE_AREA_LOCAL
	do(&browserv1.StatusRequest{})
	do(&browserv1.SetupGuideRequest{})
	do(&browserv1.VerifyRequest{})
	do(&browserv1.OpenRequest{Url: base + "/"})
	do(&browserv1.SnapshotRequest{})
	do(&browserv1.ClickRequest{Target: bySelector("#i")})
	do(&browserv1.TypeRequest{Target: bySelector("#i"), Text: "ab"})
	do(&browserv1.PressRequest{Key: "Backspace", Target: bySelector("#i")})
	if got := do(&browserv1.SelectRequest{Target: bySelector("#s"), Labels: []string{"two"}}).(*browserv1.SelectResponse); !slices.Equal(got.GetSelected(), []string{"two"}) {
		t.Errorf("selected %v", got)
	}
	if got := do(&browserv1.HoverRequest{Target: bySelector("#to")}).(*browserv1.HoverResponse); len(got.GetWarnings()) != 1 {
		t.Errorf("hover said %v; what it lacks is to be told", got)
	}
	if got := do(&browserv1.DragRequest{From: bySelector("#from"), To: bySelector("#to")}).(*browserv1.DragResponse); !got.GetDropped() {
		t.Errorf("drag said %v", got)
	}
	if got := do(&browserv1.ScrollRequest{To: browserv1.ScrollTo_SCROLL_TO_BOTTOM.Enum()}).(*browserv1.ScrollResponse); got.GetScrollY() < 1000 {
		t.Errorf("scroll said %v", got)
	}
	do(&browserv1.WaitRequest{SelectorPresent: ptr("#far")})
	do(&browserv1.EvalRequest{Expression: "1"})
	if got := u.eval("i.value + '|' + document.getElementById('log').textContent"); got != `"a|key:Backspace chosen:two over over dropped "` {
		t.Errorf("the page was told %s", got)
	}
	do(&browserv1.ScreenshotRequest{})
	do(&browserv1.SetFilesRequest{Target: bySelector("#f"), Paths: []string{file}})
	do(&browserv1.SetStorageRequest{Area: local, Items: map[string]string{"every": "1"}})
	do(&browserv1.GetStorageRequest{Area: local})
	do(&browserv1.ClearStorageRequest{Area: local})
	do(&browserv1.SetCookiesRequest{Cookies: []*browserv1.Cookie{{Name: "every", Value: "1"}}})
	do(&browserv1.ListCookiesRequest{})
	do(&browserv1.ClearCookiesRequest{})
	do(&browserv1.ListRequestsRequest{})
	do(&browserv1.OpenRequest{Url: base + "/file"})
	do(&browserv1.WaitDownloadRequest{})
	list := do(&browserv1.ListDownloadsRequest{}).(*browserv1.ListDownloadsResponse)
	do(&browserv1.GetArtifactRequest{Ref: list.GetDownloads()[0].GetArtifactRef()})
	do(&browserv1.OpenRequest{Url: base + "/next"})
	do(&browserv1.GoBackRequest{})
	if got := do(&browserv1.GoForwardRequest{}).(*browserv1.GoForwardResponse); got.GetTitle() != "Next page" {
		t.Errorf("forward said %v", got)
	}
	do(&browserv1.ReloadRequest{})
	fresh := do(&browserv1.NewTabRequest{}).(*browserv1.NewTabResponse)
	do(&browserv1.ListTabsRequest{})
	do(&browserv1.ActivateTabRequest{TabId: &fresh.TabId})
	do(&browserv1.CloseTabRequest{TabId: &fresh.TabId})
	do(&browserv1.CloseSessionRequest{})

	d, err := r.srv.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(d.GetCapabilities().GetCoreMethods(), d.GetCapabilities().GetOptionalMethods()...) {
		if name != "provider.describe" && !called[name] {
			t.Errorf("%s is listed and was not called", name)
		}
	}
}

// A dialog holds its page and no other: the call that opened it ends at its deadline with a word of what may be the matter, and the
// session goes on.
func TestDialogHoldsOnePage(t *testing.T) {
	person(t)
	r := newRig(t)
	base := site(t, map[string]string{"/": `<title>Asks</title><button onclick="alert('well')">Ask</button>`, "/next": "<title>Next page</title>"})
	u := r.session("dialog")
	u.open(base + "/")
	ms := int32(2500)
	fails(r, &browserv1.ClickRequest{SessionId: u.id, Target: bySelector("button"), TimeoutMs: &ms}, fault.NotReady, "deadline_exceeded")
	fresh := ask[*browserv1.NewTabResponse](r, &browserv1.NewTabRequest{SessionId: u.id, Url: ptr(base + "/next")})
	if fresh.GetTitle() != "Next page" {
		t.Errorf("the new tab is %v", fresh)
	}
	if done := ask[*browserv1.CloseSessionResponse](r, &browserv1.CloseSessionRequest{SessionId: u.id}); !done.GetClosed() {
		t.Errorf("close said %v", done)
	}
}
