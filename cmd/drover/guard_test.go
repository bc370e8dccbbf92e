package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/plugins/plugintest"
	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/providers/bidi"
	"github.com/droverhq/drover/providers/cdp"
)

// forbiddenWords are what the forbidden server says; no caller under the guard may ever see them.
const forbiddenWords = "the crown jewels"

// engines are the browsers that a guard must hold on, each with the provider that drives it.
var engines = []struct {
	name, browser string
	provider      func() *plugins.Server
}{
	{"cdp-chromium", "chromium", cdp.New},
	{"bidi-firefox", "firefox", bidi.New},
	{"bidi-chromium", "chromium", bidi.New},
}

// Guards the guard on real browsers: whichever way a page goes, a session never reaches a host that it may not, by name or
// by what a name resolves to, loopback included; the same browser binary reaches it for a session that no guard holds.
func TestGuardHolds(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) { guardHolds(t, e.provider(), e.browser) })
	}
}

func guardHolds(t *testing.T, provider *plugins.Server, browser string) {
	var hits atomic.Int64
	forbidden := serveOn(t, "127.0.0.9", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		w.Header().Set("Access-Control-Allow-Origin", "*")
		fmt.Fprintf(w, "<title>x</title><p>%s</p>", forbiddenWords)
	}))
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(forbidden, "http://"))
	sneaky := "http://sneaky.test:" + port
	mux := http.NewServeMux()
	page := func(path, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, "<!doctype html><title>ok</title><p>start</p>%s", body)
		})
	}
	for name, to := range map[string]string{"addr": forbidden, "name": sneaky} {
		mux.HandleFunc("/redirect-"+name, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to+"/", http.StatusFound) })
		page("/meta-"+name, `<meta http-equiv="refresh" content="0; url=`+to+`/">`)
		page("/script-"+name, `<script>location.href = "`+to+`/"</script>`)
		page("/frame-"+name, `<iframe src="`+to+`/" width=600 height=300></iframe>`)
		page("/open-"+name, `<button onclick="window.open('`+to+`/')">open it</button>`)
		page("/fetch-"+name, `<p id=out></p><script>
			const tell = (s) => { out.textContent += s + ";" };
			fetch("`+to+`/").then((r) => r.text().then((s) => tell("got " + r.status + s)), () => tell("fetch failed")).then(() => {
				const i = new Image(); i.onload = () => tell("image shown all done"); i.onerror = () => tell("image failed all done"); i.src = "`+to+`/x.png";
			});
			try { new WebSocket("`+strings.Replace(to, "http", "ws", 1)+`/ws") } catch {}
			</script>`)
	}
	page("/links", `<a href="file:///etc/passwd">a file</a> <a href="view-source:`+forbidden+`/">a source</a>
		<a href="chrome://version/">a chrome page</a> <button onclick="window.open('file:///etc/passwd')">a window</button>`)
	page("/plain", "")
	_, okPort, _ := net.SplitHostPort(strings.TrimPrefix(serveOn(t, "127.0.0.1", mux), "http://"))
	ok := "http://ok.test:" + okPort

	b := brokerUnder(t, provider, `
guard "inside" {
  when    = client.name == "kept" && session.metadata.free == ""
  schemes = ["http", "https"]
  deny    = ["127.0.0.9/32", "10.0.0.0/8"]
  reason  = "the jewels stay"
}`)
	kept := newGuarded(t, b, "kept", browser)

	for _, path := range []string{forbidden + "/", sneaky + "/", ok + "/redirect-addr", ok + "/redirect-name"} {
		_, err := kept.send(&browserv1.OpenRequest{Url: path})
		e := fault.From(err)
		if e == nil || e.Code != fault.PermissionDenied || e.ReasonWord() != policy.ReasonURL || e.Details["rule"] != "inside" || e.Details["where"] != "guard.hcl:2" {
			t.Errorf("%s: %v", path, err)
		}
		kept.clean("after " + path)
	}
	for _, name := range []string{"addr", "name"} {
		for _, way := range []string{"meta", "script", "frame"} {
			_, err := kept.send(&browserv1.OpenRequest{Url: ok + "/" + way + "-" + name})
			if err != nil && fault.ReasonOf(err) != policy.ReasonURL {
				t.Errorf("%s-%s: %v", way, name, err)
			}
			kept.waitFor("refused by a guard")
			kept.clean(way + "-" + name)
		}
		kept.must(&browserv1.OpenRequest{Url: ok + "/fetch-" + name})
		kept.waitFor("all done")
		if text := kept.clean("fetch-" + name); !strings.Contains(text, "fetch failed;image failed") {
			t.Errorf("fetch-%s: %s", name, text)
		}
		kept.must(&browserv1.OpenRequest{Url: ok + "/open-" + name})
		opened := kept.click("open it").GetNewPageIds()
		if len(opened) != 1 {
			t.Fatalf("open-%s opens %v", name, opened)
		}
		kept.waitFor("refused by a guard", opened[0])
		kept.clean("open-"+name, opened[0])
		tabs := kept.must(&browserv1.ListTabsRequest{}).(*browserv1.ListTabsResponse).GetTabs()
		for _, tab := range tabs[1:] {
			kept.must(&browserv1.CloseTabRequest{PageId: proto.String(tab.GetPageId())})
		}
	}
	for _, link := range []string{"a file", "a source", "a chrome page", "a window"} {
		kept.must(&browserv1.OpenRequest{Url: ok + "/links"})
		kept.click(link)
		for _, tab := range kept.must(&browserv1.ListTabsRequest{}).(*browserv1.ListTabsResponse).GetTabs() {
			if u := tab.GetUrl(); u != ok+"/links" && u != "about:blank" && u != "" && !strings.HasPrefix(u, "about:blank#") {
				t.Errorf("%s leads to %s", link, u)
			}
			text := kept.text(tab.GetPageId())
			if strings.Contains(text, "root:") || strings.Contains(text, forbiddenWords) {
				t.Errorf("%s shows %q", link, text)
			}
		}
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("the forbidden server was reached %d times", n)
	}

	free := newGuarded(t, b, "free", browser)
	free.must(&browserv1.OpenRequest{Url: forbidden + "/"})
	if text := free.text(""); !strings.Contains(text, forbiddenWords) || hits.Load() == 0 {
		t.Errorf("without a guard the page says %q", text)
	}

	keptProfile(t, b, browser, forbidden)
	who := b.Connect(broker.Principal{ID: "token:kept", Name: "kept"}, broker.Unbound)
	for field, ask := range map[string]*browserv1.EnsureSessionRequest{
		"isolation": {Isolation: browserv1.Isolation_ISOLATION_SHARED.Enum()}, "attach": {Attach: browserv1.Attach_ATTACH_REQUIRE.Enum()},
	} {
		ask.ClientSessionId, ask.BrowserPreference = "outside", &browser
		m, _ := catalog.ByRequest(ask)
		_, err := who.Call(t.Context(), m, ask)
		e := fault.From(err)
		if e == nil || e.Code == fault.PermissionDenied && (e.Details["where"] != "guard.hcl:2" || e.Details["field"] != field) || e.Code != fault.PermissionDenied && field == "isolation" {
			t.Errorf("%s: %v", field, err)
		}
	}

	// A reload that puts a guard over the session refuses it until it is made again.
	b.SetPolicy(policy.New(load(t, "guard \"all\" {\n deny = [\"127.0.0.9\"]\n}")))
	if _, err := free.send(&browserv1.SnapshotRequest{}); fault.ReasonOf(err) != policy.ReasonPolicy {
		t.Errorf("after the reload: %v", err)
	}
}

// keptProfile has a session with a kept profile be made under the guard, and then without: the profile keeps nothing of it.
func keptProfile(t *testing.T, b *broker.Broker, browser, forbidden string) {
	persist := func(r *browserv1.EnsureSessionRequest) { r.Persist = proto.Bool(true) }
	p := newGuarded(t, b, "kept", browser, persist)
	if _, err := p.send(&browserv1.OpenRequest{Url: forbidden + "/"}); fault.ReasonOf(err) != policy.ReasonURL {
		t.Errorf("a kept profile under the guard: %v", err)
	}
	p.clean("a kept profile")
	p.must(&browserv1.CloseSessionRequest{})
	p = newGuarded(t, b, "kept", browser, persist, func(r *browserv1.EnsureSessionRequest) {
		r.Metadata, _ = structpb.NewStruct(map[string]any{"free": "yes"})
	})
	p.must(&browserv1.OpenRequest{Url: forbidden + "/"})
	if text := p.text(""); !strings.Contains(text, forbiddenWords) {
		t.Errorf("the profile without the guard says %q", text)
	}
	p.must(&browserv1.CloseSessionRequest{})
}

func load(t *testing.T, src string) *policy.Config {
	t.Helper()
	c, err := policy.Load("guard.hcl", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func serveOn(t *testing.T, addr string, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", addr+":0")
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// brokerUnder is a broker with a real provider under a config; names of .test are resolved by the test.
func brokerUnder(t *testing.T, provider *plugins.Server, src string) *broker.Broker {
	t.Helper()
	run, err := os.MkdirTemp("", "drv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(run) })
	i := plugintest.ConnectSpec(t, provider, host.Spec{ID: provider.Info().ID, Settings: &browserv1.HostSettings{RunDir: run, StateDir: t.TempDir()}})
	b := broker.New(broker.Options{
		Policy: policy.New(load(t, src)), Sources: []broker.Source{here{i}},
		Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
			switch name {
			case "ok.test":
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			case "sneaky.test":
				return []netip.Addr{netip.MustParseAddr("127.0.0.9")}, nil
			}
			return nil, errors.New("no such host")
		},
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		b.Close(ctx)
	})
	return b
}

// guarded is a caller with a session.
type guarded struct {
	t       *testing.T
	caller  *broker.Caller
	session string
}

func newGuarded(t *testing.T, b *broker.Broker, name, browser string, set ...func(*browserv1.EnsureSessionRequest)) *guarded {
	t.Helper()
	g := &guarded{t: t, caller: b.Connect(broker.Principal{ID: "token:" + name, Name: name}, broker.Unbound)}
	req := &browserv1.EnsureSessionRequest{ClientSessionId: "s", BrowserPreference: &browser}
	if len(set) > 0 {
		req.ClientSessionId = "profile"
	}
	for _, f := range set {
		f(req)
	}
	g.session = g.must(req).(*browserv1.EnsureSessionResponse).GetSessionId()
	return g
}

func (g *guarded) send(req proto.Message) (proto.Message, error) {
	m, ok := catalog.ByRequest(req)
	if !ok {
		g.t.Fatalf("no method takes %T", req)
	}
	if g.session != "" {
		catalog.SetSessionID(req, g.session)
	}
	return g.caller.Call(g.t.Context(), m, req)
}

func (g *guarded) must(req proto.Message) proto.Message {
	g.t.Helper()
	resp, err := g.send(req)
	if err != nil {
		g.t.Fatalf("%T: %v", req, err)
	}
	return resp
}

func (g *guarded) click(words string) *browserv1.ClickResponse {
	g.t.Helper()
	r, _ := g.must(&browserv1.ClickRequest{Target: &browserv1.Target{TextQuery: &words}}).(*browserv1.ClickResponse)
	return r
}

func (g *guarded) waitFor(words string, page ...string) {
	g.t.Helper()
	req := &browserv1.WaitRequest{TextPresent: &words}
	if len(page) > 0 {
		req.PageId = &page[0]
	}
	r := g.must(req).(*browserv1.WaitResponse)
	if !r.GetSatisfied() {
		g.t.Errorf("%q does not appear; the page says %q", words, g.text(req.GetPageId()))
	}
}

func (g *guarded) text(page string) string {
	g.t.Helper()
	r := &browserv1.SnapshotRequest{}
	if page != "" {
		r.PageId = &page
	}
	resp, err := g.send(r)
	if err != nil {
		return err.Error()
	}
	s := resp.(*browserv1.SnapshotResponse)
	return s.GetText() + s.GetOutline()
}

// clean says what the page says, which must not be forbidden.
func (g *guarded) clean(when string, page ...string) string {
	g.t.Helper()
	text := g.text(strings.Join(page, ""))
	if strings.Contains(text, forbiddenWords) {
		g.t.Errorf("%s: the page says %q", when, text)
	}
	return text
}
