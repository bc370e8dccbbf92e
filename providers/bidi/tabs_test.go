package bidi

import (
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

const openerPage = `<!doctype html><title>Opener</title><button onclick="window.open('/popup', 'w', 'width=400,height=300')">Open</button>
<a href="/popup" target="_blank">Link</a>`

// A click that opens a page gives its id, the popup does not become active, and ids are not used again.
func TestPopups(t *testing.T) {
	for _, family := range []string{familyFirefox, familyChromium} {
		t.Run(family, func(t *testing.T) {
			r := common.use(t)
			base := site(t, map[string]string{"/": openerPage, "/popup": `<title>Popup</title><button onclick="window.close()">Close</button>`})
			u := r.session("popups", prefer(family))
			u.open(base + "/")
			for _, el := range [][2]string{{"button", "Open"}, {"link", "Link"}} {
				c := u.clickOn(el[0], el[1])
				if len(c.GetNewPageIds()) != 1 {
					t.Fatalf("the click on %v said %v", el, c)
				}
				popup := c.GetNewPageIds()[0]
				eventually(t, "the popup's title", func() bool {
					for _, tab := range ask[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: u.id}).GetTabs() {
						if tab.GetPageId() == popup {
							return tab.GetTitle() == "Popup" && !tab.GetActive() && tab.GetOpenerPageId() == "p1"
						}
					}
					return false
				})
				w := ask[*browserv1.WaitResponse](r, &browserv1.WaitRequest{SessionId: u.id, PageId: &popup, SelectorPresent: ptr("button")})
				if !w.GetSatisfied() {
					t.Errorf("the popup shows no button: %v", w)
				}
				ask[*browserv1.ClickResponse](r, &browserv1.ClickRequest{SessionId: u.id, PageId: &popup, Target: bySelector("button")})
				fails(r, &browserv1.SnapshotRequest{SessionId: u.id, PageId: &popup}, fault.PageNotFound, "")
			}
			n := ask[*browserv1.NewTabResponse](r, &browserv1.NewTabRequest{SessionId: u.id, Url: ptr(base + "/popup")})
			if n.GetPageId() != "p4" || n.GetTitle() != "Popup" {
				t.Errorf("tab.new said %v", n)
			}
			c := ask[*browserv1.CloseTabResponse](r, &browserv1.CloseTabRequest{SessionId: u.id, TabId: ptr(n.GetTabId())})
			if !c.GetClosed() || c.GetActivePageId() != "p1" {
				t.Errorf("tab.close said %v", c)
			}
		})
	}
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("%s did not come about", what)
		}
		time.Sleep(20 * time.Millisecond) // It polls a browser, which has no clock of ours.
	}
}
