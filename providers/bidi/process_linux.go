package bidi

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// processAttributes put the process into a process group of its own and have the kernel kill it when the thread that
// started it ends.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// guard does nothing: the kernel watches.
func guard(int) (stop func()) { return func() {} }

// usersOf lists the processes whose command line names a folder.
func usersOf(dir string) (found []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(line, []byte(dir)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && pid != os.Getpid() {
			found = append(found, pid)
		}
	}
	return found
}
