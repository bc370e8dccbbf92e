package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// talk is a conversation with `drover stdio`.
type talk struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	errs bytes.Buffer
	done chan struct{} // closed when the process has ended

	mu      sync.Mutex
	next    int
	waiting map[string]chan map[string]any
}

// startStdio starts `drover stdio`; the test's cleanup ends it.
func startStdio(t *testing.T) *talk {
	t.Helper()
	k := &talk{t: t, cmd: exec.Command("drover", "stdio", "--log-level", "error"), waiting: map[string]chan map[string]any{}, done: make(chan struct{})}
	k.cmd.Stderr = &k.errs
	var err error
	if k.in, err = k.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(k.done)
		k.read(out)
		_ = k.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = k.in.Close()
		select {
		case <-k.done:
		case <-time.After(patience):
			_ = k.cmd.Process.Kill()
			<-k.done
			t.Error("drover stdio did not end with its input")
		}
	})
	return k
}

func (k *talk) read(out io.Reader) {
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			k.t.Errorf("stdout is not JSON: %q", line)
			continue
		}
		k.mu.Lock()
		ch := k.waiting[fmt.Sprint(m["id"])]
		k.mu.Unlock()
		if ch != nil {
			ch <- m
		}
	}
}

// send sends a request and gives where its answer will come.
func (k *talk) send(method string, params map[string]any) <-chan map[string]any {
	k.t.Helper()
	k.mu.Lock()
	k.next++
	id := "r" + strconv.Itoa(k.next)
	ch := make(chan map[string]any, 1)
	k.waiting[id] = ch
	k.mu.Unlock()
	line, err := json.Marshal(map[string]any{"protocol_version": "0.1", "id": id, "method": method, "params": params})
	if err != nil {
		k.t.Fatal(err)
	}
	if _, err := k.in.Write(append(line, '\n')); err != nil {
		k.t.Fatal(err)
	}
	return ch
}

// answer waits for an answer: its result, or its error object.
func (k *talk) answer(ch <-chan map[string]any, within time.Duration) (result, failure map[string]any) {
	k.t.Helper()
	select {
	case m := <-ch:
		result, _ = m["result"].(map[string]any)
		failure, _ = m["error"].(map[string]any)
		return result, failure
	case <-k.done:
		k.t.Fatalf("drover stdio ended: %s", k.errs.String())
	case <-time.After(within):
		k.t.Fatalf("no answer within %s", within)
	}
	return nil, nil
}

// must calls a method that succeeds.
func (k *talk) must(method string, params map[string]any) map[string]any {
	k.t.Helper()
	result, failure := k.answer(k.send(method, params), patience)
	if failure != nil {
		k.t.Fatalf("%s: %v", method, failure)
	}
	return result
}

// fails calls a method that fails with this code and reason.
func (k *talk) fails(code, reason, method string, params map[string]any) {
	k.t.Helper()
	_, failure := k.answer(k.send(method, params), patience)
	wantError(k.t, failure, code, reason)
}

func wantError(t *testing.T, failure map[string]any, code, reason string) {
	t.Helper()
	details, _ := failure["details"].(map[string]any)
	if got, _ := details["reason"].(string); failure["code"] != code || reason != "" && got != reason {
		t.Fatalf("the error is %v, not %s/%s", failure, code, reason)
	}
}

type m = map[string]any

// Guards the main job over JSON lines on a real browser, with the draft's fields.
func TestStdioMainJob(t *testing.T) {
	h, page := setHomes(t), site(t)
	k := startStdio(t)
	s := k.must("session.ensure", m{"client_session_id": "a", "viewport": m{"width": 800, "height": 600}})
	if s["provider_id"] != "cdp" || s["created"] != true || s["browser_family"] != "chromium" {
		t.Fatalf("session.ensure: %v", s)
	}
	id := s["session_id"]
	open := k.must("page.open", m{"session_id": id, "url": page + "/form"})
	if open["title"] != "Order form" || open["navigation_state"] != "complete" || open["http_status"] != 200.0 || open["page_id"] == "" {
		t.Errorf("page.open: %v", open)
	}
	snap := k.must("page.snapshot", m{"session_id": id, "include_outline": true})
	tree, _ := snap["snapshot"].(m)
	if tree["format"] != "jcode.page_snapshot.v1" || tree["root"] == nil || len(list(snap["elements"])) < 4 {
		t.Errorf("page.snapshot: %v", snap)
	}
	outline, _ := snap["outline"].(string)
	ref := func(role, name string) string {
		found := regexp.MustCompile(role + ` "` + name + `"[^\n]*\[ref=([^\]]+)\]`).FindStringSubmatch(outline)
		if found == nil {
			t.Fatalf("no %s %q in\n%s", role, name, outline)
		}
		return found[1]
	}
	typed := k.must("page.type", m{"session_id": id, "element_ref": ref("textbox", "Name"), "text": "Ada"})
	if typed["typed"] != true || typed["value"] != "Ada" {
		t.Errorf("page.type: %v", typed)
	}
	box := k.must("page.eval", m{"session_id": id, "expression": "(() => { const r = document.querySelector('button').getBoundingClientRect(); return [r.x + 9, r.y + 9] })()"})
	at, _ := box["value"].([]any)
	for name, target := range map[string]m{
		"by ref": {"element_ref": ref("button", "Place order")}, "by selector": {"selector": "form button"},
		"by text": {"text_query": "Place order"}, "by position": {"position": m{"x": at[0], "y": at[1]}},
	} {
		k.must("page.eval", m{"session_id": id, "expression": "out.textContent = ''"})
		target["session_id"] = id
		if c := k.must("page.click", target); c["clicked"] != true {
			t.Errorf("page.click %s: %v", name, c)
		}
		if w := k.must("page.wait", m{"session_id": id, "text_present": "Thanks Ada"}); w["satisfied"] != true || w["matched_condition"] != "text_present" {
			t.Errorf("page.wait after the click %s: %v", name, w)
		}
	}
	shot := k.must("page.screenshot", m{"session_id": id})
	data, err := base64.StdEncoding.DecodeString(fmt.Sprint(shot["image"]))
	if err != nil {
		t.Fatal(err)
	}
	if img, err := png.Decode(bytes.NewReader(data)); err != nil || img.Bounds().Dx() != 800 || img.Bounds().Dy() != 600 {
		t.Errorf("page.screenshot is no picture of 800 by 600: %v", err)
	}
	if c := k.must("session.close", m{"session_id": id}); c["closed"] != true || c["disposition"] != "closed" {
		t.Errorf("session.close: %v", c)
	}
	k.fails("session_not_found", "", "page.snapshot", m{"session_id": id})
	_ = k.in.Close()
	<-k.done
	eventually(t, 2*time.Second, "everything is gone", func() error { return h.gone(true) })
}

// Guards what is left, and what the caller hears, when something is killed in the middle of a call.
func TestKilledInTheMiddleOfACall(t *testing.T) {
	page := site(t)
	for _, c := range []struct {
		name   string
		victim func(t *testing.T, h homes, k *talk) int
		broker bool
	}{
		{name: "provider", victim: func(t *testing.T, h homes, _ *talk) int { return find(t, h, "drover-provider-cdp") }},
		{name: "browser", victim: func(t *testing.T, h homes, _ *talk) int { return find(t, h, "/chromium --") }},
		{name: "broker", victim: func(_ *testing.T, _ homes, k *talk) int { return k.cmd.Process.Pid }, broker: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := setHomes(t)
			k := startStdio(t)
			id := k.must("session.ensure", m{"client_session_id": "a"})["session_id"]
			k.must("page.open", m{"session_id": id, "url": page + "/form"})
			flight := k.send("page.wait", m{"session_id": id, "text_present": "never", "timeout_ms": 20000})
			k.must("tab.list", m{"session_id": id}) // the wait was sent before it, so it is under way
			before := h.profiles(t)
			if len(before) == 0 {
				t.Fatal("there is no profile to look for afterwards")
			}
			if err := syscall.Kill(c.victim(t, h, k), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed := time.Now()
			if c.broker {
				<-k.done
				eventually(t, 2*time.Second, "nothing is left", func() error {
					if left := h.profiles(t); len(left) > 0 {
						return fmt.Errorf("profiles are left: %v", left)
					}
					return h.gone(false)
				})
				return
			}
			_, failure := k.answer(flight, time.Second)
			if took := time.Since(killed); took > time.Second {
				t.Errorf("the call failed after %s", took)
			}
			wantError(t, failure, "browser_not_running", "")
			k.fails("session_not_found", "session_lost", "page.snapshot", m{"session_id": id})
			again := k.must("session.ensure", m{"client_session_id": "a"})
			if again["created"] != true || again["session_id"] == id {
				t.Errorf("session.ensure afterwards: %v", again)
			}
			eventually(t, 2*time.Second, "the old profile is gone", func() error {
				for _, p := range h.profiles(t) {
					if strings.Contains(strings.Join(before, "\n"), p) {
						return fmt.Errorf("%s is left", p)
					}
				}
				return nil
			})
			k.must("page.open", m{"session_id": again["session_id"], "url": page + "/form"})
		})
	}
}

// find gives the process of these folders whose command line has this word, and that is no browser's helper.
func find(t *testing.T, h homes, word string) int {
	t.Helper()
	for _, p := range h.processes() {
		if strings.Contains(p, word) && !strings.Contains(p, "--type=") {
			pid, err := strconv.Atoi(strings.Fields(p)[0])
			if err != nil || pid <= 1 {
				t.Fatalf("no pid: %s", p)
			}
			return pid
		}
	}
	t.Fatalf("no process with %q in\n%s", word, strings.Join(h.processes(), "\n"))
	return 0
}

// profiles lists the browser profiles, and what else providers made for their browsers, below these folders.
func (h homes) profiles(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(h.dir, "drover", "r", "*", "*", "files", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Guards the end by a signal: at once, with everything.
func TestStdioEndsOnSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			h := setHomes(t)
			k := startStdio(t)
			id := k.must("session.ensure", m{"client_session_id": "a"})["session_id"]
			k.send("page.wait", m{"session_id": id, "text_present": "never", "timeout_ms": 20000})
			k.must("tab.list", m{"session_id": id})
			if err := k.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			select {
			case <-k.done:
			case <-time.After(6 * time.Second):
				t.Fatal("it is still there")
			}
			if !k.cmd.ProcessState.Success() {
				t.Errorf("it ended with %s", k.cmd.ProcessState)
			}
			eventually(t, 2*time.Second, "everything is gone", func() error { return h.gone(true) })
		})
	}
}
