package cdp

import (
	"strconv"
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Which page is the active one, what a popup is, and that ids are never used twice.
func TestTabs(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{
		"/": `<title>Opener</title><button onclick="window.open('/child')">Script</button><a href=/child target=_blank>Blank</a>
			<a href=/child target=_blank rel=opener>Kept</a><button onclick="setTimeout(()=>window.open('/child'),150)">Late</button>`,
		"/child": "<title>Child</title><button onclick='window.close()'>Bye</button>", "/untitled": "<p>x",
	})
	u := r.session("tabs")
	u.open(base + "/")
	list := func() []*browserv1.Tab {
		return do[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: u.id}).GetTabs()
	}
	first := list()[0].GetPageId()
	seen := map[string]bool{first: true}
	for _, name := range []string{"Script", "Blank", "Kept"} {
		role := "link"
		if name == "Script" {
			role = "button"
		}
		c := u.clickOn(role, name)
		if len(c.GetNewPageIds()) != 1 || seen[c.GetNewPageIds()[0]] {
			t.Fatalf("%s: the click said %v", name, c)
		}
		id := c.GetNewPageIds()[0]
		seen[id] = true
		if s := u.snapshot(); s.GetPageId() != first {
			t.Errorf("%s: the active page is %s", name, s.GetPageId())
		}
		do[*browserv1.ActivateTabResponse](r, &browserv1.ActivateTabRequest{SessionId: u.id, PageId: &id})
		if w := do[*browserv1.WaitResponse](r, &browserv1.WaitRequest{SessionId: u.id, SelectorPresent: ptr("button"), NavigationComplete: true}); !w.GetSatisfied() {
			t.Errorf("%s: the popup is %v", name, w)
		}
		tabs := list()
		if got := tabs[len(tabs)-1]; got.GetPageId() != id || got.GetTitle() != "Child" || !got.GetActive() || got.GetOpenerPageId() != first {
			t.Errorf("%s: the last tab is %v", name, got)
		}
		if c := u.clickOn("button", "Bye"); !c.GetClicked() {
			t.Errorf("%s: the click that closes said %v", name, c)
		}
		if w, err := try[*browserv1.WaitResponse](r, &browserv1.WaitRequest{SessionId: u.id, PageId: &id, TextPresent: ptr("never")}); fault.CodeOf(err) != fault.PageNotFound {
			t.Errorf("%s: the page is still there: %v %v", name, w, err)
		}
		fails(r, &browserv1.SnapshotRequest{SessionId: u.id, PageId: &id}, fault.PageNotFound, "")
		if s := u.snapshot(); s.GetPageId() != first {
			t.Errorf("%s: afterwards the active page is %s", name, s.GetPageId())
		}
	}
	two := do[*browserv1.NewTabResponse](r, &browserv1.NewTabRequest{SessionId: u.id, Url: ptr(base + "/untitled")})
	if two.GetTabId() == "" || seen[two.GetPageId()] || two.GetHttpStatus() != 200 {
		t.Errorf("tab.new said %v", two)
	}
	if tabs := list(); len(tabs) != 2 || tabs[0].GetActive() || !tabs[1].GetActive() || tabs[1].GetTitle() != "" {
		t.Errorf("the tabs are %v", tabs)
	}
	closed := do[*browserv1.CloseTabResponse](r, &browserv1.CloseTabRequest{SessionId: u.id, TabId: ptr(two.GetTabId())})
	if closed.GetActivePageId() != first {
		t.Errorf("tab.close said %v", closed)
	}
	fails(r, &browserv1.CloseTabRequest{SessionId: u.id, TabId: ptr(two.GetTabId())}, fault.PageNotFound, "")
	fails(r, &browserv1.ActivateTabRequest{SessionId: u.id, PageId: ptr("")}, fault.InvalidRequest, "")
	do[*browserv1.CloseTabResponse](r, &browserv1.CloseTabRequest{SessionId: u.id, PageId: &first})
	if tabs := list(); len(tabs) != 0 {
		t.Errorf("the tabs are %v", tabs)
	}
	fails(r, &browserv1.SnapshotRequest{SessionId: u.id}, fault.PageNotFound, "")
	if o := u.open(base + "/"); seen[o.GetPageId()] || o.GetPageId() == two.GetPageId() {
		t.Errorf("the id %s was used before", o.GetPageId())
	}
}

// A link to another program leads nowhere and leaves nothing behind that swallows clicks.
func TestExternalProtocols(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": "<title>E</title><a href='tel:123'>Call</a><a href='mailto:a@b.test'>Mail</a><button onclick='document.title+=1'>Count</button>"})
	u := r.session("external")
	u.open(base + "/")
	for _, name := range []string{"Call", "Mail"} {
		if c := u.clickOn("link", name); c.GetNavigationOccurred() || c.GetUrl() != base+"/" {
			t.Errorf("%s: %v", name, c)
		}
	}
	// The browser asks the desktop in its own time, so the clicks go on for a while.
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		u.clickOn("button", "Count")
	}
}

// Calls on one page run in the order in which they came.
func TestLane(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": "<title>0</title>"})
	u := r.session("lane")
	u.open(base + "/")
	const n = 30
	results := make(chan string, n)
	entered := make(chan struct{})
	for i := range n {
		go func() {
			entered <- struct{}{}
			resp, err := try[*browserv1.EvalResponse](r, &browserv1.EvalRequest{SessionId: u.id, Expression: "document.title = +document.title + 1"})
			if err != nil {
				t.Errorf("call %d: %v", i, err)
			}
			results <- resp.GetValue().String()
		}()
		<-entered
	}
	seen := map[string]bool{}
	for range n {
		seen[<-results] = true
	}
	if len(seen) != n {
		t.Errorf("%d of %d calls saw a state of their own", len(seen), n)
	}
}
