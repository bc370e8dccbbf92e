package extension

import (
	"slices"
	"strings"
	"testing"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/providers/extension/bridge"
)

func (r *rig) browsers() []bridge.Browser {
	r.t.Helper()
	n, err := r.p.bridge(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return slices.DeleteFunc(n.Browsers(), func(b bridge.Browser) bool { return !b.Connected })
}

// Without a pairing the provider is unavailable, says what a person has to do, and makes nobody wait.
func TestNotPairedSaysWhatToDo(t *testing.T) {
	r := newRig(t, newPlace(t), nil)
	st := do[*browserv1.StatusResponse](r, &browserv1.StatusRequest{})
	if st.GetAvailability() != browserv1.Availability_AVAILABILITY_UNAVAILABLE || st.GetSetupState() != browserv1.SetupState_SETUP_STATE_REQUIRED || len(st.GetManualSteps()) == 0 {
		t.Errorf("status: %v", st)
	}
	_, err := try[*browserv1.EnsureSessionResponse](r, &browserv1.EnsureSessionRequest{ClientSessionId: "a", Attach: require()})
	if fault.CodeOf(err) != fault.SetupRequired {
		t.Errorf("ensure: %v", err)
	}
}

// The worker is killed while a session is under way: the same session, page and refs go on, and the browser connects again.
func TestTheWorkerIsKilled(t *testing.T) {
	at := newPlace(t)
	r := newRig(t, at, nil)
	c := startChrome(t, unpacked(t))
	_, popup := c.pair(at.url(), "websocket")
	id := r.session("a")
	do[*browserv1.OpenResponse](r, &browserv1.OpenRequest{SessionId: id, Url: site(t) + "/"})
	snap := do[*browserv1.SnapshotResponse](r, &browserv1.SnapshotRequest{SessionId: id})
	ref := ""
	for _, e := range snap.GetElements() {
		if e.GetName() == "Greet" {
			ref = e.GetElementRef()
		}
	}
	c.killWorker()
	eventually(t, "the browser is away", func() bool { return len(r.browsers()) == 0 })
	c.eval(popup, `chrome.runtime.sendMessage({ type: 'getStatus' }).then(() => true)`) // as a person opens the popup; an alarm would do it too
	eventually(t, "the browser is back", func() bool { return len(r.browsers()) == 1 })
	do[*browserv1.ClickResponse](r, &browserv1.ClickRequest{SessionId: id, Target: &browserv1.Target{ElementRef: &ref}})
	if got := do[*browserv1.EvalResponse](r, &browserv1.EvalRequest{SessionId: id, Expression: "document.getElementById('out').textContent"}).GetValue().GetStringValue(); got != "Hello " {
		t.Errorf("the page says %q", got)
	}
}

// What a person says in the popup sticks: a disconnected browser stays away, also when its worker begins anew, and so does one
// whose token was revoked.
func TestDisconnectAndRevocationStick(t *testing.T) {
	at := newPlace(t)
	r := newRig(t, at, nil)
	c := startChrome(t, unpacked(t))
	_, popup := c.pair(at.url(), "websocket")
	state := `document.getElementById('statusCard').dataset.phase`
	c.until(popup, state+` === 'connected'`)
	c.eval(popup, `document.getElementById('disconnectBtn').click(), true`)
	c.until(popup, state+` === 'off'`)
	eventually(t, "the browser is away", func() bool { return len(r.browsers()) == 0 })
	c.killWorker()
	eventually(t, "the worker is gone", func() bool { return c.worker() == "" })
	if got := c.eval(popup, `chrome.runtime.sendMessage({ type: 'getStatus' }).then(s => s.phase)`); got != "off" {
		t.Errorf("a new worker is %v", got)
	}
	c.eval(popup, `document.getElementById('connectBtn').click(), true`)
	c.until(popup, state+` === 'connected'`)
	n, err := r.p.bridge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the browser is back", func() bool { return len(r.browsers()) == 1 })
	if ok, err := n.Revoke(r.browsers()[0].Target); !ok || err != nil {
		t.Fatalf("revoke: %v %v", ok, err)
	}
	c.until(popup, state+` === 'refused'`)
	if got := c.eval(popup, `chrome.storage.local.get('connection').then(({ connection: c }) => c.token === '' && !c.enabled)`); got != true {
		t.Error("the token is kept")
	}
	if text := c.eval(popup, `document.body.innerText`).(string); !strings.Contains(text, "Pair again") {
		t.Errorf("the popup says %q", text)
	}
}

// A tab outside the group is out of reach for every tool, and so is one that leaves it.
func TestTabsOutsideTheGroup(t *testing.T) {
	at := newPlace(t)
	r := newRig(t, at, nil)
	c := startChrome(t, unpacked(t))
	_, popup := c.pair(at.url(), "websocket")
	foreign := int(c.eval(popup, `chrome.tabs.getCurrent().then(t => t.id)`).(float64))
	n, err := r.p.bridge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	target := r.browsers()[0].Target
	for tool, args := range map[string]map[string]any{
		"javascript_tool": {"text": "1"}, "navigate": {"url": "about:blank"}, "read_page": {}, "computer": {"action": "screenshot"},
		"devtools": {"method": "Page.enable"}, "tab_close": {}, "tab_watch": {}, "dialog": {}, "form_input": {"ref": "ref_1", "value": "x"},
	} {
		args["tabId"] = foreign
		_, err := n.Command(t.Context(), target, tool, args)
		if said, ok := bridge.Refused(err); !ok || !strings.Contains(said, "is not in the tab group") {
			t.Errorf("%s: %v", tool, err)
		}
	}
	id := r.session("a")
	if tabs := do[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: id}).GetTabs(); len(tabs) != 1 {
		t.Errorf("the session sees %v", tabs)
	}
	c.eval(popup, `chrome.tabs.query({}).then(all => chrome.tabs.ungroup(all.filter(t => t.groupId !== -1).map(t => t.id))).then(() => true)`)
	eventually(t, "the page is gone", func() bool {
		return len(do[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: id}).GetTabs()) == 0
	})
}

// Two browsers are two targets: sessions spread over them, and one can be named.
func TestTwoBrowsers(t *testing.T) {
	at := newPlace(t)
	r := newRig(t, at, nil)
	for range 2 {
		startChrome(t, unpacked(t)).pair(at.url(), "websocket")
	}
	eventually(t, "both are connected", func() bool { return len(r.browsers()) == 2 })
	r.session("a")
	r.session("b")
	for _, b := range r.browsers() {
		if b.Leases != 1 {
			t.Errorf("%s has %d sessions", b.Target, b.Leases)
		}
	}
	d, err := r.srv.Describe(t.Context())
	if err != nil || len(d.GetBrowsers()) != 2 {
		t.Errorf("describe: %v %v", d.GetBrowsers(), err)
	}
}
