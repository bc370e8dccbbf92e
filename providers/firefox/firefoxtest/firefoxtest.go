// Package firefoxtest starts a real Firefox as a person's: headless, with a home and a profile of its own, a native manifest in that
// home, and an add-on that is installed for the moment through WebDriver BiDi. Tests alone use it.
package firefoxtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

// Options say what the Firefox is like.
type Options struct {
	// Runtime is the XDG_RUNTIME_DIR of Firefox and its native hosts; the provider under test has the same.
	Runtime string
	// Apps are native apps by name, with the ids of the add-ons that may ask for them; all of them are Host.
	Apps map[string][]string
	// Host is the native messaging host's binary.
	Host string
	// Addon is the folder of the add-on, or its xpi; "" for none.
	Addon string
	// Home is a home folder that is there already, with what a set-up wrote into it; "" for a new one.
	Home string
	// Prefs are further preferences, by name.
	Prefs map[string]any
	// Env is further environment.
	Env []string
}

// Firefox is a running one.
type Firefox struct {
	Home, Profile string
	// Address is where WebDriver BiDi listens.
	Address string
	cmd     *exec.Cmd
	conn    *websocket.Conn
	last    int
	addon   string // its id
	folder  string
	drained sync.WaitGroup
}

const startTime = 40 * time.Second

var prefs = map[string]any{
	"browser.shell.checkDefaultBrowser": false, "datareporting.policy.dataSubmissionEnabled": false, "app.update.enabled": false,
	"extensions.update.enabled": false, "network.captive-portal-service.enabled": false, "network.connectivity-service.enabled": false,
	"app.normandy.enabled": false, "browser.startup.page": 0, "browser.newtabpage.enabled": false, "browser.aboutwelcome.enabled": false,
	"toolkit.telemetry.enabled": false, "browser.safebrowsing.downloads.remote.enabled": false, "browser.contentblocking.report.lockwise.enabled": false,
}

// Start starts Firefox, and waits until its add-on is installed. Close has to be called.
func Start(ctx context.Context, o Options) (_ *Firefox, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	home, err := os.MkdirTemp("", "drover-fx-")
	if err != nil {
		return nil, err
	}
	f := &Firefox{Home: home, Profile: filepath.Join(home, "profile"), folder: o.Addon}
	if o.Home != "" {
		home = o.Home
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if err := f.prepare(o); err != nil {
		return nil, err
	}
	f.cmd = exec.Command("firefox-esr", "--headless", "--no-remote", "--remote-debugging-port=0", "--remote-allow-system-access", "--profile", f.Profile, "about:blank") //nolint:noctx // it outlives the start
	f.cmd.Env = append(os.Environ(), "HOME="+home, "MOZ_CRASHREPORTER_DISABLE=1", "XDG_RUNTIME_DIR="+o.Runtime)
	f.cmd.Env = append(f.cmd.Env, o.Env...)
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := f.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := f.cmd.Start(); err != nil {
		f.cmd = nil
		return nil, err
	}
	address := make(chan string, 1)
	f.drained.Go(func() { listen(out, address) })
	select {
	case at := <-address:
		f.Address = at
		f.conn, _, err = websocket.Dial(ctx, at+"/session", nil)
	case <-ctx.Done():
		err = errors.New("firefox did not say where it listens")
	}
	if err != nil {
		return nil, err
	}
	f.conn.SetReadLimit(64 << 20)
	if _, err := f.Command(ctx, "session.new", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"unhandledPromptBehavior": map[string]any{"default": "ignore"}, // dialogs are the person's
	}}}); err != nil {
		return nil, err
	}
	if o.Addon == "" {
		return f, nil
	}
	return f, f.Install(ctx)
}

// listen looks for the address in what Firefox prints, and reads on so that it never waits.
func listen(r io.Reader, address chan<- string) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if i := strings.Index(lines.Text(), "ws://"); i >= 0 {
			select {
			case address <- strings.TrimSpace(lines.Text()[i:]):
			default:
			}
		}
	}
	_, _ = io.Copy(io.Discard, r)
}

// prepare writes the home.
func (f *Firefox) prepare(o Options) error {
	manifests := filepath.Join(f.Home, ".mozilla", "native-messaging-hosts")
	for _, dir := range []string{f.Profile, manifests} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	for app, ids := range o.Apps {
		data, err := json.Marshal(map[string]any{
			"name": app, "description": "Drover under test", "path": o.Host, "type": "stdio", "allowed_extensions": ids,
		})
		if err == nil {
			err = os.WriteFile(filepath.Join(manifests, app+".json"), data, 0o600)
		}
		if err != nil {
			return err
		}
	}
	var user strings.Builder
	for _, list := range []map[string]any{prefs, o.Prefs} {
		for name, value := range list {
			text, err := json.Marshal(value)
			if err != nil {
				return err
			}
			fmt.Fprintf(&user, "user_pref(%q, %s);\n", name, text)
		}
	}
	return os.WriteFile(filepath.Join(f.Profile, "user.js"), []byte(user.String()), 0o600)
}

// Command sends a command of WebDriver BiDi and gives its result.
func (f *Firefox) Command(ctx context.Context, method string, params any) (json.RawMessage, error) {
	f.last++
	if err := wsjson.Write(ctx, f.conn, map[string]any{"id": f.last, "method": method, "params": params}); err != nil {
		return nil, err
	}
	for {
		var m struct {
			ID      int             `json:"id"`
			Type    string          `json:"type"`
			Result  json.RawMessage `json:"result"`
			Message string          `json:"message"`
		}
		if err := wsjson.Read(ctx, f.conn, &m); err != nil {
			return nil, err
		}
		if m.ID != f.last {
			continue
		}
		if m.Type == "error" {
			return nil, fmt.Errorf("%s: %s", method, m.Message)
		}
		return m.Result, nil
	}
}

// Install installs the add-on for the moment.
func (f *Firefox) Install(ctx context.Context) error {
	kind := "path"
	if strings.HasSuffix(f.folder, ".xpi") {
		kind = "archivePath"
	}
	data, err := f.Command(ctx, "webExtension.install", map[string]any{"extensionData": map[string]any{"type": kind, "path": f.folder}})
	if err != nil {
		return err
	}
	var got struct {
		Extension string `json:"extension"`
	}
	if err := json.Unmarshal(data, &got); err != nil {
		return err
	}
	f.addon = got.Extension
	return nil
}

// Uninstall takes the add-on away.
func (f *Firefox) Uninstall(ctx context.Context) error {
	_, err := f.Command(ctx, "webExtension.uninstall", map[string]any{"extension": f.addon})
	return err
}

// Release ends the tests' own session of WebDriver BiDi, so that somebody else can have the one that Firefox gives.
func (f *Firefox) Release(ctx context.Context) error {
	_, err := f.Command(ctx, "session.end", map[string]any{})
	_ = f.conn.CloseNow()
	f.conn = nil
	return err
}

// Pid is its process.
func (f *Firefox) Pid() int { return f.cmd.Process.Pid }

// Kill ends it and everything that it started, as a crash would.
func (f *Firefox) Kill() {
	if f.cmd == nil {
		return
	}
	_ = syscall.Kill(-f.cmd.Process.Pid, syscall.SIGKILL) // its own group
	_ = f.cmd.Wait()
	f.drained.Wait()
	f.cmd = nil
}

// Close ends it and removes its home.
func (f *Firefox) Close() {
	if f.conn != nil {
		_ = f.conn.CloseNow()
	}
	f.Kill()
	_ = os.RemoveAll(f.Home)
}

// Build builds a command of this module into a folder and gives its path.
func Build(ctx context.Context, pkg, dir string) (string, error) {
	path := filepath.Join(dir, filepath.Base(pkg))
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, pkg).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building %s: %w: %s", pkg, err, out)
	}
	return path, nil
}
