package host

import (
	"errors"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes puts a provider into its own process group, so that a terminal's Ctrl-C does not reach it and its browsers can
// be killed with it, and has the kernel send it SIGTERM when the host is gone. The lifeline on stdin says the same; this is
// for a provider that does not read it, or is stopped: the kernel wakes stopped orphans.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

func lockThread()   { runtime.LockOSThread() }
func unlockThread() { runtime.UnlockOSThread() }

// awaitExit waits until a child has ended and leaves it a zombie.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
