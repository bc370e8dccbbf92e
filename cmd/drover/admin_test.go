package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/policy"
)

// rules is a daemon under a config that the test can change, with callers by token.
type rules struct {
	t           *testing.T
	file, ready string
}

func underRules(t *testing.T, config string) *rules {
	t.Helper()
	r := &rules{t: t, file: filepath.Join(t.TempDir(), "live.hcl")}
	r.write(config)
	t.Setenv("DROVER_CONFIG", r.file)
	r.ready = startServe(t)
	return r
}

func (r *rules) write(config string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(config), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// reload puts another config in force.
func (r *rules) reload(config string) {
	r.t.Helper()
	r.write(config)
	if out, err := exec.Command("drover", "policy", "reload").CombinedOutput(); err != nil {
		r.t.Fatalf("reload: %v\n%s", err, out)
	}
}

func (r *rules) client(name string, labels ...string) *member {
	r.t.Helper()
	args := []string{"token", "new", name}
	for _, l := range labels {
		args = append(args, "--label", l)
	}
	out, err := exec.Command("drover", args...).Output()
	if err != nil {
		r.t.Fatal(err)
	}
	return &member{r.t, webCaller{r.ready, strings.TrimSpace(string(out))}}
}

// member is a caller whose calls have to come out as the test says.
type member struct {
	t *testing.T
	webCaller
}

func (c *member) must(method string, params m) m {
	c.t.Helper()
	result, failure, err := c.call(method, params)
	if err != nil || failure != nil {
		c.t.Fatalf("%s: %v %v", method, failure, err)
	}
	return result
}

// fails gives the details of an error, and its message with them.
func (c *member) fails(method string, params m, code, reason string) m {
	c.t.Helper()
	_, failure, err := c.call(method, params)
	details, _ := failure["details"].(m)
	if got, _ := details["reason"].(string); err != nil || failure["code"] != code || got != reason {
		c.t.Fatalf("%s: want %s/%s, got %v %v", method, code, reason, failure, err)
	}
	details["message"] = failure["message"]
	return details
}

// session makes a session, and gives its id and its provider.
func (c *member) session(name string) (id, provider string) {
	c.t.Helper()
	r := c.must("session.ensure", m{"client_session_id": name})
	return fmt.Sprint(r["session_id"]), fmt.Sprint(r["provider_id"])
}

// Guards what the label admin is for, on a running daemon with real processes: its client sees and closes the sessions of
// others, and drains and restarts providers; nobody else does, and is told by which block.
func TestAdminDrainsAndRestarts(t *testing.T) {
	setHomes(t)
	page := site(t)
	r := underRules(t, `
prefer = ["chrome", "spare"]
provider "chrome" {
  plugin = "cdp"
}
provider "spare" {
  plugin = "cdp"
}
client "ann" {
  labels = ["people"]
}`)
	boss, ann := r.client("boss", policy.AdminLabel), r.client("ann")
	s, provider := ann.session("a")
	if provider != "chrome" {
		t.Fatalf("the session is served by %s", provider)
	}
	ann.must("page.open", m{"session_id": s, "url": page + "/form"})

	for _, method := range []string{"provider.drain", "provider.restart"} {
		d := ann.fails(method, m{"provider_id": "chrome"}, "permission_denied", policy.ReasonPolicy)
		if d["where"] != r.file+":9" || d["rule"] != "client ann" {
			t.Errorf("%s is refused by %v", method, d)
		}
	}
	ann.fails("session.list", m{"all": true}, "permission_denied", policy.ReasonPolicy)
	boss.fails("page.snapshot", m{"session_id": s}, "session_not_found", "")
	if all := list(boss.must("session.list", m{"all": true})["sessions"]); len(all) != 1 || all[0]["session_id"] != s || all[0]["client"] != "ann" {
		t.Errorf("the admin sees %v", all)
	}

	boss.must("provider.restart", m{"provider_id": "chrome"})
	ann.fails("page.snapshot", m{"session_id": s}, "session_not_found", "session_lost")
	s, _ = ann.session("a")
	if r := boss.must("session.close", m{"session_id": s}); r["closed"] != true {
		t.Errorf("the admin closes a session: %v", r)
	}
	ann.fails("page.snapshot", m{"session_id": s}, "session_not_found", "")

	if r := boss.must("provider.drain", m{"provider_id": "chrome"}); r["drained"] != true {
		t.Errorf("drain says %v", r)
	}
	if _, provider = ann.session("b"); provider != "spare" {
		t.Errorf("while chrome is drained the session is served by %s", provider)
	}
	boss.must("provider.restart", m{"provider_id": "chrome"})
	if _, provider = ann.session("c"); provider != "chrome" {
		t.Errorf("after the restart the session is served by %s", provider)
	}
	boss.fails("provider.restart", m{"provider_id": "crome"}, "invalid_request", "")
}

// Guards the folders of the config: what lies outside is refused by the block that says so, what is downloaded goes where it
// says and stays there, and a reload that changes them counts for the next session without ending the one that is there.
func TestFolders(t *testing.T) {
	setHomes(t)
	up, down, other := t.TempDir(), filepath.Join(t.TempDir(), "new"), t.TempDir()
	for _, dir := range []string{up, other} {
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("abc"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><input type=file id=f><a href=/d download>get it</a>")
	})
	mux.HandleFunc("/d", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="d.txt"`)
		fmt.Fprint(w, "xyz")
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	config := "provider \"chrome\" {\n  plugin = \"cdp\"\n}\nfiles {\n  upload   = [%q]\n  download = %q\n}\n"
	r := underRules(t, fmt.Sprintf(config, up, down))
	ann := r.client("ann")
	s, _ := ann.session("a")
	ann.must("page.open", m{"session_id": s, "url": srv.URL})
	upload := func(s, dir string) m {
		return m{"session_id": s, "selector": "#f", "paths": []string{filepath.Join(dir, "a.txt")}}
	}
	d := ann.fails("upload.set_files", upload(s, other), "permission_denied", "path_refused")
	if d["rule"] != "files" || d["where"] != r.file+":4" || !strings.Contains(fmt.Sprint(d["message"]), up) {
		t.Errorf("the refusal is %v", d)
	}
	ann.must("upload.set_files", upload(s, up))
	ann.must("page.click", m{"session_id": s, "text_query": "get it"})
	got := list(ann.must("download.wait", m{"session_id": s})["downloads"])
	if len(got) != 1 || got[0]["path"] != filepath.Join(down, "d.txt") || got[0]["state"] != "complete" {
		t.Fatalf("the download is %v", got)
	}

	r.reload(fmt.Sprintf(config, other, down))
	ann.must("page.snapshot", m{"session_id": s})
	ann.must("upload.set_files", upload(s, up)) // the session that is there keeps what it was made with
	next, _ := ann.session("b")
	ann.must("page.open", m{"session_id": next, "url": srv.URL})
	ann.must("upload.set_files", upload(next, other))
	ann.fails("upload.set_files", upload(next, up), "permission_denied", "path_refused")
	for _, id := range []string{s, next} {
		ann.must("session.close", m{"session_id": id})
	}
	if data, err := os.ReadFile(filepath.Join(down, "d.txt")); err != nil || string(data) != "xyz" {
		t.Errorf("after the session the download is %q, %v", data, err)
	}
}

// A reload while 50 calls are under way at once, on a real browser, loses no call and no session, whatever it changes: rules,
// the order of providers, and the block of the very provider that serves them.
func TestReloadUnderLoadOnABrowser(t *testing.T) {
	setHomes(t)
	page := site(t)
	config := func(i int) string {
		return fmt.Sprintf("prefer = [%q]\nprovider \"chrome\" {\n  plugin = \"cdp\"\n  args = [\"--lang=e%c\"]\n}\nprovider \"spare\" {\n  plugin = \"cdp\"\n}\n"+
			"rule \"r%d\" {\n  when   = client.name == \"nobody%d\"\n  effect = \"deny\"\n}\n", []string{"chrome", "spare"}[i%2], 'a'+rune(i), i, i)
	}
	r := underRules(t, config(0))
	ann := r.client("ann")
	const sessions, each, reloads = 10, 5, 6
	var ids []string
	for i := range sessions {
		s, _ := ann.session(fmt.Sprint("s", i))
		ann.must("page.open", m{"session_id": s, "url": page + "/form"})
		ids = append(ids, s)
	}
	stop := make(chan struct{})
	var calls atomic.Int64
	var work sync.WaitGroup
	for i := range sessions * each {
		work.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				result, failure, err := ann.call("page.eval", m{"session_id": ids[i%sessions], "expression": "document.title"})
				if err != nil || failure != nil || result["value"] != "Order form" {
					t.Errorf("a call is lost: %v %v %v", result, failure, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	for i := range reloads {
		before := calls.Load()
		r.reload(config(i + 1))
		eventually(t, patience, "calls go on", func() error {
			if calls.Load() < before+sessions*each {
				return fmt.Errorf("%d calls since", calls.Load()-before)
			}
			return nil
		})
	}
	close(stop)
	work.Wait()
	if left := list(ann.must("session.list", m{})["sessions"]); len(left) != sessions {
		t.Errorf("%d sessions are left", len(left))
	}
	for _, s := range ids {
		ann.must("page.snapshot", m{"session_id": s})
		ann.must("session.close", m{"session_id": s})
	}
}

// A provider whose process is killed while it makes a session, or whose browser does not start, is left for the next one
// before anything was done; after some failures in a row it is held back, told to listeners, and tried again later. What
// was done on a page is never done elsewhere without a word.
func TestFailoverOnRealProcesses(t *testing.T) {
	setHomes(t)
	page := site(t)
	dir := t.TempDir()
	mode, flaky := filepath.Join(dir, "mode"), filepath.Join(dir, "flaky-chromium")
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\ncase \"$*\" in *--version*) exec " + browser + " \"$@\";; esac\ncase $(cat " + mode + ") in\nkill) kill -9 $PPID; exit 1;;\nfail) exit 1;;\nesac\nexec " + browser + " \"$@\"\n"
	if err := os.WriteFile(flaky, []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	set := func(word string) {
		if err := os.WriteFile(mode, []byte(word), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set("kill")
	r := underRules(t, fmt.Sprintf("prefer = [\"chrome\", \"spare\"]\nprovider \"chrome\" {\n  plugin  = \"cdp\"\n  browser = %q\n}\nprovider \"spare\" {\n  plugin = \"cdp\"\n}\n", flaky))
	ann := r.client("ann")
	heard := ann.listen("provider.state_changed")
	ensure := func(name string) (provider string, warned bool) {
		t.Helper()
		result, failure, w, err := ann.callWarned("session.ensure", m{"client_session_id": name})
		if err != nil || failure != nil {
			t.Fatalf("%s: %v %v", name, failure, err)
		}
		for _, x := range w {
			warned = warned || x["code"] == "provider_failover" && fmt.Sprint(x["details"]) != ""
		}
		return fmt.Sprint(result["provider_id"]), warned
	}
	for i, word := range []string{"kill", "fail", "fail", "fail"} {
		set(word)
		provider, warned := ensure(fmt.Sprint("s", i))
		if provider != "spare" || warned != (i < 3) {
			t.Errorf("session %d is served by %s, warned %t", i, provider, warned)
		}
	}
	heard("backoff")
	set("good")
	eventually(t, patience, "it is tried again", func() error {
		if provider, _ := ensure("later"); provider != "chrome" {
			ann.must("session.close", m{"session_id": ann.must("session.ensure", m{"client_session_id": "later"})["session_id"]})
			return fmt.Errorf("it is served by %s", provider)
		}
		return nil
	})
	s, _ := ann.session("later")
	ann.must("page.open", m{"session_id": s, "url": page + "/form"})
	pid := int(ann.must("provider.status", m{"provider_id": "chrome"})["pid"].(float64))
	if p, err := os.FindProcess(pid); err != nil || p.Kill() != nil {
		t.Fatalf("the provider's process %d: %v", pid, err)
	}
	eventually(t, patience, "the session is lost", func() error {
		_, failure, err := ann.call("page.snapshot", m{"session_id": s})
		details, _ := failure["details"].(m)
		if details["reason"] != "session_lost" || details["retry"] != "new_session" {
			return fmt.Errorf("%v %w", failure, err)
		}
		return nil
	})
}

// listen follows events of a type; the function waits until one tells of a state.
func (c *member) listen(kind string) func(state string) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	resp, err := c.stream(ctx, "/v1/events?types="+kind)
	if err != nil {
		c.t.Fatal(err)
	}
	lines := make(chan string, 100)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(lines)
		for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
			lines <- sc.Text()
		}
	})
	c.t.Cleanup(func() {
		cancel()
		_ = resp.Body.Close()
		reader.Wait()
	})
	return func(state string) {
		c.t.Helper()
		var all []string
		late := time.After(patience)
		for {
			select {
			case line, ok := <-lines:
				if !ok {
					c.t.Fatalf("the stream ended; it said %s", strings.Join(all, "\n"))
				}
				if all = append(all, line); strings.Contains(line, `"state":"`+state+`"`) {
					return
				}
			case <-late:
				c.t.Fatalf("no state %s is told; there was\n%s", state, strings.Join(all, "\n"))
			}
		}
	}
}
