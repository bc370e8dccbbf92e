package extension

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// place is where the nodes of a test find each other and keep their pairings.
type place struct{ listen, state, seat string }

func newPlace(t testing.TB) place {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := l.Addr().String()
	l.Close()
	seat, err := os.MkdirTemp("", "seat") // short, because a socket's path is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(seat) })
	return place{listen, t.TempDir(), filepath.Join(seat, "d")}
}

func (p place) url() string { return "http://" + p.listen }

// rig is a provider under test.
type rig struct {
	t      testing.TB
	p      *Provider
	srv    *plugins.Server
	upload string
	run    string
	closed bool
}

func newRig(t testing.TB, at place, config map[string]any) *rig {
	t.Helper()
	p := newProvider()
	r := &rig{t: t, p: p, srv: p.srv, upload: t.TempDir(), run: t.TempDir()}
	p.config.stateDir, p.config.seatDir = at.state, at.seat
	all := map[string]any{"listen": at.listen}
	for k, v := range config {
		all[k] = v
	}
	body, err := structpb.NewStruct(all)
	if err != nil {
		t.Fatal(err)
	}
	res := do[*browserv1.ConfigureResponse](r, &browserv1.ConfigureRequest{Config: body, Host: &browserv1.HostSettings{RunDir: r.run, UploadDirs: []string{r.upload}}})
	if len(res.GetDiagnostics()) > 0 {
		t.Fatalf("configure: %v", res.GetDiagnostics())
	}
	t.Cleanup(r.close)
	return r
}

func (r *rig) close() {
	if r.closed {
		return
	}
	r.closed = true
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r.srv.Close(ctx)
}

func try[Resp proto.Message](r *rig, req proto.Message) (Resp, error) {
	r.t.Helper()
	var none Resp
	m, ok := catalog.ByRequest(req)
	if !ok {
		r.t.Fatalf("%T is no request", req)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	resp, err := r.srv.Call(ctx, m, req)
	if err != nil {
		return none, err
	}
	return resp.(Resp), nil
}

func do[Resp proto.Message](r *rig, req proto.Message) Resp {
	r.t.Helper()
	resp, err := try[Resp](r, req)
	if err != nil {
		r.t.Fatalf("%T: %v %v", req, err, fault.From(err).Details)
	}
	return resp
}

func require() *browserv1.Attach {
	a := browserv1.Attach_ATTACH_REQUIRE
	return &a
}

func (r *rig) session(name string) string {
	r.t.Helper()
	return do[*browserv1.EnsureSessionResponse](r, &browserv1.EnsureSessionRequest{ClientSessionId: name, Attach: require()}).GetSessionId()
}
