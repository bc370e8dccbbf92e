package webdriver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// process is a driver, or the display that its browser needs. The kernel ends it with the thread that started it.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it is reaped
}

func startProcess(path string, args, env []string, dir string, files ...*os.File) (*process, error) {
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = append(os.Environ(), env...), dir, files
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = processAttributes()
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() { // ends with the process; stop waits for it
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		_ = cmd.Wait()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	return p, nil
}

// stop kills the process and its group, and waits until it is reaped.
func (p *process) stop() {
	if p == nil {
		return
	}
	select {
	case <-p.done:
		return
	default:
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

// freePort gives a port of the loopback that nobody listens on.
func freePort(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listening on the loopback: %w", err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// awaitReady waits until a driver answers on its address.
func (p *process) awaitReady(ctx context.Context, address string) error {
	client := &http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/status", nil)
		if err != nil {
			return fmt.Errorf("asking the driver: %w", err)
		}
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close()
			return nil
		}
		select {
		case <-p.done:
			return errors.New("the driver ended at once")
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// startDisplay starts an X server for a browser that needs one, and gives its DISPLAY.
func startDisplay(ctx context.Context, dir string) (*process, string, error) {
	path, err := exec.LookPath("Xvfb")
	if err != nil {
		return nil, "", errNoDisplay()
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, "", fmt.Errorf("making a pipe: %w", err)
	}
	defer r.Close()
	p, err := startProcess(path, []string{"-displayfd", "3", "-screen", "0", "1600x1200x24", "-nolisten", "tcp"}, nil, dir, w)
	w.Close()
	if err != nil {
		return nil, "", err
	}
	if end, ok := ctx.Deadline(); ok {
		_ = r.SetReadDeadline(end)
	}
	var number int
	if _, err := fmt.Fscan(r, &number); err != nil {
		p.stop()
		return nil, "", fmt.Errorf("the X server gave no display: %w", err)
	}
	return p, ":" + strconv.Itoa(number), nil
}
