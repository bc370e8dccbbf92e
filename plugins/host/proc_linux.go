package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// proc is a process as /proc told it: the same pid with another start is another process.
type proc struct {
	pid   int
	start uint64 // clock ticks since boot
	state byte   // as in proc(5): R, S, T, Z …
	uid   int
}

// identify reads one process (proc(5), stat).
func identify(pid int) (proc, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	data, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return proc{}, err
	}
	// The name, in brackets, may hold anything; what follows the last bracket begins with field 3.
	i := bytes.LastIndexByte(data, ')')
	fields := strings.Fields(string(data[i+1:]))
	if i < 0 || len(fields) < 20 {
		return proc{}, fmt.Errorf("process %d: unreadable stat", pid)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return proc{}, fmt.Errorf("process %d: %w", pid, err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return proc{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return proc{}, fmt.Errorf("process %d: no owner", pid)
	}
	return proc{pid: pid, start: start, state: fields[0][0], uid: int(st.Uid)}, nil
}

// processes lists the processes that can be read.
func processes() []proc {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []proc
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, err := identify(pid); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// read gives the parts of a file of the process that holds texts that end with a zero byte, or with a space where a browser
// has written its arguments as one text.
func (p proc) read(file string) []string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/" + file)
	if err != nil {
		return nil
	}
	parts := strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
	if len(parts) == 1 {
		parts = strings.Fields(parts[0])
	}
	return parts
}

func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// kill kills the process by a handle that cannot come to mean another one (pidfd_open(2)), if it is still the one that same
// tells, and waits for its end. It says whether it is gone.
func (p proc) kill(deadline time.Time, same func(proc) bool) bool {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	now, err := identify(p.pid)
	if err != nil || !same(now) || unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) != nil {
		return false
	}
	for {
		left := max(time.Until(deadline), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if !errors.Is(err, syscall.EINTR) {
			return err == nil && n > 0
		}
	}
}
