package cdp

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

// product is a browser that was found on this machine.
type product struct {
	path, label, version string
	name                 string // the word of browser_preference and of the config's channel
}

// candidate is where a product is looked for: commands on the PATH, then files.
type candidate struct {
	name, label string
	commands    []string
	files       []string
}

// candidates are in the order in which they are preferred.
var candidates = []candidate{
	{"chromium", "Chromium", []string{"chromium", "chromium-browser"}, []string{"/usr/lib/chromium/chromium", "/snap/bin/chromium", "/Applications/Chromium.app/Contents/MacOS/Chromium"}},
	{"chrome", "Google Chrome", []string{"google-chrome", "google-chrome-stable", "chrome"}, []string{"/opt/google/chrome/chrome", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"}},
	{"edge", "Microsoft Edge", []string{"microsoft-edge", "microsoft-edge-stable"}, []string{"/opt/microsoft/msedge/msedge", "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge"}},
	{"brave", "Brave", []string{"brave-browser", "brave"}, []string{"/opt/brave.com/brave/brave"}},
	{"headless-shell", "Chrome Headless Shell", []string{"chrome-headless-shell", "headless_shell", "headless-shell"}, nil},
}

// search lists the products on this machine, the preferred one first. It starts nothing.
func search() []product {
	var found []product
	for _, c := range candidates {
		if path := c.look(); path != "" {
			found = append(found, product{path: path, label: c.label, name: c.name})
		}
	}
	return found
}

func (c candidate) look() string {
	for _, command := range c.commands {
		if path, err := exec.LookPath(command); err == nil {
			return path
		}
	}
	for _, path := range c.files {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// at gives the product at a path, by its file's name.
func at(path string) product {
	base := strings.ToLower(filepath.Base(path))
	for _, c := range candidates {
		for _, command := range c.commands {
			if base == command {
				return product{path: path, label: c.label, name: c.name}
			}
		}
	}
	return product{path: path, label: "Chromium", name: "chromium"}
}

var versionPattern = regexp.MustCompile(`\d+(\.\d+)+`)

// versions keeps what binaries said of themselves, by path and time of change.
var versions sync.Map

// ask fills in the version by running the browser with --version, which takes about a tenth of a second the first time.
func (f *product) ask(ctx context.Context) {
	if f.version != "" || runtime.GOOS == "windows" {
		return
	}
	key := f.path
	if info, err := os.Stat(f.path); err == nil {
		key += info.ModTime().String()
	}
	if v, ok := versions.Load(key); ok {
		f.version, _ = v.(string)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.path, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return
	}
	f.version = versionPattern.FindString(string(out))
	versions.Store(key, f.version)
}

// fromUserAgent takes the version from what a running browser says, such as Chrome/156.0.8078.114.
func (f *product) fromUserAgent(text string) {
	if v := versionPattern.FindString(text); v != "" {
		f.version = v
	}
}
