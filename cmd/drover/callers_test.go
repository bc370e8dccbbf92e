package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// web caller: one token on one daemon.
type webCaller struct {
	ready, token string
}

func (c webCaller) call(method string, params m) (result, failure m, err error) {
	result, failure, _, err = c.callWarned(method, params)
	return result, failure, err
}

func (c webCaller) callWarned(method string, params m) (result, failure m, warnings []m, err error) {
	body, err := json.Marshal(m{"protocol_version": "0.1", "id": 1, "method": method, "params": params})
	if err != nil {
		return nil, nil, nil, err
	}
	_, answer, err := httpCall([]string{c.ready, c.token, "/v1/call", string(body)})
	if err != nil {
		return nil, nil, nil, err
	}
	var r struct {
		Result, Error m
		Warnings      []m
	}
	err = json.Unmarshal([]byte(answer), &r)
	return r.Result, r.Error, r.Warnings, err
}

// stream opens a stream of events; the caller closes its body.
func (c webCaller) stream(ctx context.Context, path string) (*http.Response, error) {
	var ready struct {
		HTTP string `json:"http"`
	}
	data, err := os.ReadFile(c.ready)
	if err == nil {
		err = json.Unmarshal(data, &ready)
	}
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, ready.HTTP+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	return http.DefaultClient.Do(req)
}

// startServe starts `drover serve` with HTTP; the test's cleanup ends it.
func startServe(t *testing.T, more ...string) (ready string) {
	t.Helper()
	ready = filepath.Join(t.TempDir(), "ready.json")
	cmd := exec.Command("drover", append([]string{"serve", "--http", ":0", "--ready-file", ready, "--log-level", "error"}, more...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // one that has ended already hears nothing
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("drover serve: %v", err)
			}
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			t.Errorf("drover serve does not end: %v", <-done)
		}
	})
	eventually(t, patience, "the daemon is ready", func() error {
		_, _, err := httpCall([]string{ready, "-", "/livez"})
		return err
	})
	return ready
}

// Guards what a token is for: two callers on one broker who both call their session "a", at once, on one browser, see
// neither each other's cookies nor each other's sessions.
func TestTwoCallersNeverMeet(t *testing.T) {
	setHomes(t)
	page := site(t)
	ready := startServe(t)
	var callers []webCaller
	for _, name := range []string{"red", "blue"} {
		out, err := exec.Command("drover", "token", "new", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		callers = append(callers, webCaller{ready, strings.TrimSpace(string(out))})
	}
	ids, seen := make([]string, 2), make([]string, 2)
	var wg sync.WaitGroup
	for i, c := range callers {
		wg.Go(func() {
			mustCall := func(method string, params m) m {
				r, failure, err := c.call(method, params)
				if err != nil || failure != nil {
					t.Errorf("%s: %v %v", method, failure, err)
				}
				return r
			}
			ids[i] = fmt.Sprint(mustCall("session.ensure", m{"client_session_id": "a"})["session_id"])
			mustCall("page.open", m{"session_id": ids[i], "url": fmt.Sprintf("%s/cookie?who=%d", page, i)})
			mustCall("page.open", m{"session_id": ids[i], "url": page + "/seen"})
			seen[i] = fmt.Sprint(mustCall("page.snapshot", m{"session_id": ids[i]})["text"])
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	if ids[0] == ids[1] {
		t.Fatalf("both have the session %s", ids[0])
	}
	for i, c := range callers {
		if want := fmt.Sprintf("cookies: who=%d.", i); !strings.Contains(seen[i], want) {
			t.Errorf("caller %d saw %q, not %q", i, seen[i], want)
		}
		other := ids[1-i]
		for method, params := range map[string]m{
			"page.snapshot": {"session_id": other}, "page.open": {"session_id": other, "url": page + "/form"},
			"cookie.list": {"session_id": other}, "session.close": {"session_id": other},
			"provider.command": {"session_id": other, "provider_method": "cdp.send", "params": m{"method": "Page.enable"}},
		} {
			_, failure, err := c.call(method, params)
			if err != nil || failure["code"] != "session_not_found" {
				t.Errorf("%s on another caller's session: %v %v", method, failure, err)
			}
		}
		r, _, err := c.call("session.list", m{})
		if sessions := list(r["sessions"]); err != nil || len(sessions) != 1 || sessions[0]["session_id"] != ids[i] {
			t.Errorf("session.list of caller %d: %v %v", i, r, err)
		}
	}
}
