package firefox

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/providers/firefox/endpoint"
	"github.com/droverhq/drover/providers/firefox/native"
	"github.com/droverhq/drover/providers/firefox/relay"
)

// tape plays the public bridge's add-on: what is asked must be what the tape has, in its order.
type tape struct {
	t     *testing.T
	name  string
	lines []string
	at    int
}

func readTape(t *testing.T, name string) *tape {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	p := &tape{t: t, name: name}
	for _, line := range strings.Split(string(data), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			p.lines = append(p.lines, line)
		}
	}
	return p
}

// answer gives what the tape answers to a request.
func (p *tape) answer(id any, action string, params any) map[string]any {
	if p.at+1 >= len(p.lines) {
		p.t.Errorf("%s: %s is asked after its end", p.name, action)
		return map[string]any{"id": id, "ok": false, "error": "the tape is over"}
	}
	word, text, _ := strings.Cut(strings.TrimPrefix(p.lines[p.at], "> "), " ")
	var want any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		p.t.Errorf("%s: %q is no request", p.name, p.lines[p.at])
	}
	if word != action || !reflect.DeepEqual(want, params) {
		p.t.Errorf("%s: asked %s %v, want %s", p.name, action, params, p.lines[p.at])
	}
	said := p.lines[p.at+1]
	p.at += 2
	if why, no := strings.CutPrefix(said, "! "); no {
		return map[string]any{"id": id, "ok": false, "error": why}
	}
	return map[string]any{"id": id, "ok": true, "result": json.RawMessage(strings.TrimPrefix(said, "< "))}
}

func (p *tape) end() {
	if p.at != len(p.lines) {
		p.t.Errorf("%s: %d lines were not played, from %s", p.name, len(p.lines)-p.at, p.lines[p.at])
	}
}

type publicFrame struct {
	ID     any    `json:"id"`
	Action string `json:"action"`
	Params any    `json:"params"`
}

// play plays a tape behind our own native host, and gives a provider that met it.
func play(t *testing.T, name, hello string) (*rig, *tape) {
	t.Helper()
	dir, err := os.MkdirTemp("", "drover-tape-")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", dir)
	l, err := endpoint.Listen(t.Context(), endpoint.Folder())
	if err != nil {
		t.Fatal(err)
	}
	fromAddon, toRelay := io.Pipe()
	fromRelay, toAddon := io.Pipe()
	p := readTape(t, name)
	done, played := make(chan error, 1), make(chan struct{})
	go func() {
		done <- relay.Run(context.Background(), relay.Options{In: fromAddon, Out: toAddon, Listener: l, Public: true})
		toAddon.Close()
	}()
	say := func(v any) {
		data, err := json.Marshal(v)
		if err == nil {
			err = native.Write(toRelay, data, native.MaxMessage)
		}
		if err != nil {
			t.Error(err)
		}
	}
	go func() {
		defer close(played)
		say(json.RawMessage(hello))
		for {
			data, err := native.Read(fromRelay, native.MaxMessage)
			if err != nil {
				return
			}
			var f publicFrame
			if err := json.Unmarshal(data, &f); err != nil {
				t.Error(err)
			}
			say(p.answer(f.ID, f.Action, f.Params))
		}
	}()
	t.Cleanup(func() {
		toRelay.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		<-played
		os.RemoveAll(dir)
	})
	return newRig(t), p
}

// The public bridge's talk, as it was recorded, is what a session says and hears: the top frame and the session's tab in every request,
// one click a click, the address asked after each step, the tab in front made sure of around a picture.
func TestPublicRecorded(t *testing.T) {
	r, p := play(t, "public-0.2.tape", `{"type":"hello","version":"0.2.0"}`)
	u := r.session("public")
	if u.info.GetBrowserLabel() != labelPublic || len(u.info.GetWarnings()) == 0 {
		t.Errorf("ensure said %v", u.info)
	}
	publicMainJob(t, u)
	p.end()
	fails(r, &browserv1.HoverRequest{SessionId: u.id, Target: bySelector("a")}, fault.UnsupportedMethod, "bridge_limited")
	fails(r, &browserv1.TypeRequest{SessionId: u.id, Target: bySelector("#name"), Text: "x", Submit: true}, fault.UnsupportedMethod, "bridge_limited")
	done := ask[*browserv1.CloseSessionResponse](r, &browserv1.CloseSessionRequest{SessionId: u.id})
	if done.GetDisposition() != browserv1.Disposition_DISPOSITION_DETACHED || len(done.GetWarnings()) != 1 {
		t.Errorf("close said %v", done)
	}
	d, err := r.srv.Describe(t.Context())
	if err != nil || len(d.GetBrowsers()) != 1 || d.GetBrowsers()[0].GetLabel() != labelPublic || len(d.GetBrowsers()[0].GetWithoutMethods()) < 20 {
		t.Errorf("described as %v (%v)", d.GetBrowsers(), err)
	}
}

func publicMainJob(t *testing.T, u *user) {
	t.Helper()
	if o := u.open("http://site.test/"); o.GetTitle() != "Form" || o.GetUrl() != "http://site.test/" {
		t.Errorf("open said %v", o)
	}
	ask[*browserv1.TypeResponse](u.rig, &browserv1.TypeRequest{SessionId: u.id, Target: byRef(u.ref("textbox", "Name")), Text: "Ada", Replace: true})
	ask[*browserv1.TypeResponse](u.rig, &browserv1.TypeRequest{SessionId: u.id, Target: bySelector("#name"), Text: " Byron"})
	if c := u.clickOn("button", "Save"); !c.GetClicked() || c.GetNavigationOccurred() {
		t.Errorf("click said %v", c)
	}
	s := ask[*browserv1.SnapshotResponse](u.rig, &browserv1.SnapshotRequest{SessionId: u.id})
	if s.GetTitle() != "clicked Ada Byron" || !strings.Contains(s.GetText(), "hello") || len(s.GetElements()) != 3 {
		t.Errorf("read %v", s)
	}
	w := ask[*browserv1.WaitResponse](u.rig, &browserv1.WaitRequest{
		SessionId: u.id, TextPresent: ptr("hello"), SelectorPresent: ptr("#out"), UrlMatches: ptr("http://**"),
	})
	if w.GetMatchedCondition() != "text_present,selector_present,url_matches" {
		t.Errorf("wait said %v", w)
	}
	if pic := ask[*browserv1.ScreenshotResponse](u.rig, &browserv1.ScreenshotRequest{SessionId: u.id}); pic.GetWidth() != 1 {
		t.Errorf("the picture is %v", pic)
	}
	if o := u.open("http://site.test/#x"); o.GetNavigationState() != browserv1.NavigationState_NAVIGATION_STATE_SAME_DOCUMENT {
		t.Errorf("open of a place in the page said %v", o)
	}
	if c := u.clickOn("link", "Next"); !c.GetNavigationOccurred() || c.GetUrl() != "http://site.test/next" {
		t.Errorf("the click on the link said %v", c)
	}
}

// What goes wrong in the public bridge has a word of ours: no success for nothing clicked, nothing clicked that is not what was meant,
// and no picture of the person's other tabs.
func TestPublicTraps(t *testing.T) {
	r, p := play(t, "public-0.10.tape", `{"type":"hello","version":"0.3.0","browser":"firefox"}`)
	u := r.session("public")
	fails(r, &browserv1.ClickRequest{SessionId: u.id, Target: bySelector("a")}, fault.NotReady, "no_page")
	u.open("http://site.test/")
	click := func(target *browserv1.Target, code fault.Code, reason string) {
		t.Helper()
		fails(r, &browserv1.ClickRequest{SessionId: u.id, Target: target}, code, reason)
	}
	click(bySelector("#nope"), fault.ElementNotFound, "")
	click(bySelector("[["), fault.InvalidSelector, "")
	click(&browserv1.Target{TextQuery: ptr("never")}, fault.ElementNotActionable, "disabled")
	click(&browserv1.Target{TextQuery: ptr("secret words")}, fault.ElementNotFound, "")
	click(&browserv1.Target{TextQuery: ptr("Go")}, fault.InvalidRequest, "ambiguous_target")
	click(byRef(u.ref("link", "Once")), fault.ElementNotFound, "stale_ref")
	fails(r, &browserv1.ScreenshotRequest{SessionId: u.id}, fault.NotReady, "background_tab")
	fails(r, &browserv1.ScreenshotRequest{SessionId: u.id}, fault.NotReady, "background_tab")
	p.end()
}

// Over the bridge's own WebSocket it is the same talk; what comes for others of its clients, late or as an event, is not taken for
// an answer, and its end is told.
func TestPublicWebSocket(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	p := readTape(t, "public-0.2.tape")
	stop, ended := make(chan struct{}), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.CloseNow()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() { <-stop; cancel() }()
		_ = wsjson.Write(ctx, ws, map[string]any{"type": "ready", "host": "127.0.0.1", "port": 1})
		for {
			var f publicFrame
			if wsjson.Read(ctx, ws, &f) != nil {
				return
			}
			if p.at > len(p.lines) {
				return
			}
			for _, noise := range []string{
				`{"type":"event","payload":{"id":"t1","ok":false,"error":"Timeout waiting for: #nope"}}`,
				`{"id":"t1","ok":true,"result":{"text":"another's"}}`, `{"id":1,"ok":true,"result":{}}`, `{"ok":false,"error":"Invalid JSON"}`, `null`,
			} {
				_ = ws.Write(ctx, websocket.MessageText, []byte(noise))
			}
			_ = wsjson.Write(ctx, ws, p.answer(f.ID, f.Action, f.Params))
		}
	}))
	hangUp := sync.OnceFunc(func() { close(stop) })
	t.Cleanup(func() { hangUp(); srv.Close() })
	r := newRig(t)
	r.p.mu.Lock()
	r.p.config.BridgeURL = "ws" + strings.TrimPrefix(srv.URL, "http")
	r.p.mu.Unlock()
	u := r.session("public")
	publicMainJob(t, u)
	p.end()
	hangUp()
	<-ended
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := eventually(ctx, func() (bool, error) {
		_, err := try[*browserv1.SnapshotResponse](r, &browserv1.SnapshotRequest{SessionId: u.id})
		return fault.ReasonOf(err) == "session_lost", nil
	}); err != nil {
		t.Error(err)
	}
}
