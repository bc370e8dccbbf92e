//go:build unix && !linux

package webdriver

import "syscall"

// processAttributes put the process into a group of its own.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
