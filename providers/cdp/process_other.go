//go:build unix && !linux

package cdp

import "syscall"

// processAttributes put the browser into a process group of its own. The debugging pipe ends it with the provider.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
