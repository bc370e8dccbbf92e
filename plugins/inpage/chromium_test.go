package inpage_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The tests drive a real Chromium over its debugging pipe. One browser and one server serve them all.
var (
	browser *chromium
	site    *httptest.Server
)

func TestMain(m *testing.M) {
	site = httptest.NewServer(http.HandlerFunc(page))
	var err error
	if browser, err = launch(); err != nil {
		fmt.Fprintln(os.Stderr, "a Chromium is needed:", err)
		os.Exit(1)
	}
	code := m.Run()
	browser.close()
	site.Close()
	os.Exit(code)
}

// message is one of the protocol's, both ways.
type message struct {
	ID        int             `json:"id,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

type chromium struct {
	cmd  *exec.Cmd
	dir  string
	out  *os.File
	done chan struct{}

	mu      sync.Mutex
	last    int
	waiting map[int]chan message
	hear    map[string]func(message) // by session id
}

func launch() (*chromium, error) {
	dir, err := os.MkdirTemp("", "inpage-test-")
	if err != nil {
		return nil, err
	}
	toBrowser, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	in, fromBrowser, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &chromium{dir: dir, out: out, done: make(chan struct{}), waiting: map[int]chan message{}, hear: map[string]func(message){}}
	c.cmd = exec.Command("chromium", "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-quic",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--site-per-process",
		"--user-data-dir="+dir, "--window-size=1000,700", "about:blank")
	c.cmd.ExtraFiles = []*os.File{toBrowser, fromBrowser}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	_ = toBrowser.Close()
	_ = fromBrowser.Close()
	go c.read(in)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := c.send(ctx, "", "Browser.getVersion", nil, nil); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *chromium) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = c.send(ctx, "", "Browser.close", nil, nil)
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	_ = c.cmd.Wait()
	_ = c.out.Close()
	_ = os.RemoveAll(c.dir)
}

func (c *chromium) read(in *os.File) {
	defer close(c.done)
	defer func() { _ = in.Close() }()
	r := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			continue
		}
		c.mu.Lock()
		wait, hear := c.waiting[m.ID], c.hear[m.SessionID]
		if m.ID != 0 {
			delete(c.waiting, m.ID)
		}
		c.mu.Unlock()
		if m.ID != 0 {
			if wait != nil {
				wait <- m
			}
		} else if hear != nil {
			hear(m)
		}
	}
}

// start sends a command and gives the channel of its answer.
func (c *chromium) start(session, method string, params any) (chan message, error) {
	if params == nil {
		params = struct{}{}
	}
	p, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	answer := make(chan message, 1)
	c.waiting[c.last] = answer
	line, err := json.Marshal(message{ID: c.last, Method: method, Params: p, SessionID: session})
	if err != nil {
		return nil, err
	}
	_, err = c.out.Write(append(line, 0))
	return answer, err
}

func (c *chromium) send(ctx context.Context, session, method string, params, out any) error {
	answer, err := c.start(session, method, params)
	if err != nil {
		return err
	}
	return c.await(ctx, method, answer, out)
}

func (c *chromium) await(ctx context.Context, method string, answer chan message, out any) error {
	select {
	case m := <-answer:
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if out == nil {
			return nil
		}
		return json.Unmarshal(m.Result, out)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.done:
		return errors.New("the browser is gone")
	}
}
