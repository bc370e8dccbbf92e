package bidi

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// families are the two that every fact is checked on.
var families = []string{familyFirefox, familyChromium}

// each runs a test on both families, with the provider that tests share.
func each(t *testing.T, fn func(*testing.T, *rig, string)) {
	t.Helper()
	for _, family := range families {
		t.Run(family, func(t *testing.T) { fn(t, common.use(t), family) })
	}
}

// eachOwn is each for a test that ends browsers or changes them, with a provider of its own.
func eachOwn(t *testing.T, fn func(*testing.T, *rig, string)) {
	t.Helper()
	for _, family := range families {
		t.Run(family, func(t *testing.T) { fn(t, newRig(t, nil), family) })
	}
}

// mainProcess finds the browser that runs on a folder below run: the one whose command line has no type.
func mainProcess(t *testing.T, run, family string) int {
	t.Helper()
	for _, pid := range processesOf(run) {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if err != nil {
			continue
		}
		if bytes.Contains(line, []byte("--type=")) || bytes.Contains(line, []byte("-contentproc")) || bytes.Contains(line, []byte("crashpad")) {
			continue
		}
		if family == familyFirefox || bytes.Contains(line, []byte("--user-data-dir")) {
			return pid
		}
	}
	t.Fatal("no browser runs")
	return 0
}

// A browser that is killed ends the call in flight at once, and the next ensure starts another.
func TestBrowserKilled(t *testing.T) {
	eachOwn(t, func(t *testing.T, r *rig, family string) {
		base := site(t, map[string]string{"/": formPage})
		u := r.session("killed", prefer(family))
		u.open(base + "/")
		flight := make(chan error, 1)
		go func() {
			_, err := try[*browserv1.WaitResponse](r, &browserv1.WaitRequest{SessionId: u.id, TextPresent: ptr("never"), TimeoutMs: ptr(int32(40000))})
			flight <- err
		}()
		ask[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: u.id})
		if err := syscall.Kill(mainProcess(t, r.run, family), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if e := fault.From(<-flight); e.Code != fault.BrowserNotRunning || !e.Retryable {
			t.Errorf("the call in flight said %v", e)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		fails(r, &browserv1.SnapshotRequest{SessionId: u.id}, fault.SessionNotFound, "session_lost")
		again := r.session("killed", prefer(family))
		if again.id == u.id || !again.info.GetCreated() {
			t.Errorf("ensure said %v", again.info)
		}
		again.open(base + "/")
	})
}

// A page whose process ends says so at once, also to the call that was under way, and can be loaded again.
func TestPageCrashed(t *testing.T) {
	eachOwn(t, func(t *testing.T, r *rig, family string) {
		base := site(t, map[string]string{"/": formPage})
		u := r.session("crashed", prefer(family))
		u.open(base + "/")
		flight := make(chan error, 1)
		go func() {
			_, err := try[*browserv1.WaitResponse](r, &browserv1.WaitRequest{SessionId: u.id, TextPresent: ptr("never"), TimeoutMs: ptr(int32(20000))})
			flight <- err
		}()
		ask[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: u.id})
		if family == familyFirefox {
			killTabs(t, mainProcess(t, r.run, family))
		} else {
			// It never answers; the page is gone.
			_, _ = u.send("goog:cdp.sendCommand", map[string]any{"method": "Page.crash", "params": map[string]any{}})
		}
		if e := fault.From(<-flight); e.Code != fault.PageNotFound || e.ReasonWord() != "page_crashed" {
			t.Errorf("the call in flight said %v", e)
		}
		fails(r, &browserv1.SnapshotRequest{SessionId: u.id}, fault.PageNotFound, "page_crashed")
		back := ask[*browserv1.ReloadResponse](r, &browserv1.ReloadRequest{SessionId: u.id})
		if back.GetTitle() != "Form" {
			t.Errorf("reload said %v", back)
		}
		u.ref("button", "Save")
	})
}

// killTabs ends the content processes of a Firefox, which its fork server started.
func killTabs(t *testing.T, browser int) {
	t.Helper()
	killed := 0
	for _, server := range childrenOf(browser) {
		for _, pid := range childrenOf(server) {
			line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
			if bytes.HasSuffix(bytes.TrimRight(line, "\x00"), []byte("tab")) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				killed++
			}
		}
	}
	if killed == 0 {
		t.Fatal("no content process was found")
	}
}

func childrenOf(parent int) (found []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			found = append(found, pid)
		}
	}
	return found
}

// A provider that is killed leaves no browser, whichever family it runs, and the next one sweeps its folders.
func TestProviderKilled(t *testing.T) {
	if os.Getenv("BIDI_TEST_CHILD") != "" {
		child()
		return
	}
	for _, family := range families {
		t.Run(family, func(t *testing.T) {
			run := t.TempDir()
			cmd := exec.Command(os.Args[0], "-test.run=^TestProviderKilled$")
			cmd.Env = append(os.Environ(), "BIDI_TEST_CHILD="+family, "BIDI_TEST_RUN="+run)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for lines.Scan() && lines.Text() != "ready" {
			}
			if len(processesOf(run)) == 0 {
				t.Error("no browser was started")
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			eventually(t, "the end of every browser process", func() bool { return len(processesOf(run)) == 0 })
			sweep(run)
			if left, err := os.ReadDir(run); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v (%v)", left, err)
			}
		})
	}
}

// child is the provider that is killed.
func child() {
	s := New()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	family := os.Getenv("BIDI_TEST_CHILD")
	for _, req := range []any{
		&browserv1.ConfigureRequest{Host: &browserv1.HostSettings{RunDir: os.Getenv("BIDI_TEST_RUN")}},
		&browserv1.EnsureSessionRequest{ClientSessionId: "x", BrowserPreference: &family},
	} {
		if err := callAny(ctx, s, req); err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
	}
	os.Stdout.WriteString("ready\n")
	<-ctx.Done()
}

// A start that fails says why and leaves nothing.
func TestBrowserDoesNotStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firefox")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho 'no display here' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, map[string]any{"browser": path})
	e := fails(r, &browserv1.EnsureSessionRequest{ClientSessionId: "x"}, fault.NotReady, "browser_start_failed")
	if !strings.Contains(e.Message, "no display here") {
		t.Errorf("it said %v", e)
	}
	// One that never says where it listens ends with the call's deadline.
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec sleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	fails(r, &browserv1.EnsureSessionRequest{ClientSessionId: "y", TimeoutMs: ptr(int32(500))}, fault.NotReady, "deadline_exceeded")
}
