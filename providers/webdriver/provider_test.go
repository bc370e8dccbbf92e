package webdriver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

const buttonPage = `<!doctype html><title>Start</title><button onclick="document.title='Clicked'">Go</button><input aria-label=Name>`

func newProvider(t *testing.T) (*Provider, string) {
	t.Helper()
	dir := t.TempDir()
	p := &Provider{srv: New(), host: &browserv1.HostSettings{RunDir: dir}, sessions: map[string]*session{}, clients: map[string]*session{}}
	t.Cleanup(func() { p.close(context.Background()) })
	return p, dir
}

func site(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(buttonPage))
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestFlow guards that a page is opened, read and acted on in each browser, and that session.close leaves nothing.
func TestFlow(t *testing.T) {
	for _, family := range []string{familyWebKit, familyChromium} {
		t.Run(family, func(t *testing.T) {
			p, dir := newProvider(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			got, err := p.ensure(ctx, &browserv1.EnsureSessionRequest{ClientSessionId: "a", BrowserPreference: &family})
			if err != nil {
				t.Fatal(err)
			}
			id := got.GetSessionId()
			if _, err := p.open(ctx, &browserv1.OpenRequest{SessionId: id, Url: site(t)}); err != nil {
				t.Fatal(err)
			}
			snap, err := p.snapshot(ctx, &browserv1.SnapshotRequest{SessionId: id})
			if err != nil || len(snap.GetElements()) != 2 {
				t.Fatalf("snapshot: %v, %v", snap, err)
			}
			ref := snap.GetElements()[0].GetElementRef()
			if _, err := p.click(ctx, &browserv1.ClickRequest{SessionId: id, Target: &browserv1.Target{ElementRef: &ref}}); err != nil {
				t.Fatal(err)
			}
			value, err := p.eval(ctx, &browserv1.EvalRequest{SessionId: id, Expression: "document.title"})
			if err != nil || value.GetValue().GetStringValue() != "Clicked" {
				t.Fatalf("the title after the click: %v, %v", value, err)
			}
			if _, err := p.closeSession(ctx, &browserv1.CloseSessionRequest{SessionId: id}); err != nil {
				t.Fatal(err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, folderPrefix+"*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestDriverKilled guards that a driver which is killed ends its session with session_lost.
func TestDriverKilled(t *testing.T) {
	p, _ := newProvider(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := p.ensure(ctx, &browserv1.EnsureSessionRequest{ClientSessionId: "a"})
	if err != nil {
		t.Fatal(err)
	}
	s := p.sessions[got.GetSessionId()]
	if err := s.driver.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.driver.done
	_, err = p.snapshot(ctx, &browserv1.SnapshotRequest{SessionId: s.id})
	if fault.ReasonOf(err) != "session_lost" {
		t.Errorf("after the kill: %v", err)
	}
}

// TestSweep guards that folders of live providers stay.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	live := filepath.Join(dir, folderPrefix+strconv.Itoa(os.Getpid())+"-1")
	dead := filepath.Join(dir, folderPrefix+"2147483646-1")
	for _, path := range []string{live, dead} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	sweep(dir)
	if _, err := os.Stat(live); err != nil {
		t.Error("the folder of a live provider went")
	}
	if _, err := os.Stat(dead); err == nil {
		t.Error("the folder of a dead provider stayed")
	}
}

// What a session is asked to be and cannot is told.
func TestWhatIsNotMetIsTold(t *testing.T) {
	r := &browserv1.EnsureSessionRequest{
		DialogPolicy: browserv1.DialogPolicy_DIALOG_POLICY_ACCEPT.Enum(), Isolation: browserv1.Isolation_ISOLATION_SHARED.Enum(),
		Viewport: &browserv1.Size{Width: 800, Height: 600},
	}
	if w := unmet(r, true); len(w) != 3 {
		t.Errorf("the warnings are %v", w)
	}
	if w := unmet(&browserv1.EnsureSessionRequest{DialogPolicy: browserv1.DialogPolicy_DIALOG_POLICY_REPORT.Enum()}, true); len(w) != 0 {
		t.Errorf("a session that lacks nothing warns of %v", w)
	}
}
