package host_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/proto/fault"
)

// sleeper starts a process that outlives whoever would have started it.
func sleeper(t *testing.T, args []string, env ...string) int {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "300")
	cmd.Args = append([]string{"sleep", "300"}, args...)
	if len(args) > 0 {
		cmd = exec.Command("/bin/sh", append([]string{"-c", "sleep 300; true"}, args...)...)
	}
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// What a killed broker left goes, by its marks; what has no mark, or belongs to one that lives, stays.
func TestSweep(t *testing.T) {
	base := root(t)
	cmd, _, dead := startHost(t, base)
	data, err := os.ReadFile(filepath.Join(dead, "owner.json"))
	if err != nil {
		t.Fatal(err)
	}
	mark := between(string(data), `"mark":"`, `"`)
	living, err := host.OpenRun(base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = living.Close() })
	if swept, err := host.Sweep(base); err != nil || len(swept.Dirs)+len(swept.PIDs) > 0 {
		t.Fatalf("with both living: %+v, %v", swept, err)
	}

	byEnv := sleeper(t, nil, host.EnvRun+"="+mark)
	byArg := sleeper(t, []string{"--user-data-dir=" + dead + "/cdp-1/profile"})
	unmarked := sleeper(t, nil)
	typed := sleeper(t, []string{dead})
	other := sleeper(t, nil, host.EnvRun+"="+living.Mark())
	foreign := filepath.Join(base, "photos")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	swept, err := host.Sweep(base)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(swept.Dirs, []string{dead}) {
		t.Errorf("folders %v, want %s", swept.Dirs, dead)
	}
	for pid, want := range map[int]bool{byEnv: true, byArg: true, unmarked: false, typed: false, other: false} {
		if got := slices.Contains(swept.PIDs, pid); got != want {
			t.Errorf("process %d: killed %v, want %v", pid, got, want)
		}
		if want {
			eventually(t, time.Second, "it is gone", func() bool { return gone(pid) })
		} else if gone(pid) {
			t.Errorf("process %d is gone", pid)
		}
	}
	for _, dir := range []string{living.Dir(), foreign} {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("%s: %v", dead, err)
	}
}

func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}

// A run folder in a place that others can write to could be another's trap.
func TestRunFolderMustBePrivate(t *testing.T) {
	dir := root(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := host.OpenRun(dir)
	wantFault(t, err, fault.PermissionDenied, "")
	_, err = host.Sweep(dir)
	wantFault(t, err, fault.PermissionDenied, "")
	if _, err := host.Sweep(filepath.Join(dir, "none")); err != nil {
		t.Errorf("a root that is not there: %v", err)
	}
}
