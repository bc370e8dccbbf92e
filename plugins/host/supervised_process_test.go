package host_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/plugins/plugintest"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// With real processes: a known binary is not started before it is needed, and a killed one is there again at the next
// Acquire.
func TestSupervisedProcess(t *testing.T) {
	opts := host.Options{Spec: plugintest.Spec(t, "fake"), CacheDir: filepath.Join(t.TempDir(), "describe")}
	opts.Spec.Run = run(t)
	s := host.Supervise(opts)
	first, err := s.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if !gone(first.PID()) {
		t.Error("Close left the process")
	}

	s = host.Supervise(opts)
	defer s.Close()
	if st := s.Status(); st.State != host.StateStopped || st.Describe.GetProviderId() != "fake" || st.Starts != 0 {
		t.Fatalf("a known binary: %+v", st)
	}
	for range 3 {
		i, err := s.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		result := flight(t, i)
		began := time.Now()
		if err := syscall.Kill(i.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = within(t, time.Second, result)
		next, err := s.Acquire(t.Context())
		if err != nil || next == i || next.PID() == i.PID() {
			t.Fatalf("after the kill: %v", err)
		}
		if _, err := call(t.Context(), next, &browserv1.StatusRequest{}); err != nil {
			t.Fatal(err)
		}
		t.Logf("another process answers %s after the kill", time.Since(began))
	}
	if left, _ := os.ReadDir(opts.Spec.Run.Dir()); len(left) > 2 { // the owner's file and one living instance
		t.Errorf("left %v", left)
	}
}

// A provider without a browser runs and says so: its steps are for people, its process answers setup_guide and verify.
func TestUnavailableProviderStillAnswers(t *testing.T) {
	s := host.Supervise(host.Options{Spec: plugintest.Spec(t, "absent")})
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := s.Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	st := s.Status()
	if st.State != host.StateUnavailable || st.PID == 0 || len(st.Last.GetManualSteps()) != 1 {
		t.Errorf("status %+v", st)
	}
}
