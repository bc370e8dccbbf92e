package egress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/droverhq/drover/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The proxy dials the address that was judged, refuses the others by name and by address, and answers for tunnels too. A
// name is resolved once a request, so that it cannot mean another host when it is dialled.
func TestProxy(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", r.Method, r.Host, r.Header.Get("Proxy-Connection"))
	}))
	t.Cleanup(web.Close)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(web.URL, "http://"))
	var mu sync.Mutex
	asked := map[string]int{}
	p, err := Listen(func(_ policy.URL, addrs []netip.Addr) *policy.Denial {
		for _, a := range addrs {
			if a != netip.MustParseAddr("127.0.0.1") {
				return &policy.Denial{Reason: policy.ReasonURL, Message: a.String()}
			}
		}
		return nil
	}, func(_ context.Context, host string) ([]netip.Addr, error) {
		mu.Lock()
		defer mu.Unlock()
		asked[host]++
		switch {
		case host == "good.test":
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		case host == "rebinds.test" && asked[host] == 1:
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		case host == "rebinds.test", host == "bad.test":
			return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("169.254.169.254")}, nil
		}
		return nil, fmt.Errorf("no such host")
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	at := &url.URL{Scheme: "http", Host: p.Addr()}
	transport := &http.Transport{Proxy: http.ProxyURL(at)}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	began := time.Now()
	get := func(host string) (int, string) {
		resp, err := client.Get("http://" + host + ":" + port + "/x")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	for _, host := range []string{"good.test", "127.0.0.1", "rebinds.test"} {
		if code, body := get(host); code != 200 || body != "GET "+host+":"+port+" " {
			t.Errorf("%s: %d %q", host, code, body)
		}
	}
	if d := p.Since(began, ""); d != nil {
		t.Errorf("something was refused: %v", d)
	}
	for host, want := range map[string]int{"bad.test": 403, "rebinds.test": 403, "127.0.0.2": 403, "nowhere.test": 502} {
		if code, _ := get(host); code != want {
			t.Errorf("%s: %d", host, code)
		}
	}
	if p.Since(began, "bad.test") == nil || p.Since(began, "nowhere.test") != nil || p.Since(time.Now(), "") != nil {
		t.Error("the refusals are not as they were")
	}
	for host, want := range map[string]string{"good.test": "200", "bad.test": "403", "127.0.0.2": "403"} {
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", host, port, host, port)
		r := bufio.NewReader(c)
		line, _ := r.ReadString('\n')
		if !strings.Contains(line, want) {
			t.Errorf("a tunnel to %s: %s", host, line)
		}
		if want == "200" {
			_, _ = r.ReadString('\n')
			fmt.Fprintf(c, "GET /in HTTP/1.1\r\nHost: inner\r\nConnection: close\r\n\r\n")
			rest, _ := io.ReadAll(r)
			if !strings.Contains(string(rest), "GET inner") {
				t.Errorf("through the tunnel comes %q", rest)
			}
		}
		_ = c.Close()
	}
	resp, err := http.Get("http://" + p.Addr() + "/not-a-proxy-request")
	if err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a request to the proxy itself: %v, %v", resp, err)
	}
	_ = resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}
