package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/droverhq/drover/plugins/host"
)

// orphan starts a process that bears the mark of the broker that runs in these folders; the channel is closed when it has ended.
func orphan(t *testing.T, h homes) <-chan struct{} {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(h.dir, "drover", "r", "*", "owner.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("run folders %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	var owner struct {
		Mark string `json:"mark"`
	}
	if err == nil {
		err = json.Unmarshal(data, &owner)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sleep", "300")
	cmd.Env = append(os.Environ(), host.EnvRun+"="+owner.Mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
	})
	return done
}

// Guards what is counted of provider processes: one that is killed and comes back, one that is restarted, and what a killed
// broker left behind.
func TestProcessesAreCounted(t *testing.T) {
	h := setHomes(t)
	page := site(t)
	k := startStdio(t) // which leaves something behind
	id := k.must("session.ensure", m{"client_session_id": "a"})["session_id"]
	k.must("page.open", m{"session_id": id, "url": page + "/form"})
	marked := orphan(t, h)
	if err := k.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-k.done
	eventually(t, patience, "all but that is gone by itself", func() error {
		if left := h.processes(); len(left) != 1 {
			return fmt.Errorf("there are %v", left)
		}
		return nil
	})

	ready := startServe(t)
	reads := func(name string) string {
		_, body, err := httpCall([]string{ready, "own", "/metrics"})
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewScanner(strings.NewReader(body))
		for in.Scan() {
			if value, ok := strings.CutPrefix(in.Text(), name+" "); ok {
				return value
			}
		}
		return ""
	}
	counts := func(name, want string) {
		t.Helper()
		eventually(t, patience, name+" is "+want, func() error {
			if got := reads(name); got != want {
				return fmt.Errorf("it is %q", got)
			}
			return nil
		})
	}
	counts("drover_zombies_reaped_total", "1")
	select {
	case <-marked:
	case <-time.After(patience):
		t.Error("the process that was left is counted, and still there")
	}
	own := webCaller{ready, "own"}
	begin := func() {
		t.Helper()
		if r, failure, err := own.call("session.ensure", m{"client_session_id": "a"}); err != nil || failure != nil {
			t.Fatal(r, failure, err)
		}
	}
	const restarts, up = `drover_provider_restarts_total{provider="cdp"}`, `drover_provider_up{provider="cdp"}`
	begin()
	counts(restarts, "0")
	counts(up, "1")
	r, _, err := own.call("provider.status", m{"provider_id": "cdp"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.FindProcess(int(r["pid"].(float64)))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	counts(`drover_sessions{provider="cdp",state="lost"}`, "1")
	begin()
	counts(restarts, "1")
	if out, err := exec.Command("drover", "provider", "restart", "cdp").CombinedOutput(); err != nil {
		t.Fatalf("%s %v", out, err)
	}
	counts(restarts, "2")
}
