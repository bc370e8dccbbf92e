//go:build linux

package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Guards that a guard has no way around it: a page tries everything by which a browser sends something, to loopback, to
// private networks, to a cloud's metadata and to names, and no connection and no datagram comes of it, nor a question to
// a resolver. The same page without the guard shows that the ways are ways. No packet leaves the test's own network.
func TestNoWayAroundAGuard(t *testing.T) {
	if !inOwnNet(t) {
		return
	}
	w := openTunnel(t)
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) { noWayAround(t, w, e.provider(), e.browser) })
	}
	for _, e := range engines {
		t.Run(e.name+"-free", func(t *testing.T) { waysAreWays(t, w, e.provider(), e.browser) })
	}
}

const innerGuard = `
guard "inner" {
  when = client.name == "kept"
  deny = ["10.0.0.0/8", "169.254.0.0/16", "192.168.0.0/16", "127.0.0.9", "203.0.113.0/24"]
}`

func noWayAround(t *testing.T, w *tunnel, provider *plugins.Server, browser string) {
	w.forget()
	stand := newStandIn(t)
	site := serveWays(t, stand)
	b := brokerUnder(t, provider, innerGuard)
	kept := newGuarded(t, b, "kept", browser)
	kept.refusesMetadata()
	for _, to := range []string{"http://10.1.2.3/", "https://192.168.7.7/", "http://127.0.0.9:" + stand.port + "/"} {
		if _, err := kept.send(&browserv1.OpenRequest{Url: to}); fault.ReasonOf(err) != policy.ReasonURL {
			t.Errorf("%s: %v", to, err)
		}
		if _, err := kept.send(&browserv1.OpenRequest{Url: site + "/redirect?to=" + to}); fault.ReasonOf(err) != policy.ReasonURL {
			t.Errorf("a redirect to %s: %v", to, err)
		}
	}
	kept.must(&browserv1.OpenRequest{Url: site + "/ways", WaitUntil: browserv1.WaitUntil_WAIT_UNTIL_DOMCONTENTLOADED.Enum()})
	kept.waitFor("all tried")
	if seen := w.all(); len(seen) > 0 {
		t.Errorf("%s", strings.Join(seen, "\n"))
	}
	if tcp, udp := stand.tcp.Load(), stand.udp.Load(); tcp+udp > 0 {
		t.Errorf("the forbidden stand-in got %d connections and %d datagrams", tcp, udp)
	}
}

// waysAreWays has the same page tried without a guard: what the test above looks for can be seen.
func waysAreWays(t *testing.T, w *tunnel, provider *plugins.Server, browser string) {
	w.forget()
	stand := newStandIn(t)
	site := serveWays(t, stand)
	free := newGuarded(t, brokerUnder(t, provider, innerGuard), "free", browser)
	free.refusesMetadata()
	if w.has("tcp 169.254.169.254:") {
		t.Error("a page was opened that is refused")
	}
	free.must(&browserv1.OpenRequest{Url: site + "/ways", WaitUntil: browserv1.WaitUntil_WAIT_UNTIL_DOMCONTENTLOADED.Enum()})
	free.waitFor("all tried")
	for _, want := range []string{"tcp 10.1.2.3:", "tcp 192.168.7.7:", "udp 10.1.2.3:3478", "udp 203.0.113.53:53"} {
		if !w.has(want) {
			t.Errorf("without a guard nothing goes to %s; there is\n%s", want, strings.Join(w.all(), "\n"))
		}
	}
	if tcp, udp := stand.tcp.Load(), stand.udp.Load(); tcp == 0 || udp == 0 {
		t.Errorf("without a guard the stand-in got %d connections and %d datagrams", tcp, udp)
	}
}

// refusesMetadata says that what is asked for by its address is refused in any case.
func (g *guarded) refusesMetadata() {
	g.t.Helper()
	if _, err := g.send(&browserv1.OpenRequest{Url: "http://169.254.169.254/latest/meta-data/"}); fault.ReasonOf(err) != policy.ReasonURL {
		g.t.Errorf("the metadata: %v", err)
	}
}

// standIn is a forbidden host on loopback that counts what comes.
type standIn struct {
	port     string
	tcp, udp atomic.Int64
}

func newStandIn(t *testing.T) *standIn {
	t.Helper()
	s := &standIn{}
	l, err := net.Listen("tcp", "127.0.0.9:0")
	if err != nil {
		t.Fatal(err)
	}
	_, s.port, _ = net.SplitHostPort(l.Addr().String())
	u, err := net.ListenPacket("udp", "127.0.0.9:"+s.port)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{}, 2)
	go func() {
		defer func() { done <- struct{}{} }()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.tcp.Add(1)
			_ = c.Close()
		}
	}()
	go func() {
		defer func() { done <- struct{}{} }()
		for b := make([]byte, 2048); ; s.udp.Add(1) {
			if _, _, err := u.ReadFrom(b); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_, _ = l.Close(), u.Close()
		<-done
		<-done
	})
	return s
}

// serveWays serves the page that tries all ways, at localhost, which is a secure context, so that it may have workers.
func serveWays(t *testing.T, stand *standIn) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})
	script := func(path, text string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprintf(w, "const hosts = ['10.1.2.3', '169.254.169.254', '192.168.7.7', '127.0.0.9:%s', 'leak.example'];\n%s", stand.port, text)
		})
	}
	script("/fetch.js", `
		const all = Promise.all(hosts.map((h) => Promise.race([fetch('http://' + h + '/worker', {mode: 'no-cors'}), new Promise((r) => setTimeout(r, 2000))]).catch(() => {})));
		self.addEventListener('install', (e) => e.waitUntil(all));
		all.then(() => self.postMessage && self.postMessage('done'), () => {});`)
	script("/ways.js", waysScript)
	mux.HandleFunc("/reported", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy-Report-Only", "img-src 'none'; report-uri http://10.1.2.3/report http://127.0.0.9:"+stand.port+"/report")
		fmt.Fprint(w, "<!doctype html><img src=/x.png>")
	})
	mux.HandleFunc("/ways", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>ways</title><p id=out>trying</p><iframe src=/reported></iframe><iframe name=aside></iframe><script src=/ways.js></script>")
	})
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(serveOn(t, "127.0.0.1", mux), "http://"))
	return "http://localhost:" + port
}

// waysScript tries, for every host, what a page can make a browser send; each try ends by itself or after a while.
const waysScript = `
const tries = [];
const tried = (f) => {
	try { tries.push(Promise.race([f(), new Promise((r) => setTimeout(r, 3000))]).catch(() => {})); } catch {}
};
const element = (name, attrs) => () => new Promise((r) => {
	const e = document.createElement(name);
	e.onload = e.onerror = r;
	for (const k in attrs) e.setAttribute(k, attrs[k]);
	document.body.append(e);
});
for (const h of hosts) {
	const o = 'http://' + h, bare = h.split(':')[0], port = h.split(':')[1] || 3478;
	tried(() => fetch(o + '/fetch', {mode: 'no-cors'}));
	tried(() => fetch(o + '/keepalive', {method: 'POST', mode: 'no-cors', keepalive: true, body: 'x'}));
	tried(async () => navigator.sendBeacon(o + '/beacon', 'x'));
	for (const as of ['dns-prefetch', 'preconnect', 'prefetch', 'stylesheet', 'icon', 'manifest', 'modulepreload', 'prerender'])
		tried(element('link', {rel: as, href: o + '/' + as}));
	tried(element('link', {rel: 'preload', as: 'image', href: o + '/preload'}));
	for (const name of ['img', 'script', 'iframe', 'embed', 'video', 'audio'])
		tried(element(name, {src: o + '/' + name}));
	tried(element('object', {data: o + '/object'}));
	tried(async () => new FontFace('f', 'url(' + o + '/font)').load());
	tried(() => new Promise((r) => { const w = new WebSocket('ws://' + h + '/ws'); w.onclose = w.onerror = r; }));
	tried(() => new Promise((r) => { const w = new WebSocket('wss://' + h + '/wss'); w.onclose = w.onerror = r; }));
	tried(() => new Promise((r) => { const w = new EventSource(o + '/events'); w.onerror = r; }));
	tried(async () => { const a = document.createElement('a'); a.href = '#'; a.ping = o + '/ping'; document.body.append(a); a.click(); });
	tried(async () => { const a = document.createElement('a'); a.href = o + '/download'; a.download = 'x'; a.target = 'aside'; document.body.append(a); a.click(); });
	tried(element('iframe', {srcdoc: '<form method=post action="' + o + '/form"></form><script>document.forms[0].submit()<\/script>'}));
	tried(async () => {
		const s = document.createElement('script');
		s.type = 'speculationrules';
		s.textContent = JSON.stringify({prefetch: [{source: 'list', urls: [o + '/speculate']}]});
		document.body.append(s);
	});
	if (self.WebTransport) tried(() => new WebTransport('https://' + bare + ':' + port + '/wt').ready);
	if (self.RTCPeerConnection) tried(async () => {
		const at = bare + ':' + port;
		const a = new RTCPeerConnection({iceServers: [
			{urls: ['stun:' + at]}, {urls: ['turn:' + at + '?transport=udp', 'turn:' + at + '?transport=tcp', 'turns:' + at], username: 'u', credential: 'p'},
		]});
		const b = new RTCPeerConnection();
		a.createDataChannel('x');
		await a.setLocalDescription(await a.createOffer());
		await b.setRemoteDescription(a.localDescription);
		await b.setLocalDescription(await b.createAnswer());
		await a.setRemoteDescription(b.localDescription);
		for (const p of ['udp', 'tcp'])
			await a.addIceCandidate({candidate: 'candidate:1 1 ' + p + ' 2122260223 ' + bare + ' ' + port + ' typ host' + (p == 'tcp' ? ' tcptype passive' : ''), sdpMid: '0'});
		await new Promise((r) => setTimeout(r, 2500));
		a.close(), b.close();
	});
}
const worker = (make) => tried(() => new Promise((r) => { const w = make(); w.onmessage = w.onerror = r; }));
worker(() => new Worker('/fetch.js'));
worker(() => new SharedWorker('/fetch.js'));
tried(() => navigator.serviceWorker.register('/fetch.js').then(() => navigator.serviceWorker.ready));
Promise.all(tries).then(() => { out.textContent = 'all tried ' + tries.length; });
`
