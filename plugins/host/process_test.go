package host_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/plugins/plugintest"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// flight sends a call and gives its error when it comes back. The provider's log tells that it arrived there; here the
// arrival of a second call on the same connection does.
func flight(t *testing.T, i *host.Instance) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	go func() {
		_, err := call(context.Background(), i, click(60_000))
		result <- err
	}()
	if _, err := call(t.Context(), i, &browserv1.StatusRequest{}); err != nil {
		t.Fatal(err)
	}
	return result
}

func within(t *testing.T, limit time.Duration, result <-chan error) error {
	t.Helper()
	select {
	case err := <-result:
		return err
	case <-time.After(limit):
		t.Fatalf("no answer within %s\n%s", limit, stacks())
		return nil
	}
}

// A call in flight fails at once when its process is killed, with what the caller needs to go on.
func TestKillMidCall(t *testing.T) {
	i := launch(t, plugintest.Spec(t, "fake"))
	result := flight(t, i)
	began := time.Now()
	if err := syscall.Kill(i.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	e := wantFault(t, within(t, time.Second, result), fault.BrowserNotRunning, "provider_exited")
	t.Logf("failed %s after the kill", time.Since(began))
	if !e.Retryable || e.Details["retry"] != "new_session" || e.Details["provider_id"] != "fake" || e.Details["method"] != "page.click" {
		t.Errorf("details %v", e.Details)
	}
	if !strings.Contains(e.Message, "signal: killed") {
		t.Errorf("message %q", e.Message)
	}
	select {
	case <-i.Done():
	case <-time.After(time.Second):
		t.Error("the instance is not done")
	}
	_, err := call(t.Context(), i, click(1000))
	wantFault(t, err, fault.BrowserNotRunning, "provider_exited")
	if !gone(i.PID()) {
		t.Error("the process is not gone")
	}
}

// A provider that exits by itself in the middle of a call is the same to the caller.
func TestExitMidCall(t *testing.T) {
	i := launch(t, plugintest.Spec(t, "fake"))
	_, err := call(t.Context(), i, &browserv1.OpenRequest{SessionId: "s1", Url: "http://127.0.0.1/"})
	if e := wantFault(t, err, fault.BrowserNotRunning, "provider_exited"); !strings.Contains(e.Message, "exit status 7") {
		t.Errorf("message %q", e.Message)
	}
}

// A panic costs one call, not the process.
func TestPanicCostsOneCall(t *testing.T) {
	i := launch(t, plugintest.Spec(t, "fake"))
	_, err := call(t.Context(), i, &browserv1.SnapshotRequest{SessionId: "s1"})
	wantFault(t, err, fault.InternalError, "panic")
	if _, err := call(t.Context(), i, &browserv1.StatusRequest{}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// Kill of go-plugin waits for ever for a frozen process; Stop does not, and a call ends at its deadline.
func TestFrozenProvider(t *testing.T) {
	i := launch(t, plugintest.Spec(t, "fake"))
	if err := syscall.Kill(i.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err := call(t.Context(), i, click(100))
	e := wantFault(t, err, fault.NotReady, "deadline_exceeded")
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("the call took %s", took)
	}
	if e.Details["provider_id"] != "fake" || e.Details["method"] != "page.click" {
		t.Errorf("details %v", e.Details)
	}
	began = time.Now()
	stop(t, i)
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("Stop took %s", took)
	}
	if !gone(i.PID()) {
		t.Error("the process is not gone")
	}
}

// A function that heeds nothing cannot hold Stop up.
func TestDeafProvider(t *testing.T) {
	i := launch(t, plugintest.Spec(t, "fake"))
	selector, ms := "#i", int32(100)
	_, err := call(t.Context(), i, &browserv1.TypeRequest{SessionId: "s1", Text: "x", TimeoutMs: &ms, Target: &browserv1.Target{Selector: &selector}})
	wantFault(t, err, fault.NotReady, "deadline_exceeded")
	began := time.Now()
	stop(t, i)
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("Stop took %s", took)
	}
}

// wrapped gives the spec of the fake behind a script that starts something first and writes its pid to the file.
func wrapped(t *testing.T, command string) (spec host.Spec, child func() int) {
	t.Helper()
	dir := t.TempDir()
	spec = plugintest.Spec(t, "fake")
	body := fmt.Sprintf("#!/bin/sh\n%s &\necho $! >%s/child\nexec %s\n", command, dir, spec.Path)
	spec.Path = filepath.Join(dir, "drover-provider-wrapped")
	if err := os.WriteFile(spec.Path, []byte(body), 0o755); err != nil {
		t.Fatal(err)
	}
	return spec, func() int {
		data, err := os.ReadFile(filepath.Join(dir, "child"))
		if err != nil {
			t.Fatal(err)
		}
		var pid int
		if _, err := fmt.Sscan(string(data), &pid); err != nil || gone(pid) {
			t.Fatalf("child %d: %v", pid, err)
		}
		return pid
	}
}

// Something that the provider started, and that holds its stderr open, does not hide the provider's end, and goes with it.
func TestChildrenGoWithTheProvider(t *testing.T) {
	spec, childOf := wrapped(t, "sleep 300")
	i := launch(t, spec)
	child := childOf()
	result := flight(t, i)
	if err := syscall.Kill(i.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantFault(t, within(t, time.Second, result), fault.BrowserNotRunning, "provider_exited")
	eventually(t, time.Second, "the child is gone", func() bool { return gone(child) })
}

// Something that left the process group and holds the pipes open cannot hold Stop up. It is not ours to kill: without a
// mark of a run nobody can tell whose it is.
func TestEscapedChildDoesNotHoldStopUp(t *testing.T) {
	spec, childOf := wrapped(t, "setsid sleep 300")
	i := launch(t, spec)
	child := childOf()
	t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) })
	began := time.Now()
	stop(t, i)
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("Stop took %s", took)
	}
	if gone(child) {
		t.Error("the child did not escape, so this shows nothing")
	}
}

// A provider that was made with go-plugin alone works as well.
func TestForeignProvider(t *testing.T) {
	i := launch(t, plugintest.Spec(t, "foreign"))
	if _, err := call(t.Context(), i, &browserv1.EvalRequest{SessionId: "s1", Expression: "1"}); err != nil {
		t.Fatal(err)
	}
	stop(t, i)
}

// eventually polls for what another process does, which nothing here can wait for.
func eventually(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// beHost is a host that starts providers, says its children's pids, and waits to be killed.
func beHost(root string) {
	r, err := host.OpenRun(root)
	if err != nil {
		fmt.Println("error", err)
		return
	}
	exe, _ := os.Executable()
	for _, name := range []string{"null", "fake", "foreign"} {
		spec := host.Spec{ID: name, Path: exe, Run: r, SetEnv: map[string]string{"DROVER_PLUGINTEST_PROVIDER": name}}
		i, err := host.Launch(context.Background(), spec)
		if err != nil {
			fmt.Println("error", err)
			return
		}
		fmt.Println(i.PID())
	}
	fmt.Println("ready", r.Dir())
	select {}
}

// startHost runs the test binary as a host and gives it, the pids of its providers and its run folder.
func startHost(t *testing.T, root string) (*exec.Cmd, []int, string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), envHost+"="+root)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	var pids []int
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var pid int
		if dir, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
			return cmd, pids, dir
		}
		if _, err := fmt.Sscan(lines.Text(), &pid); err != nil {
			t.Fatalf("the host said %q", lines.Text())
		}
		pids = append(pids, pid)
		t.Cleanup(func() { // only should the test have failed
			if own, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && own == exe {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
	t.Fatal("the host said nothing")
	return nil, nil, ""
}

// No provider outlives a host that is killed: not one that was frozen, and not one that watches nothing.
func TestHostKilled(t *testing.T) {
	for name, before := range map[string]func(int) error{
		"running": func(int) error { return nil },
		"frozen":  func(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) },
	} {
		t.Run(name, func(t *testing.T) {
			cmd, pids, _ := startHost(t, root(t))
			if len(pids) != 3 {
				t.Fatalf("pids %v", pids)
			}
			for _, pid := range pids {
				if err := before(pid); err != nil {
					t.Fatal(err)
				}
			}
			if name == "frozen" { // SIGSTOP takes effect later, and the kernel wakes only those orphans that have stopped
				eventually(t, 2*time.Second, "the providers have stopped", func() bool {
					return !slices.ContainsFunc(pids, func(pid int) bool { return !stopped(pid) })
				})
			}
			began := time.Now()
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			eventually(t, 2*time.Second, "the providers are gone", func() bool {
				return !slices.ContainsFunc(pids, func(pid int) bool { return !gone(pid) })
			})
			t.Logf("gone %s after the kill", time.Since(began))
		})
	}
}

// OnClose runs within the time that a host gives.
func TestStopRunsOnClose(t *testing.T) {
	closed := make(chan struct{})
	s := plugins.NewServer(plugins.Info{ID: "mine"})
	s.OnClose(func(context.Context) { close(closed) })
	i := plugintest.Connect(t, s)
	stop(t, i)
	select {
	case <-closed:
	default:
		t.Error("OnClose did not run")
	}
}
