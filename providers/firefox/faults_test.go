package firefox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/providers/firefox/endpoint"
	"github.com/droverhq/drover/providers/firefox/firefoxtest"
)

// own starts a Firefox for one test, in a runtime folder of its own.
func own(t *testing.T) *firefoxtest.Firefox {
	t.Helper()
	dir, err := os.MkdirTemp("", "drover-fxr-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return another(t, 1)
}

// another starts one more in the same runtime folder and waits for its native host, the nth.
func another(t *testing.T, n int) *firefoxtest.Firefox {
	t.Helper()
	f, err := firefoxtest.Start(t.Context(), options(os.Getenv("XDG_RUNTIME_DIR")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	if err := awaitSockets(n); err != nil {
		t.Fatal(err)
	}
	return f
}

// hosts lists the processes of the native hosts.
func hosts(t *testing.T) (pids []int) {
	t.Helper()
	list, err := endpoint.Sockets(endpoint.Folder())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range list {
		pid, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".sock"))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func running(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := eventually(ctx, func() (bool, error) { return holds(), nil }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// inFlight has a call wait in the page while breakIt breaks something, and gives what the call says.
func (u *user) inFlight(breakIt func()) *fault.Error {
	u.t.Helper()
	said := make(chan error, 1)
	go func() {
		_, err := try[*browserv1.EvalResponse](u.rig, &browserv1.EvalRequest{SessionId: u.id, Expression: "document.title = 'waiting', new Promise(() => {})"})
		said <- err
	}()
	s, err := u.p.session(u.id)
	if err != nil {
		u.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err = eventually(ctx, func() (bool, error) {
		st, err := s.active.state(ctx)
		return st.Title == "waiting", err
	})
	if err != nil {
		u.t.Fatal(err)
	}
	breakIt()
	select {
	case err := <-said:
		return fault.From(err)
	case <-time.After(25 * time.Second):
		u.t.Fatal("the call in flight never ended")
		return nil
	}
}

// Whatever goes away under a call ends it with a word for it, the session is lost and says so, nothing is left running, and when it
// is back a new session works: the native host, the add-on, Firefox itself.
func TestWhatGoesAway(t *testing.T) {
	f := own(t)
	r := newRig(t)
	base := site(t, map[string]string{"/": formPage})
	for _, c := range []struct {
		name    string
		kill    func()
		recover func()
	}{
		{"host killed", func() { _ = syscall.Kill(hosts(t)[0], syscall.SIGKILL) }, func() {}},
		{"add-on reloaded", func() {
			if err := f.Uninstall(t.Context()); err != nil {
				t.Error(err)
			}
		}, func() {
			if err := f.Install(t.Context()); err != nil {
				t.Error(err)
			}
		}},
		{"firefox killed", f.Kill, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.t = t
			u := r.session(c.name)
			u.open(base + "/")
			before := hosts(t)
			e := u.inFlight(c.kill)
			if e.Code != fault.BrowserNotRunning || e.ReasonWord() != "browser_gone" {
				t.Errorf("the call in flight said %v", e)
			}
			fails(r, &browserv1.SnapshotRequest{SessionId: u.id}, fault.SessionNotFound, "session_lost")
			within(t, "the native host ends", func() bool { return !running(before[0]) })
			if c.recover == nil {
				st := ask[*browserv1.StatusResponse](r, &browserv1.StatusRequest{})
				if st.GetAvailability() != browserv1.Availability_AVAILABILITY_UNAVAILABLE || len(st.GetManualSteps()) == 0 {
					t.Errorf("status said %v", st)
				}
				if left := hosts(t); len(left) > 0 {
					t.Errorf("sockets of %v are left", left)
				}
				return
			}
			c.recover()
			within(t, "Firefox is connected again", func() bool { return len(r.p.discover(t.Context())) == 1 })
			again := r.session(c.name)
			again.open(base + "/")
			if got := again.eval("document.title"); got != `"Form"` {
				t.Errorf("the new session's page is %s", got)
			}
			ask[*browserv1.CloseSessionResponse](r, &browserv1.CloseSessionRequest{SessionId: again.id})
		})
	}
}

// tabs counts the tabs of a Firefox.
func tabs(t *testing.T, f *firefoxtest.Firefox) int {
	t.Helper()
	data, err := f.Command(t.Context(), "browsingContext.getTree", map[string]any{"maxDepth": 0})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), `"context":`)
}

// A provider, or the broker above it, that dies without a word leaves no tabs of its sessions in the person's Firefox, and takes
// none of the person's.
func TestProviderDies(t *testing.T) {
	f := own(t)
	before := tabs(t, f)
	r, other := newRig(t), newRig(t)
	base := site(t, map[string]string{"/": formPage})
	u, v := r.session("a"), other.session("b")
	u.open(base + "/")
	v.open(base + "/")
	ask[*browserv1.NewTabResponse](r, &browserv1.NewTabRequest{SessionId: u.id})
	if now := tabs(t, f); now != before+3 {
		t.Fatalf("there are %d tabs, want %d", now, before+3)
	}
	e := u.inFlight(func() {
		for _, b := range r.p.discover(t.Context()) {
			b.link.conn.Close()
		}
	})
	if e.Code != fault.BrowserNotRunning {
		t.Errorf("the call in flight said %v", e)
	}
	within(t, "the dead provider's tabs are closed", func() bool { return tabs(t, f) == before+1 })
	if got := v.eval("document.title"); got != `"Form"` {
		t.Errorf("the other provider's page is %s", got)
	}
}

// Two profiles at once are two browsers, each with its own host; a config picks one by its instance, and when one dies the other
// goes on.
func TestTwoProfiles(t *testing.T) {
	first := own(t)
	another(t, 2)
	r := newRig(t)
	found := r.p.discover(t.Context())
	if len(found) != 2 || found[0].link.hello.Instance == found[1].link.hello.Instance {
		t.Fatalf("%d browsers were found", len(found))
	}
	base := site(t, map[string]string{"/": formPage})
	var users []*user
	for i, b := range found {
		r.p.mu.Lock()
		r.p.config.Profile = b.link.hello.Instance
		r.p.mu.Unlock()
		u := r.session(fmt.Sprint("profile ", i))
		u.open(base + "/")
		u.eval(fmt.Sprintf("localStorage.setItem('me', %d)", i))
		users = append(users, u)
		if s, err := r.p.session(u.id); err != nil || s.b != b {
			t.Errorf("session %d is in another profile (%v)", i, err)
		}
	}
	for i, u := range users {
		if got := u.eval("localStorage.getItem('me')"); got != fmt.Sprintf("%q", fmt.Sprint(i)) {
			t.Errorf("profile %d holds %s", i, got)
		}
	}
	first.Kill()
	within(t, "one browser is left", func() bool { return len(r.p.discover(t.Context())) == 1 })
	alive := 0
	for _, u := range users {
		if _, err := try[*browserv1.SnapshotResponse](r, &browserv1.SnapshotRequest{SessionId: u.id}); err == nil {
			alive++
		} else if fault.ReasonOf(err) != "session_lost" {
			t.Errorf("the session of the dead profile said %v", err)
		}
	}
	if alive != 1 {
		t.Errorf("%d sessions are alive, want 1", alive)
	}
}

const noisePage = `<!doctype html><title>Noise</title><style>body{margin:0}</style><canvas id=c width=2600 height=3000></canvas><script>
const g = document.getElementById('c').getContext('2d'), d = g.createImageData(2600, 3000);
for (let i = 0; i < d.data.length; i += 65536) crypto.getRandomValues(d.data.subarray(i, i + 65536));
for (let i = 3; i < d.data.length; i += 4) d.data[i] = 255;
g.putImageData(d, 0, 0);</script>`

// A picture of more than 20 MB comes whole, by reference, and the calls beside it get their own answers.
func TestLargePicture(t *testing.T) {
	person(t)
	r := newRig(t)
	base := site(t, map[string]string{"/": noisePage, "/form": formPage})
	u, v := r.session("large"), r.session("beside")
	u.open(base + "/")
	v.open(base + "/form")
	done := make(chan *browserv1.ScreenshotResponse, 1)
	go func() {
		defer close(done)
		resp, err := try[*browserv1.ScreenshotResponse](r, &browserv1.ScreenshotRequest{SessionId: u.id, FullPage: true})
		if err == nil {
			done <- resp
		}
	}()
	for range 5 {
		if got := v.eval("document.title"); got != `"Form"` {
			t.Errorf("the call beside gave %s", got)
		}
	}
	pic := <-done
	if pic == nil || pic.ImageRef == nil || pic.GetWidth() < 2600 || pic.GetHeight() < 3000 {
		t.Fatalf("the picture is %d by %d, in the answer %d bytes", pic.GetWidth(), pic.GetHeight(), len(pic.GetImage()))
	}
	got := ask[*browserv1.GetArtifactResponse](r, &browserv1.GetArtifactRequest{SessionId: u.id, Ref: pic.GetImageRef()})
	if got.GetSize() < 20<<20 || got.GetMediaType() != "image/png" {
		t.Errorf("it has %d bytes of %s", got.GetSize(), got.GetMediaType())
	}
}
