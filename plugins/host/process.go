package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"
)

// drainTime is how long after a process's end its output is still read. Something that got away from its process group may
// hold the pipes open for ever.
const drainTime = 500 * time.Millisecond

var _ runner.Runner = (*process)(nil)

// process is one provider process: go-plugin's runner, and the host's hold on it.
type process struct {
	name      string
	cmd       *exec.Cmd
	sockets   string // the folder that its socket must lie in; empty when mTLS guards it
	out, errs *pipeReader
	lifeline  *os.File // its stdin's other end

	exited chan struct{} // closed when the process has ended
	reaped chan struct{} // closed when it is no zombie any more and its group was killed

	mu     sync.Mutex
	pid    int  // 0 before the start
	doomed bool // it was to be killed before it had started
	done   bool // its pid may belong to another process by now
	status error
}

func newProcess(name, path string, args []string) *process {
	return &process{
		name:   name,
		cmd:    &exec.Cmd{Path: path, Args: append([]string{path}, args...)},
		exited: make(chan struct{}), reaped: make(chan struct{}),
	}
}

// Start starts the process with its own stdin, group and pipes. go-plugin calls it once.
func (p *process) Start(context.Context) error {
	stdin, lifeline, err := os.Pipe()
	if err != nil {
		return err
	}
	stdout, stdoutW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdin.Close(), lifeline.Close())
	}
	stderr, stderrW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdin.Close(), lifeline.Close(), stdout.Close(), stdoutW.Close())
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdoutW, stderrW
	p.cmd.SysProcAttr = attributes()
	p.out, p.errs, p.lifeline = &pipeReader{stdout}, &pipeReader{stderr}, lifeline

	started := make(chan error, 1)
	go p.own(started)
	err = <-started
	_, _, _ = stdin.Close(), stdoutW.Close(), stderrW.Close()
	if err != nil {
		_, _, _ = lifeline.Close(), stdout.Close(), stderr.Close()
	}
	return err
}

// own starts the process and waits for its end on one locked thread, because the kernel tells a child of the end of the
// thread that started it and not of the process (prctl(2), PR_SET_PDEATHSIG). When the process has ended its group is
// killed while the pid cannot be another's yet; only then is it reaped.
func (p *process) own(started chan<- error) {
	lockThread()
	defer unlockThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	pid := p.cmd.Process.Pid
	p.mu.Lock()
	p.pid = pid
	if p.doomed {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
	p.mu.Unlock()
	started <- nil
	awaitExit(pid)
	close(p.exited)

	p.mu.Lock()
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	p.status = p.cmd.Wait()
	p.done = true
	p.mu.Unlock()
	_ = p.lifeline.Close()
	time.AfterFunc(drainTime, func() { _, _ = p.out.Close(), p.errs.Close() })
	close(p.reaped)
}

// Wait waits for the end of the process.
func (p *process) Wait(context.Context) error {
	<-p.reaped
	return p.status
}

// Kill kills the process and its group for go-plugin.
func (p *process) Kill(context.Context) error {
	p.kill()
	return nil
}

// kill kills the process and its group at once, frozen or not, or as soon as it has started.
func (p *process) kill() {
	p.mu.Lock()
	p.doomed = true
	p.mu.Unlock()
	p.signal(-1, syscall.SIGKILL)
}

// terminate asks the process to shut down.
func (p *process) terminate() { p.signal(1, syscall.SIGTERM) }

// signal sends a signal to the process (sign 1) or its group (sign -1), unless it is gone.
func (p *process) signal(sign int, sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid != 0 && !p.done {
		_ = syscall.Kill(sign*p.pid, sig)
	}
}

// how says how the process ended, such as "signal: killed" or "exit status 1".
func (p *process) how() string {
	select {
	case <-p.reaped:
	default:
		return "still running"
	}
	if p.status == nil {
		return "exit status 0"
	}
	return p.status.Error()
}

// Stdout gives what the process writes to its stdout; the handshake is its first line.
func (p *process) Stdout() io.ReadCloser { return p.out }

// Stderr gives the log of the process.
func (p *process) Stderr() io.ReadCloser { return p.errs }

// Name is the provider's name; go-plugin logs under it.
func (p *process) Name() string { return p.name }

// ID is the process id; empty before the start.
func (p *process) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid == 0 {
		return ""
	}
	return strconv.Itoa(p.pid)
}

// Diagnose adds nothing: the error of a start has the tail of stderr.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost takes the address that the provider serves at. Without mTLS it must be a unix socket in the private folder.
func (p *process) PluginToHost(network, address string) (string, string, error) {
	if p.sockets == "" {
		return network, address, nil
	}
	if network != "unix" || !within(p.sockets, address) {
		return "", "", fmt.Errorf("without mTLS a provider must serve a unix socket in the folder that PLUGIN_UNIX_SOCKET_DIR names, not %s %s", network, address)
	}
	return network, address, nil
}

// HostToPlugin gives addresses as they are: both processes share the machine.
func (p *process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != "." && rel != ".." && !strings.HasPrefix(rel, "../")
}

// pipeReader reads a pipe and takes its closing for its end.
type pipeReader struct{ *os.File }

// Read gives EOF when the pipe was closed here.
func (r *pipeReader) Read(b []byte) (int, error) {
	n, err := r.File.Read(b)
	if errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed) {
		err = io.EOF
	}
	return n, err
}
