package cdp

import "syscall"

// processAttributes put the browser into a process group of its own and have the kernel kill it when the thread that
// started it ends.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
