package host

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

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

// withHandle opens a handle to a process and lets fn send signals through it.
func withHandle(pid int, fn func(send func(syscall.Signal) error) error) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return fn(func(s syscall.Signal) error { return unix.PidfdSendSignal(fd, s, nil, 0) })
}
