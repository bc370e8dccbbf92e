package firefox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/providers/firefox/endpoint"
	"github.com/droverhq/drover/providers/firefox/firefoxtest"
)

// TestMain builds the native host, and ends what the tests shared.
func TestMain(m *testing.M) {
	code, err := run(m)
	if err == nil {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// bench is what all tests share: a runtime folder, the host's binary and the add-on unpacked.
var bench struct {
	dir, runtime, host, addon string
	once                      sync.Once
	person                    *firefoxtest.Firefox
	err                       error
}

func run(m *testing.M) (code int, err error) {
	if bench.dir, err = os.MkdirTemp("", "drover-fxt-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(bench.dir)) }()
	bench.runtime, bench.addon = filepath.Join(bench.dir, "r"), filepath.Join(bench.dir, "addon")
	if err := os.Setenv("XDG_RUNTIME_DIR", bench.runtime); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if bench.host, err = firefoxtest.Build(ctx, "github.com/droverhq/drover/cmd/drover-firefox-host", bench.dir); err != nil {
		return 1, err
	}
	if err := unpack(bench.addon); err != nil {
		return 1, err
	}
	code = m.Run()
	if bench.person != nil {
		bench.person.Close()
	}
	return code, nil
}

// options are those of a Firefox with our add-on.
func options(runtime string) firefoxtest.Options {
	return firefoxtest.Options{
		Runtime: runtime, Host: bench.host, Addon: bench.addon, Apps: map[string][]string{appName: {addonID}},
	}
}

// person gives the Firefox that tests share, one after another.
func person(t testing.TB) *firefoxtest.Firefox {
	t.Helper()
	bench.once.Do(func() {
		bench.person, bench.err = firefoxtest.Start(context.Background(), options(bench.runtime))
		if bench.err == nil {
			bench.err = awaitSockets(1)
		}
	})
	if bench.err != nil {
		t.Fatal(bench.err)
	}
	return bench.person
}

// awaitSockets waits until so many hosts listen.
func awaitSockets(n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return eventually(ctx, func() (bool, error) {
		list, err := endpoint.Sockets(endpoint.Folder())
		return len(list) == n, err
	})
}

// eventually asks again until it holds, or the time is over.
func eventually(ctx context.Context, holds func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := holds()
		if ok && err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(errors.New("it did not come to hold in time"), err)
		}
	}
}

// rig is a provider under test.
type rig struct {
	t           testing.TB
	srv         *plugins.Server
	p           *Provider
	run, upload string
}

func newRig(t testing.TB) *rig {
	t.Helper()
	p := newProvider()
	r := &rig{t: t, srv: p.srv, p: p, run: t.TempDir(), upload: t.TempDir()}
	ask[*browserv1.ConfigureResponse](r, &browserv1.ConfigureRequest{Host: &browserv1.HostSettings{RunDir: r.run, UploadDirs: []string{r.upload}}})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		r.srv.Close(ctx)
		if entries, err := os.ReadDir(r.run); err != nil || len(entries) > 0 {
			t.Errorf("the run folder holds %v (%v)", entries, err)
		}
	})
	return r
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

func ask[Resp proto.Message](r *rig, req proto.Message) Resp {
	r.t.Helper()
	resp, err := try[Resp](r, req)
	if err != nil {
		r.t.Fatalf("%T: %v %v", req, err, fault.From(err).Details)
	}
	return resp
}

func fails(r *rig, req proto.Message, code fault.Code, reason string) *fault.Error {
	r.t.Helper()
	_, err := try[proto.Message](r, req)
	if err == nil {
		r.t.Fatalf("%T succeeded, want %s/%s", req, fault.Word(code), reason)
	}
	if e := fault.From(err); e.Code != code || reason != "" && e.ReasonWord() != reason {
		r.t.Fatalf("%T: got %v, want %s/%s", req, err, fault.Word(code), reason)
	}
	return fault.From(err)
}

// user is a session under test.
type user struct {
	*rig
	id   string
	info *browserv1.EnsureSessionResponse
}

func (r *rig) session(name string, set ...func(*browserv1.EnsureSessionRequest)) *user {
	r.t.Helper()
	req := &browserv1.EnsureSessionRequest{ClientSessionId: name}
	for _, f := range set {
		f(req)
	}
	resp := ask[*browserv1.EnsureSessionResponse](r, req)
	return &user{rig: r, id: resp.GetSessionId(), info: resp}
}

func (u *user) open(url string) *browserv1.OpenResponse {
	u.t.Helper()
	return ask[*browserv1.OpenResponse](u.rig, &browserv1.OpenRequest{SessionId: u.id, Url: url})
}

// ref finds an element by role and name in a new snapshot.
func (u *user) ref(role, name string) string {
	u.t.Helper()
	s := ask[*browserv1.SnapshotResponse](u.rig, &browserv1.SnapshotRequest{SessionId: u.id})
	for _, e := range s.GetElements() {
		if e.GetRole() == role && e.GetName() == name {
			return e.GetElementRef()
		}
	}
	u.t.Fatalf("no %s %q in %v", role, name, s.GetElements())
	return ""
}

func (u *user) click(target *browserv1.Target) *browserv1.ClickResponse {
	u.t.Helper()
	return ask[*browserv1.ClickResponse](u.rig, &browserv1.ClickRequest{SessionId: u.id, Target: target})
}

func (u *user) clickOn(role, name string) *browserv1.ClickResponse {
	u.t.Helper()
	return u.click(byRef(u.ref(role, name)))
}

// eval evaluates in the page and gives the value as JSON.
func (u *user) eval(expression string) string {
	u.t.Helper()
	resp := ask[*browserv1.EvalResponse](u.rig, &browserv1.EvalRequest{SessionId: u.id, Expression: expression})
	if resp.Unserializable != nil {
		return resp.GetUnserializable()
	}
	data, err := resp.GetValue().MarshalJSON()
	if err != nil {
		u.t.Fatal(err)
	}
	return string(data)
}

func byRef(ref string) *browserv1.Target    { return &browserv1.Target{ElementRef: &ref} }
func bySelector(s string) *browserv1.Target { return &browserv1.Target{Selector: &s} }
func ptr[T any](v T) *T                     { return &v }

// site serves pages by path. /slow waits for the time in ms, /file is an attachment.
func site(t testing.TB, pages map[string]string) string {
	t.Helper()
	stop := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			ms, _ := strconv.Atoi(r.URL.Query().Get("ms"))
			select {
			case <-time.After(time.Duration(ms) * time.Millisecond):
			case <-stop:
			case <-r.Context().Done():
			}
		case "/file":
			w.Header().Set("Content-Disposition", `attachment; filename="numbers.csv"`)
			fmt.Fprint(w, "id,total\n1,42\n")
			return
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
			return
		}
		page, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
	}))
	t.Cleanup(func() { close(stop); srv.CloseClientConnections(); srv.Close() })
	return srv.URL
}
