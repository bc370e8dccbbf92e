package cdp

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

	"github.com/chromedp/chromedp"
)

// process is a browser that this provider started, on a debugging pipe: when either end of the pipe goes, the browser
// ends by itself, so it cannot outlive the provider.
type process struct {
	cmd    *exec.Cmd
	dir    string // the profile
	temp   bool   // dir goes with the process
	tmp    string // its temporary folder; empty where that is everybody's
	stderr *tail
	done   chan struct{} // closed when it is reaped and a temporary profile is gone
	err    error         // why it ended; read it after done
}

// profilePrefix begins the name of every temporary profile; the provider's pid follows.
const profilePrefix = "drover-cdp-"

// startProcess starts a browser with its own profile and gives the connection to it. dir is the profile to use, or ""
// for a temporary one below runDir. The caller must end it with stop.
func startProcess(path string, args []string, dir, runDir string) (*process, chromedp.Transport, error) {
	p := &process{dir: dir, stderr: &tail{max: 16 << 10}, done: make(chan struct{})}
	if dir == "" {
		made, err := os.MkdirTemp(runDir, profilePrefix+strconv.Itoa(os.Getpid())+"-")
		if err != nil {
			return nil, nil, fmt.Errorf("making a profile folder: %w", err)
		}
		p.dir, p.temp = made, true
	}
	p.tmp = makeTemporary(runDir)
	childR, parentW, err := os.Pipe()
	if err != nil {
		p.clean()
		return nil, nil, fmt.Errorf("making the debugging pipe: %w", err)
	}
	parentR, childW, err := os.Pipe()
	if err != nil {
		p.clean()
		return nil, nil, errors.Join(fmt.Errorf("making the debugging pipe: %w", err), childR.Close(), parentW.Close())
	}
	cmd := exec.Command(path, append(args, "--user-data-dir="+p.dir)...)
	cmd.ExtraFiles = []*os.File{childR, childW} // descriptors 3 and 4, as --remote-debugging-pipe wants them
	cmd.Stderr = p.stderr
	if cmd.Env, err = withoutHandlers(os.Environ(), p.dir); err != nil {
		p.clean()
		return nil, nil, errors.Join(err, childR.Close(), childW.Close(), parentR.Close(), parentW.Close())
	}
	cmd.Env = inTemporary(cmd.Env, p.tmp)
	cmd.Dir = p.dir
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = processAttributes()
	p.cmd = cmd
	started := make(chan error, 1)
	go p.run(started) // ends with the browser; stop waits for it
	err = <-started
	childR.Close()
	childW.Close()
	if err != nil {
		parentR.Close()
		parentW.Close()
		p.clean()
		return nil, nil, fmt.Errorf("starting %s: %w", path, err)
	}
	return p, chromedp.NewPipeConn(parentR, parentW), nil
}

// run starts and reaps the browser on one thread, because Linux sends the parent-death signal when the thread that
// started a child ends, not the process.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	killGroup(p.cmd.Process.Pid)
	p.clean()
	close(p.done)
}

// stop waits for the browser to end by itself, for its pipe was closed or it was asked to, and kills it at the end of
// ctx. When it returns, the process is reaped and a temporary profile is gone.
func (p *process) stop(ctx context.Context) {
	select {
	case <-p.done:
		return
	case <-ctx.Done():
	}
	killGroup(p.cmd.Process.Pid)
	<-p.done
}

// clean removes the temporary folder and a temporary profile. Helper processes of a killed browser may write for a moment
// longer.
func (p *process) clean() {
	if p.temp {
		remove(p.dir)
	}
	if p.tmp != "" {
		remove(p.tmp)
	}
}

func remove(dir string) {
	pause := time.NewTicker(25 * time.Millisecond)
	defer pause.Stop()
	for range 40 {
		if err := os.RemoveAll(dir); err == nil {
			return
		}
		<-pause.C
	}
}

// sweep removes temporary profiles that a provider left behind that was killed. It touches no folder of a live process.
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
		_ = os.RemoveAll(filepath.Join(dir, e.Name()))
	}
}

// killGroup ends a browser and its helpers, which share its process group.
func killGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL)
}

// tail keeps the last bytes that were written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
	max int
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(b)
	if over := t.buf.Len() - t.max; over > 0 {
		t.buf.Next(over)
	}
	return len(b), nil
}

// lastLine gives the last line that says something.
func (t *tail) lastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(t.buf.String()), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
