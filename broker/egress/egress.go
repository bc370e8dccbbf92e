// Package egress is the proxy through which the browser of a guarded session reaches the net. It sees every host that a
// page's loads lead to, whichever way they came about, resolves it, asks whether that may be reached, and dials the very
// addresses that it asked about, so that a name cannot come to mean another between the question and the dial.
package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/droverhq/drover/policy"
)

// Time limits of what the proxy does for a page.
const (
	dialWait   = 10 * time.Second
	headerWait = 30 * time.Second
)

// Judge says why a URL at these addresses may not be reached; nil when it may.
type Judge func(u policy.URL, addrs []netip.Addr) *policy.Denial

// Resolve gives the addresses of a host name.
type Resolve func(ctx context.Context, host string) ([]netip.Addr, error)

// Proxy serves one session on a port of its own on loopback.
type Proxy struct {
	judge   Judge
	resolve Resolve
	server  *http.Server
	addr    string
	work    sync.WaitGroup

	mu      sync.Mutex
	refused []Refusal
	tunnels map[net.Conn]struct{}
	closed  bool
}

// Refusal is one load that was refused.
type Refusal struct {
	Host   string
	When   time.Time
	Denial *policy.Denial
}

// keptRefusals is how many refusals are remembered.
const keptRefusals = 64

// Listen starts a proxy. Close ends it. Without a resolver the system's is asked.
func Listen(judge Judge, resolve Resolve) (*Proxy, error) {
	if resolve == nil {
		resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("egress proxy: %w", err)
	}
	p := &Proxy{judge: judge, resolve: resolve, addr: l.Addr().String(), tunnels: map[net.Conn]struct{}{}}
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: headerWait}
	p.work.Go(func() { _ = p.server.Serve(l) })
	return p, nil
}

// Addr is where it listens, as host:port.
func (p *Proxy) Addr() string { return p.addr }

// Close ends it and everything that goes through it.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	for c := range p.tunnels {
		_ = c.Close()
	}
	p.mu.Unlock()
	_ = p.server.Close()
	p.work.Wait()
}

// Since gives the last refusal of a host after a time; of any host when host is empty. It is nil when there was none.
func (p *Proxy) Since(when time.Time, host string) *policy.Denial {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.refused) - 1; i >= 0; i-- {
		r := p.refused[i]
		if !r.When.Before(when) && (host == "" || r.Host == host) {
			return r.Denial
		}
	}
	return nil
}

func (p *Proxy) note(host string, d *policy.Denial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = append(p.refused, Refusal{host, time.Now(), d})
	if len(p.refused) > keptRefusals {
		p.refused = p.refused[1:]
	}
}

// serve answers one request of the browser: a tunnel for TLS and WebSockets, or a plain HTTP request in absolute form.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	text := r.URL.String()
	if r.Method == http.MethodConnect {
		text = "https://" + r.Host
		if strings.HasSuffix(r.Host, ":80") {
			text = "http://" + r.Host
		}
	} else if r.URL.Scheme != "http" || r.URL.Host == "" {
		http.Error(w, "not a proxy request", http.StatusBadRequest)
		return
	}
	u, err := policy.ParseURL(text)
	if err != nil {
		http.Error(w, "not a URL", http.StatusBadRequest)
		return
	}
	addrs, denial, err := p.ask(r.Context(), u)
	switch {
	case denial != nil:
		p.note(u.Host, denial)
		w.Header().Set("Drover-Refused", policy.ReasonURL)
		http.Error(w, "refused by a guard", http.StatusForbidden)
		return
	case err != nil:
		http.Error(w, "the host cannot be resolved", http.StatusBadGateway)
		return
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return dialAny(ctx, addrs, u.Port) }
	if r.Method == http.MethodConnect {
		p.tunnel(w, r, dial)
		return
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.Header.Del("Proxy-Connection")
			pr.Out.Host = pr.In.Host
		},
		Transport: transport, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "the host cannot be reached", http.StatusBadGateway)
		},
	}
	proxy.ServeHTTP(w, r)
}

// ask resolves a host and asks about all its addresses.
func (p *Proxy) ask(ctx context.Context, u policy.URL) ([]netip.Addr, *policy.Denial, error) {
	if a, err := netip.ParseAddr(u.Host); err == nil {
		return []netip.Addr{a}, p.judge(u, []netip.Addr{a}), nil
	}
	if d := p.judge(u, nil); d != nil {
		return nil, d, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	addrs, err := p.resolveHost(ctx, u.Host)
	if err != nil {
		return nil, nil, err
	}
	return addrs, p.judge(u, addrs), nil
}

func (p *Proxy) resolveHost(ctx context.Context, host string) ([]netip.Addr, error) {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") { // RFC 6761: never asked of a resolver
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	addrs, err := p.resolve(ctx, host)
	if err == nil && len(addrs) == 0 {
		err = errors.New("no address")
	}
	return addrs, err
}

func dialAny(ctx context.Context, addrs []netip.Addr, port int) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	var d net.Dialer
	var failed error
	for _, a := range addrs {
		c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(a.Unmap().String(), strconv.Itoa(port)))
		if err == nil {
			return c, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// tunnel joins the browser's connection to one to the host.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request, dial func(context.Context, string, string) (net.Conn, error)) {
	out, err := dial(r.Context(), "", "")
	if err != nil {
		http.Error(w, "the host cannot be reached", http.StatusBadGateway)
		return
	}
	defer out.Close()
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer in.Close()
	if !p.enter(in, out) {
		return
	}
	defer p.leave(in, out)
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(out, buffered)
		half(out)
	})
	_, _ = io.Copy(in, out)
	half(in)
	_ = in.SetReadDeadline(time.Now().Add(headerWait))
	both.Wait()
}

// half closes the writing side.
func half(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
}

func (p *Proxy) enter(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	for _, c := range conns {
		p.tunnels[c] = struct{}{}
	}
	p.work.Add(1)
	return true
}

func (p *Proxy) leave(conns ...net.Conn) {
	p.mu.Lock()
	for _, c := range conns {
		delete(p.tunnels, c)
	}
	p.mu.Unlock()
	p.work.Done()
}
