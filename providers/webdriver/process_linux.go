package webdriver

import "syscall"

// processAttributes put the process into a group of its own and have the kernel end it with the thread that started it.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
