package firefox

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/providers/firefox/firefoxtest"
)

const addonHost = "11111111-2222-4333-8444-555555555555"

// popup is the add-on's popup, opened as a page.
type popup struct {
	t       *testing.T
	f       *firefoxtest.Firefox
	context string
}

func (p *popup) command(method string, params any) json.RawMessage {
	p.t.Helper()
	data, err := p.f.Command(p.t.Context(), method, params)
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

// eval evaluates in the popup and gives a string.
func (p *popup) eval(expression string) string {
	p.t.Helper()
	var got struct {
		Result struct {
			Value string `json:"value"`
		} `json:"result"`
	}
	data := p.command("script.evaluate", map[string]any{"expression": expression, "target": map[string]any{"context": p.context}, "awaitPromise": true})
	if err := json.Unmarshal(data, &got); err != nil {
		p.t.Fatal(err)
	}
	return got.Result.Value
}

func (p *popup) shows(words string) {
	p.t.Helper()
	within(p.t, "the popup shows "+words, func() bool { return strings.Contains(p.eval("document.body.innerText"), words) })
}

// The popup says what holds, pauses everything, and shares one tab of the person's, which the session then has and leaves open.
func TestPopup(t *testing.T) {
	dir, err := os.MkdirTemp("", "drover-fxp-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	o := options(dir)
	o.Prefs = map[string]any{"extensions.webextensions.uuids": `{"` + addonID + `":"` + addonHost + `"}`}
	f, err := firefoxtest.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	if err := awaitSockets(1); err != nil {
		t.Fatal(err)
	}
	p := &popup{t: t, f: f}
	newTab := func(address string) (context string) {
		var got struct{ Context string }
		if err := json.Unmarshal(p.command("browsingContext.create", map[string]any{"type": "tab"}), &got); err != nil {
			t.Fatal(err)
		}
		p.command("browsingContext.navigate", map[string]any{"context": got.Context, "url": address, "wait": "complete"})
		return got.Context
	}
	base := site(t, map[string]string{"/": formPage, "/mine": "<title>Mine</title><h1>Private words</h1>"})
	person := newTab(base + "/mine")
	p.context = newTab("moz-extension://" + addonHost + "/popup.html")
	p.shows("Connected. Drover drives nothing")

	r := newRig(t)
	u := r.session("shown")
	u.open(base + "/")
	p.shows("1 session with 1 tab")

	p.eval("document.getElementById('pause').click()")
	p.shows("Paused")
	fails(r, &browserv1.SnapshotRequest{SessionId: u.id}, fault.NotReady, "paused")
	fails(r, &browserv1.EnsureSessionRequest{ClientSessionId: "another"}, fault.NotReady, "paused")
	st := ask[*browserv1.StatusResponse](r, &browserv1.StatusRequest{})
	if st.GetAvailability() != browserv1.Availability_AVAILABILITY_UNAVAILABLE || st.GetDiagnostics()[0].GetCode() != "bridge_paused" {
		t.Errorf("status said %v", st)
	}
	p.eval("document.getElementById('pause').click()")
	p.shows("1 session with 1 tab")
	if got := u.eval("document.title"); got != `"Form"` {
		t.Errorf("after the pause the page is %s", got)
	}

	p.eval(`browser.tabs.query({title: 'Mine'}).then(([t]) => browser.runtime.sendMessage({type: 'share', tab: t.id})).then(() => 'done')`)
	p.shows("1 session with 2 tabs")
	shared := ""
	within(t, "the session has the shared tab", func() bool {
		for _, tab := range ask[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: u.id}).GetTabs() {
			if tab.GetTitle() == "Mine" {
				shared = tab.GetPageId()
			}
		}
		return shared != ""
	})
	s := ask[*browserv1.SnapshotResponse](r, &browserv1.SnapshotRequest{SessionId: u.id, PageId: &shared})
	if !strings.Contains(s.GetText(), "Private words") {
		t.Errorf("the shared tab reads %q", s.GetText())
	}
	ask[*browserv1.CloseSessionResponse](r, &browserv1.CloseSessionRequest{SessionId: u.id})
	p.shows("Drover drives nothing")
	p.command("browsingContext.getTree", map[string]any{"root": person}) // It is there still.

	// A page is not the popup, whatever it says.
	if left := p.eval("browser.runtime.sendMessage({type: 'nonsense'}).then(v => String(v), e => 'refused')"); left != "undefined" && left != "refused" {
		t.Errorf("an unknown question got %s", left)
	}
}
