package cdp

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/forbidden"
)

// Guards the credentials of the machine from a server that redirects to where clouds serve them, and from a page that loads
// them: nothing is sent there. Addresses of loopback stand for those of a cloud.
func TestRedirectToMetadata(t *testing.T) {
	addrs, hosts := forbidden.Addrs, forbidden.Hosts
	t.Cleanup(func() { forbidden.Addrs, forbidden.Hosts = addrs, hosts })
	forbidden.Addrs = append([]netip.Addr{netip.MustParseAddr("127.0.0.9"), netip.MustParseAddr("::1")}, addrs...)
	forbidden.Hosts = append([]string{"metadata.localhost"}, hosts...)

	var stolen atomic.Int64
	l, err := net.Listen("tcp", "[::]:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		to := q.URL.Query().Get("to")
		switch q.URL.Path {
		case "/away":
			http.Redirect(w, q, to, http.StatusFound)
		case "/within":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(`<!doctype html><title>Within</title><img src="` + to + `"><iframe src="` + to + `"></iframe>`))
		case "/credentials":
			stolen.Add(1)
		}
	})}}
	s.Start()
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, nil)
	u := r.session("astray")
	here := "http://127.0.0.1:" + port
	for _, host := range []string{"127.0.0.9", "127.9", "0x7f000009", "[::ffff:127.0.0.9]", "[::1]", "metadata.localhost", "METADATA.localhost."} {
		to := "http://" + host + ":" + port + "/credentials"
		fails(r, &browserv1.OpenRequest{SessionId: u.id, Url: here + "/away?to=" + to}, fault.PermissionDenied, "url_refused")
		u.open(here + "/within?to=" + to)
		if n := stolen.Swap(0); n != 0 {
			t.Errorf("%s was asked %d times", host, n)
		}
	}
	if u.open(here + "/away?to=" + here + "/credentials"); stolen.Load() == 0 {
		t.Error("another redirect was not followed")
	}
}
