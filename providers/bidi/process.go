package bidi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a browser, or the driver that started one, that this provider started. It cannot outlive the provider: the
// kernel, or a watcher, ends it with the thread that started it.
type process struct {
	cmd  *exec.Cmd
	temp string // a folder that goes with the process
	out  *lines
	done chan struct{} // closed when it is reaped and its folder is gone
	err  error         // why it ended; read it after done
}

// profilePrefix begins the name of every temporary folder; the provider's pid follows.
const profilePrefix = "drover-bidi-"

// makeFolder makes a temporary folder that sweep knows.
func makeFolder(runDir, kind string) (string, error) {
	dir, err := os.MkdirTemp(runDir, folderPrefix(kind))
	if err != nil {
		return "", fmt.Errorf("making a folder for the browser: %w", err)
	}
	return dir, nil
}

func folderPrefix(kind string) string { return profilePrefix + strconv.Itoa(os.Getpid()) + "-" + kind }

// startProcess starts a program that says on stdout or stderr where it listens: sign is what stands before the address.
// temp goes with the process, also when it does not start. The caller must end it with stop.
func startProcess(path string, args, env []string, temp, sign string) (*process, error) {
	p := &process{temp: temp, out: newLines(sign), done: make(chan struct{})}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = p.out, p.out
	cmd.Dir = temp
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = processAttributes()
	p.cmd = cmd
	started := make(chan error, 1)
	go p.run(started) // ends with the process; stop waits for it
	if err := <-started; err != nil {
		p.clean()
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	return p, nil
}

// run starts and reaps the process on one thread, because Linux sends the parent-death signal when the thread that
// started a child ends, not the process.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	stop := guard(p.cmd.Process.Pid)
	started <- nil
	p.err = p.cmd.Wait()
	killGroup(p.cmd.Process.Pid)
	stop()
	p.clean()
	close(p.done)
}

// address waits for the address that the program tells.
func (p *process) address(ctx context.Context) (string, error) {
	select {
	case a := <-p.out.found:
		return a, nil
	case <-p.done:
		return "", fmt.Errorf("it ended: %s", p.out.lastLine())
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// stop waits for the process to end by itself, for it was asked to, and kills it at the end of ctx. When it returns, the
// process is reaped and its folder is gone.
func (p *process) stop(ctx context.Context) {
	select {
	case <-p.done:
		return
	case <-ctx.Done():
	}
	killGroup(p.cmd.Process.Pid)
	<-p.done
}

// clean removes the folder. Helper processes of a killed browser may write for a moment longer.
func (p *process) clean() {
	if p.temp == "" {
		return
	}
	for range 80 {
		killUsers(p.temp)
		if err := os.RemoveAll(p.temp); err == nil {
			return
		}
		<-time.After(25 * time.Millisecond)
	}
}

// sweep removes temporary folders that a provider left behind that was killed, and ends what still runs on them. It
// touches no folder of a live process.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), profilePrefix)
		if !ok {
			continue
		}
		word, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(word)
		if err != nil || pid <= 0 || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		killUsers(path)
		_ = os.RemoveAll(path)
	}
}

// killGroup ends a process and its helpers, which share its process group.
func killGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL)
}

// killUsers ends the processes that run on a folder of ours, such as a browser whose driver was killed.
func killUsers(dir string) {
	for _, pid := range usersOf(dir) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// lines reads what a program says: it finds its address, and keeps the last bytes for messages.
type lines struct {
	sign  string
	found chan string

	mu   sync.Mutex
	part []byte
	tail bytes.Buffer
}

const tailSize = 16 << 10

func newLines(sign string) *lines { return &lines{sign: sign, found: make(chan string, 1)} }

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail.Write(b)
	if over := l.tail.Len() - tailSize; over > 0 {
		l.tail.Next(over)
	}
	if l.sign == "" {
		return len(b), nil
	}
	l.part = append(l.part, b...)
	for {
		line, rest, ok := bytes.Cut(l.part, []byte{'\n'})
		if !ok {
			break
		}
		l.part = rest
		if _, address, ok := strings.Cut(string(line), l.sign); ok {
			l.found <- strings.Trim(address, " .\r")
			l.sign, l.part = "", nil
			break
		}
	}
	return len(b), nil
}

// lastLine gives the last line that says something.
func (l *lines) lastLine() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := strings.Split(strings.TrimSpace(l.tail.String()), "\n")
	return strings.TrimSpace(all[len(all)-1])
}
