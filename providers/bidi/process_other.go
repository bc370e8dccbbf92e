//go:build unix && !linux

package bidi

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// processAttributes put the process into a process group of its own.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// guard starts a watcher in the process's group that kills the group when the provider, which holds the other end of its
// stdin, is gone. Without a shell there is no watcher, and the host's own sweep is what is left.
func guard(pid int) (stop func()) {
	r, w, err := os.Pipe()
	if err != nil {
		return func() {}
	}
	cmd := exec.Command("/bin/sh", "-c", "read _; kill -9 -"+strconv.Itoa(pid))
	cmd.Stdin = r
	err = cmd.Start()
	r.Close()
	if err != nil {
		w.Close()
		return func() {}
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		w.Close()
	}
}

// usersOf has no way to look at other processes here.
func usersOf(string) []int { return nil }
