package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/providers/bidi"
	"github.com/droverhq/drover/providers/cdp"
)

// The test binary is every program that a test needs: drover itself, its provider, and a client for HTTP.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"drover":              main,
		"drover-provider-cdp": func() { plugins.Serve(cdp.New()) },
		"judged-bidi":         func() { plugins.Serve(bidi.New()) }, // not found by its name, so that other tests have one provider
		"broken":              serveBroken,
		"callhttp":            callHTTP,
	})
}

// patience is how long a test waits for what has to come.
const patience = 30 * time.Second

// eventually tries again and again until it succeeds, and fails the test when it never does.
func eventually(t testing.TB, within time.Duration, what string, try func() error) {
	t.Helper()
	if err := retry(within, try); err != nil {
		t.Fatalf("%s: not within %s: %v", what, within, err)
	}
}

func retry(within time.Duration, try func() error) error {
	deadline := time.Now().Add(within)
	for {
		err := try()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// homes are the folders of one test's user. The runtime folder is short, because a socket's path has to be.
type homes struct{ dir string }

func newHomes() (homes, error) {
	dir, err := os.MkdirTemp("", "drv")
	return homes{dir}, err
}

func (h homes) env() []string {
	return []string{
		"XDG_RUNTIME_DIR=" + h.dir, "XDG_STATE_HOME=" + filepath.Join(h.dir, "s"), "XDG_CONFIG_HOME=" + filepath.Join(h.dir, "c"),
		"XDG_CACHE_HOME=" + cacheHome, "XDG_DATA_HOME=" + filepath.Join(h.dir, "d"), "HOME=" + h.dir,
		"DROVER_CONFIG=", "DROVER_SOCKET=", "DROVER_SESSION=", "NO_COLOR=1", "GORACE=atexit_sleep_ms=0",
	}
}

// cacheHome is shared by all tests: the digest of the large test binary is computed once.
var cacheHome = filepath.Join(os.TempDir(), "drover-test-cache-"+strconv.Itoa(os.Getuid()))

func (h homes) socket() string { return filepath.Join(h.dir, "drover", "drover.sock") }

// info asks the daemon of these folders; errNoDaemon when none runs.
func (h homes) info() (*daemonInfo, error) {
	r, err := command(context.Background(), h.socket(), order{Do: doInfo})
	return r.Info, err
}

// processes lists the processes whose command line or environment names these folders.
func (h homes) processes() []string {
	dirs, _ := os.ReadDir("/proc")
	var out []string
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		args, _ := os.ReadFile(filepath.Join("/proc", d.Name(), "cmdline"))
		vars, _ := os.ReadFile(filepath.Join("/proc", d.Name(), "environ"))
		if len(args) > 0 && (bytes.Contains(args, []byte(h.dir)) || bytes.Contains(vars, []byte(h.dir))) {
			out = append(out, d.Name()+" "+string(bytes.ReplaceAll(args[:min(len(args), 80)], []byte{0}, []byte{' '})))
		}
	}
	return out
}

// gone says what is left of these folders' processes and run folders.
func (h homes) gone(folders bool) error {
	if ps := h.processes(); len(ps) > 0 {
		return fmt.Errorf("processes are left:\n%s", strings.Join(ps, "\n"))
	}
	if left := h.runs(); folders && len(left) > 0 {
		return fmt.Errorf("run folders are left: %v", left)
	}
	return nil
}

func (h homes) runs() []string {
	entries, _ := os.ReadDir(filepath.Join(h.dir, "drover", "r"))
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out
}

// end ends the daemon, if one runs, and everything of these folders; it says what would not go by itself.
func (h homes) end() error {
	if info, err := h.info(); err == nil {
		_ = syscall.Kill(info.PID, syscall.SIGTERM)
	}
	err := retry(patience, func() error { return h.gone(false) })
	for _, p := range h.processes() {
		pid, _ := strconv.Atoi(strings.Fields(p)[0])
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return errors.Join(err, os.RemoveAll(h.dir))
}

// setHomes gives a test folders of its own.
func setHomes(t *testing.T) homes {
	t.Helper()
	h, err := newHomes()
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range h.env() {
		k, v, _ := strings.Cut(kv, "=")
		t.Setenv(k, v)
	}
	t.Cleanup(func() {
		if err := h.end(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// site serves the pages that the tests look at.
func site(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/form":
			_, _ = io.WriteString(w, formPage)
		case "/cookie":
			http.SetCookie(w, &http.Cookie{Name: "who", Value: r.URL.Query().Get("who")})
			_, _ = io.WriteString(w, "<title>cookie</title>set")
		case "/seen":
			fmt.Fprintf(w, "<title>seen</title><p>cookies: %s.</p>", r.Header.Get("Cookie"))
		case "/never":
			<-r.Context().Done()
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.CloseClientConnections)
	t.Cleanup(s.Close)
	return s.URL
}

const formPage = `<!doctype html><title>Order form</title><h1>Order form</h1>
<form><label>Name <input id=who></label><label>Size <select><option>Small<option>Large</select></label><button>Place order</button></form>
<p id=out></p><input type=file id=file aria-label=Picture><button id=ask onclick="this.textContent = confirm('Sure?') ? 'Yes' : 'No'">Ask</button>
<script>
document.forms[0].onsubmit = (e) => { e.preventDefault(); setTimeout(() => { out.textContent = 'Thanks ' + who.value }, 100) }
file.onchange = () => { out.textContent = file.files[0].name + ' ' + file.files[0].size }
</script>`

// callHTTP is a client in scripts: callhttp READY-FILE TOKEN PATH [BODY] prints the status and the answer. TOKEN "own" is
// the one that the ready file names, "-" none.
func callHTTP() {
	status, body, err := httpCall(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(status)
	fmt.Print(body)
}

func httpCall(args []string) (status, answer string, err error) {
	data, err := os.ReadFile(args[0])
	if err != nil {
		return "", "", err
	}
	var ready struct {
		HTTP  string `json:"http"`
		Token string `json:"token_file"`
	}
	if err := json.Unmarshal(data, &ready); err != nil {
		return "", "", err
	}
	method, body := http.MethodGet, ""
	if len(args) > 3 {
		method, body = http.MethodPost, args[3]
	}
	req, err := http.NewRequest(method, ready.HTTP+args[2], strings.NewReader(body))
	if err != nil {
		return "", "", err
	}
	req.Header.Set("Content-Type", "application/json")
	token := args[1]
	if token == "own" {
		plain, err := os.ReadFile(ready.Token)
		if err != nil {
			return "", "", err
		}
		token = strings.TrimSpace(string(plain))
	}
	if token != "-" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = resp.Body.Close() }()
	out, err := io.ReadAll(resp.Body)
	return resp.Status, string(out), err
}
