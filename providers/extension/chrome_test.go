package extension

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// chrome is a real headless Chromium with an extension, driven over its debugging port as a person would use it.
type chrome struct {
	t   testing.TB
	ext string // the extension's id

	conn *websocket.Conn
	mu   sync.Mutex
	next int64
	wait map[int64]chan message
}

// startChrome starts a browser with an unpacked extension.
func startChrome(t testing.TB, extension string, more ...string) *chrome {
	t.Helper()
	profile, err := os.MkdirTemp("", "drover-ext-test-")
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir=" + profile, "--remote-debugging-port=0", "--window-size=1280,900",
		"--load-extension=" + extension, "--disable-features=DisableLoadExtensionCommandLineSwitch,LocalNetworkAccessChecks", "--silent-debugger-extension-api",
	}, more...)
	cmd := exec.Command("chromium", append(args, "about:blank")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	c := &chrome{t: t, wait: map[int64]chan message{}}
	readerDone := make(chan struct{})
	close(readerDone)
	t.Cleanup(func() {
		if c.conn != nil {
			_ = c.conn.CloseNow()
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		<-readerDone
		for range 40 { // helper processes write for a moment longer
			if os.RemoveAll(profile) == nil {
				break
			}
			<-time.After(25 * time.Millisecond)
		}
	})
	address := ""
	eventually(t, "chromium's debugging port", func() bool {
		f, err := os.Open(filepath.Join(profile, "DevToolsActivePort"))
		if err != nil {
			return false
		}
		defer f.Close()
		in := bufio.NewScanner(f)
		var lines []string
		for in.Scan() {
			lines = append(lines, in.Text())
		}
		if len(lines) < 2 {
			return false
		}
		address = "ws://127.0.0.1:" + lines[0] + lines[1]
		return true
	})
	conn, _, err := websocket.Dial(t.Context(), address, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	c.conn = conn
	readerDone = make(chan struct{})
	go func() { defer close(readerDone); c.read() }()
	eventually(t, "the extension's worker", func() bool { return c.worker() != "" })
	return c
}

func (c *chrome) read() {
	for {
		_, data, err := c.conn.Read(context.Background())
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(data, &m) != nil || m.ID == 0 {
			continue
		}
		c.mu.Lock()
		ch := c.wait[m.ID]
		delete(c.wait, m.ID)
		c.mu.Unlock()
		if ch != nil {
			ch <- m
		}
	}
}

// call sends a command and reads its result into out.
func (c *chrome) call(session, method string, params, out any) error {
	c.mu.Lock()
	c.next++
	id, ch := c.next, make(chan message, 1)
	c.wait[id] = ch
	c.mu.Unlock()
	data, err := json.Marshal(map[string]any{"id": id, "sessionId": session, "method": method, "params": params})
	if session == "" {
		data, err = json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	}
	if err != nil {
		return err
	}
	if err := c.conn.Write(context.Background(), websocket.MessageText, data); err != nil {
		return err
	}
	select {
	case m := <-ch:
		if m.Error != nil {
			return errors.New(m.Error.Message)
		}
		if out != nil {
			return json.Unmarshal(m.Result, out)
		}
		return nil
	case <-time.After(20 * time.Second):
		return fmt.Errorf("%s: no answer", method)
	}
}

func (c *chrome) must(session, method string, params, out any) {
	c.t.Helper()
	if err := c.call(session, method, params, out); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

type targetInfo struct {
	ID   string `json:"targetId"`
	Type string `json:"type"`
	URL  string `json:"url"`
}

func (c *chrome) targets() []targetInfo {
	var res struct {
		Infos []targetInfo `json:"targetInfos"`
	}
	if err := c.call("", "Target.getTargets", map[string]any{"filter": []map[string]any{{}}}, &res); err != nil {
		return nil
	}
	return res.Infos
}

// worker gives the target of the extension's worker, and learns the extension's id.
func (c *chrome) worker() string {
	for _, i := range c.targets() {
		if i.Type == "service_worker" && strings.HasPrefix(i.URL, "chrome-extension://") {
			c.ext = strings.Split(i.URL, "/")[2]
			return i.ID
		}
	}
	return ""
}

// killWorker ends the extension's worker, as the browser does when it has been idle.
func (c *chrome) killWorker() {
	c.t.Helper()
	c.must("", "Target.closeTarget", map[string]any{"targetId": c.worker()}, nil)
}

// open opens a page in a tab of its own and gives its session.
func (c *chrome) open(url string) string {
	c.t.Helper()
	var made struct {
		ID string `json:"targetId"`
	}
	c.must("", "Target.createTarget", map[string]any{"url": url}, &made)
	return c.attach(made.ID)
}

func (c *chrome) attach(target string) string {
	c.t.Helper()
	var at struct {
		ID string `json:"sessionId"`
	}
	c.must("", "Target.attachToTarget", map[string]any{"targetId": target, "flatten": true}, &at)
	return at.ID
}

// page opens a page of the extension.
func (c *chrome) page(name string) string {
	c.t.Helper()
	return c.open("chrome-extension://" + c.ext + "/" + name)
}

// eval evaluates in a page and gives the value.
func (c *chrome) eval(session, expression string) any {
	c.t.Helper()
	v, err := c.tryEval(session, expression)
	if err != nil {
		c.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

func (c *chrome) tryEval(session, expression string) (any, error) {
	var res struct {
		Result struct {
			Value any `json:"value"`
		} `json:"result"`
		Wrong *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	err := c.call(session, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}, &res)
	if err == nil && res.Wrong != nil {
		err = errors.New(res.Wrong.Text + " " + res.Wrong.Exception.Description)
	}
	return res.Result.Value, err
}

// until waits until an expression is true in a page.
func (c *chrome) until(session, expression string) {
	c.t.Helper()
	eventually(c.t, expression, func() bool { v, err := c.tryEval(session, expression); return err == nil && v == true })
}

// eventually waits for something that happens in another process.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(40 * time.Second)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// pair pairs the browser as a person does: on the pairing page, then in the popup.
func (c *chrome) pair(base, transport string) (page, popup string) {
	c.t.Helper()
	page = c.open(base + "/pair")
	c.until(page, `document.getElementById('state')?.dataset.state === 'installed'`)
	c.eval(page, `document.querySelector('input[value="`+transport+`"]').checked = true, document.getElementById('connect').click(), true`)
	c.until(page, `document.getElementById('state').dataset.state === 'offered'`)
	popup = c.page("popup.html")
	c.until(popup, `document.readyState === 'complete' && !!document.getElementById('pairCard') && !document.getElementById('pairCard').hidden`)
	c.eval(popup, `document.getElementById('pairAcceptBtn').click(), true`)
	c.until(page, `document.getElementById('state').dataset.state === 'connected'`)
	return page, popup
}
