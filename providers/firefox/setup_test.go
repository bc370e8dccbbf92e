package firefox

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins/inpage"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/providers/firefox/endpoint"
	"github.com/droverhq/drover/providers/firefox/firefoxtest"
	"github.com/droverhq/drover/providers/firefox/native"
	"github.com/droverhq/drover/providers/firefox/relay"
)

// lines is a writer that many may use.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// A person's way from nothing to a connected Firefox: each state of it is told with its next step, the set-up writes only its own
// files, and the packed add-on works.
func TestSetup(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_DATA_HOME", filepath.Join(home, "data"))
	run, err := os.MkdirTemp("", "drover-fxs-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	t.Setenv("XDG_RUNTIME_DIR", run)
	t.Setenv("PATH", os.Getenv("PATH")+string(os.PathListSeparator)+filepath.Dir(bench.host))
	r := newRig(t)
	state := func(code string) *browserv1.StatusResponse {
		t.Helper()
		st := ask[*browserv1.StatusResponse](r, &browserv1.StatusRequest{})
		if st.GetAvailability() != browserv1.Availability_AVAILABILITY_UNAVAILABLE || st.GetDiagnostics()[0].GetCode() != code || len(st.GetManualSteps()) == 0 {
			t.Fatalf("status said %v, want %s", st, code)
		}
		return st
	}
	state("native_host_missing")
	e := fails(r, &browserv1.EnsureSessionRequest{ClientSessionId: "x"}, fault.SetupRequired, "native_host_missing")
	if e.Details["manual_steps"] == nil {
		t.Errorf("ensure said %v", e.Details)
	}
	for _, c := range ask[*browserv1.VerifyResponse](r, &browserv1.VerifyRequest{}).GetChecks() {
		if c.GetStatus() != browserv1.CheckStatus_CHECK_STATUS_WARN || c.GetFix() == "" {
			t.Errorf("verify of what nobody set up said %v", c)
		}
	}

	// A manifest of another program stays.
	path, err := manifestPath(appName)
	if err != nil {
		t.Fatal(err)
	}
	foreign := `{"name":"drover_firefox","path":"/usr/bin/other","type":"stdio","allowed_extensions":[]}`
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	var out lines
	if code := RunSetup([]string{"--wait", "0"}, &out, &out); code != 1 || !strings.Contains(out.String(), "another program") {
		t.Errorf("the set-up over another's manifest gave %d: %s", code, out.String())
	}
	if data, _ := os.ReadFile(path); string(data) != foreign {
		t.Errorf("the manifest is now %s", data)
	}

	// The custom method does the same, and says where things are.
	params, err := structpb.NewStruct(map[string]any{"replace": true, "public": true})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.srv.Custom(t.Context(), &browserv1.CustomRequest{Method: "firefox.install_extension", Params: params})
	if err != nil {
		t.Fatal(err)
	}
	got := resp.GetResult().GetStructValue().AsMap()
	var m nativeManifest
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil || m.Path != bench.host || m.Extensions[0] != addonID || len(got["manifests"].([]any)) != 2 || got["connected"] != false {
		t.Fatalf("it wrote %s and said %v (%v)", data, got, err)
	}
	state("extension_missing")

	// The person loads the add-on while the set-up waits.
	done := make(chan int, 1)
	go func() { done <- RunSetup([]string{"--wait", "60s"}, &out, &out) }()
	f, err := firefoxtest.Start(t.Context(), firefoxtest.Options{Runtime: run, Home: home, Addon: got["xpi"].(string)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	if code := <-done; code != 0 || !strings.Contains(out.String(), "connected: Drover's add-on") {
		t.Errorf("the set-up gave %d: %s", code, out.String())
	}
	guide := ask[*browserv1.SetupGuideResponse](r, &browserv1.SetupGuideRequest{})
	for _, step := range guide.GetSteps()[:4] {
		if !step.GetDone() {
			t.Errorf("the step is not done: %v", step)
		}
	}
	for _, c := range ask[*browserv1.VerifyResponse](r, &browserv1.VerifyRequest{}).GetChecks() {
		if c.GetStatus() != browserv1.CheckStatus_CHECK_STATUS_PASS {
			t.Errorf("verify said %v", c)
		}
	}
}

// An add-on of another make, one that may not act on pages, and one that does not answer, are told with what to do, and get no session.
func TestUnfitAddon(t *testing.T) {
	_, engine := inpage.Bundle()
	for code, hello := range map[string]string{
		"extension_outdated": `{"kind":"drover","protocol":1,"engine":"another","hosts":true}`,
		"permission_missing": `{"kind":"drover","protocol":1,"engine":"` + engine + `","hosts":false}`,
		"extension_silent":   `{"kind":"drover","protocol":1,"engine":"` + engine + `","hosts":true}`,
	} {
		t.Run(code, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "drover-unfit-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			t.Setenv("XDG_RUNTIME_DIR", dir)
			l, err := endpoint.Listen(t.Context(), endpoint.Folder())
			if err != nil {
				t.Fatal(err)
			}
			fromAddon, toRelay := io.Pipe()
			done := make(chan error, 1)
			go func() {
				done <- relay.Run(context.Background(), relay.Options{In: fromAddon, Out: io.Discard, Listener: l})
			}()
			t.Cleanup(func() {
				toRelay.Close()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
			if err := native.Write(toRelay, []byte(`{"type":"hello","params":`+hello+`}`), native.MaxMessage); err != nil {
				t.Fatal(err)
			}
			r := newRig(t)
			st := ask[*browserv1.StatusResponse](r, &browserv1.StatusRequest{})
			if st.GetAvailability() != browserv1.Availability_AVAILABILITY_UNAVAILABLE || st.GetDiagnostics()[0].GetCode() != code || len(st.GetManualSteps()) == 0 {
				t.Errorf("status said %v", st)
			}
			if code != "extension_silent" {
				fails(r, &browserv1.EnsureSessionRequest{ClientSessionId: "x"}, fault.SetupRequired, code)
			}
		})
	}
}
