package cdp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// rig is a provider under test, configured with folders of its own. When the test ends, no process and no folder of it
// may be left.
type rig struct {
	t      testing.TB
	srv    *plugins.Server
	run    string
	state  string
	upload string
}

func newRig(t testing.TB, config map[string]any) *rig {
	t.Helper()
	r := &rig{t: t, srv: New(), run: t.TempDir(), state: t.TempDir(), upload: t.TempDir()}
	req := configureRequest(t, config)
	req.Host = &browserv1.HostSettings{RunDir: r.run, StateDir: r.state, UploadDirs: []string{r.upload}, BrokerPid: int32(os.Getpid())}
	do[*browserv1.ConfigureResponse](r, req)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		r.srv.Close(ctx)
		if left := processesOf(r.run, r.state); len(left) > 0 {
			t.Errorf("processes are left: %v", left)
		}
		entries, err := os.ReadDir(r.run)
		if err != nil || len(entries) > 0 {
			t.Errorf("the run folder holds %v (%v)", entries, err)
		}
	})
	return r
}

func configureRequest(t testing.TB, config map[string]any) *browserv1.ConfigureRequest {
	t.Helper()
	body, err := structpb.NewStruct(config)
	if err != nil {
		t.Fatal(err)
	}
	return &browserv1.ConfigureRequest{Config: body}
}

// processesOf lists the live processes whose command line names one of the folders.
func processesOf(dirs ...string) (found []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range stats {
		line, err := os.ReadFile(path)
		if err != nil || len(line) == 0 {
			continue
		}
		if slices.ContainsFunc(dirs, func(d string) bool { return strings.Contains(string(line), d) }) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			found = append(found, pid)
		}
	}
	return found
}

// try calls a method and gives what it answers.
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

// do is try for a call that must succeed.
func do[Resp proto.Message](r *rig, req proto.Message) Resp {
	r.t.Helper()
	resp, err := try[Resp](r, req)
	if err != nil {
		r.t.Fatalf("%T: %v %v", req, err, fault.From(err).Details)
	}
	return resp
}

// fails is try for a call that must fail, with a code and, where it is not "", a reason.
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
	resp := do[*browserv1.EnsureSessionResponse](r, req)
	return &user{rig: r, id: resp.GetSessionId(), info: resp}
}

func (u *user) open(url string) *browserv1.OpenResponse {
	u.t.Helper()
	return do[*browserv1.OpenResponse](u.rig, &browserv1.OpenRequest{SessionId: u.id, Url: url})
}

func (u *user) snapshot() *browserv1.SnapshotResponse {
	u.t.Helper()
	return do[*browserv1.SnapshotResponse](u.rig, &browserv1.SnapshotRequest{SessionId: u.id})
}

// ref finds an element by role and name in a new snapshot.
func (u *user) ref(role, name string) string {
	u.t.Helper()
	s := u.snapshot()
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
	return do[*browserv1.ClickResponse](u.rig, &browserv1.ClickRequest{SessionId: u.id, Target: target})
}

func (u *user) clickOn(role, name string) *browserv1.ClickResponse {
	u.t.Helper()
	return u.click(byRef(u.ref(role, name)))
}

// eval evaluates in the page and gives the value as JSON.
func (u *user) eval(expression string) string {
	u.t.Helper()
	resp := do[*browserv1.EvalResponse](u.rig, &browserv1.EvalRequest{SessionId: u.id, Expression: expression})
	if resp.Unserializable != nil {
		return resp.GetUnserializable()
	}
	out, err := json.Marshal(resp.GetValue().AsInterface())
	if err != nil {
		u.t.Fatal(err)
	}
	return string(out)
}

func byRef(ref string) *browserv1.Target    { return &browserv1.Target{ElementRef: &ref} }
func bySelector(s string) *browserv1.Target { return &browserv1.Target{Selector: &s} }

// site serves pages by path. /slow waits for the time in ms, /never never answers.
func site(t testing.TB, pages map[string]string) string {
	t.Helper()
	stop := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/never":
			select {
			case <-stop:
			case <-r.Context().Done():
			}
			return
		case r.URL.Path == "/go":
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
			return
		case r.URL.Path == "/204":
			w.WriteHeader(http.StatusNoContent)
			return
		case strings.HasPrefix(r.URL.Path, "/dl/"):
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Disposition", "attachment; filename=\""+r.URL.Query().Get("name")+"\"")
			fmt.Fprint(w, "id,total\n1,42\n")
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

func ptr[T any](v T) *T { return &v }
