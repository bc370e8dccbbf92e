package bidi

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

	"github.com/droverhq/drover/proto/fault"
)

const (
	familyFirefox  = "firefox"
	familyChromium = "chromium"
)

// product is a browser that was found on this machine, with the driver that it needs.
type product struct {
	path, label, version string
	name                 string // the word of browser_preference and of the config
	family               string
	driver               string // "" for Firefox, which needs none
}

// candidate is where a product is looked for: commands on the PATH, then files.
type candidate struct {
	family, name, label string
	commands, files     []string
	drivers             []string // any of these must be on the PATH
}

// candidates are in the order in which they are preferred.
var candidates = []candidate{
	{familyFirefox, "firefox", "Firefox", []string{"firefox-esr", "firefox", "firefox-developer-edition"}, []string{"/usr/lib/firefox-esr/firefox-esr", "/usr/lib/firefox/firefox", "/snap/bin/firefox", "/opt/firefox/firefox", "/Applications/Firefox.app/Contents/MacOS/firefox"}, nil},
	{familyChromium, "chromium", "Chromium", []string{"chromium", "chromium-browser"}, []string{"/usr/lib/chromium/chromium", "/Applications/Chromium.app/Contents/MacOS/Chromium"}, []string{"chromedriver"}},
	{familyChromium, "chrome", "Google Chrome", []string{"google-chrome", "google-chrome-stable", "chrome"}, []string{"/opt/google/chrome/chrome", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"}, []string{"chromedriver"}},
	{familyChromium, "edge", "Microsoft Edge", []string{"microsoft-edge", "microsoft-edge-stable"}, []string{"/opt/microsoft/msedge/msedge", "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge"}, []string{"msedgedriver"}},
}

// search lists the products that could be started, the preferred one first. It starts nothing.
func (c Config) search() []product {
	var found []product
	for _, o := range candidates {
		path := ""
		switch {
		case c.Browser == "" || c.Browser == o.name:
			path = o.look()
		case filepath.IsAbs(c.Browser) && o.family == familyOf(c.Browser) && runs(c.Browser):
			path = c.Browser
		}
		if path == "" {
			continue
		}
		f := product{path: path, label: o.label, name: o.name, family: o.family}
		if o.family != familyFirefox {
			if f.driver = c.driverFor(o); f.driver == "" {
				continue
			}
		}
		found = append(found, f)
		if filepath.IsAbs(c.Browser) {
			break
		}
	}
	return found
}

// familyOf guesses the family of a binary by its name.
func familyOf(path string) string {
	if strings.Contains(strings.ToLower(filepath.Base(path)), "firefox") {
		return familyFirefox
	}
	return familyChromium
}

func runs(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

func (c candidate) look() string {
	for _, command := range c.commands {
		if path, err := exec.LookPath(command); err == nil {
			return path
		}
	}
	for _, path := range c.files {
		if runs(path) {
			return path
		}
	}
	return ""
}

func (c Config) driverFor(o candidate) string {
	if c.Driver != "" {
		if runs(c.Driver) {
			return c.Driver
		}
		return ""
	}
	for _, name := range o.drivers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// choose gives the browser for a preference: auto or "" is the first one; a family, or a name. Without one it is
// setup_required, with what a person has to do.
func (c Config) choose(preference string) (product, error) {
	for _, f := range c.search() {
		if preference == "" || preference == "auto" || preference == f.name || preference == f.family {
			return f, nil
		}
	}
	steps := c.steps(preference)
	told := make([]any, len(steps))
	for i, s := range steps {
		told[i] = s
	}
	return product{}, fault.New(fault.SetupRequired, "%s", c.missing(preference)).Reason("browser_not_found").With("manual_steps", told).Hint("%s", steps[0])
}

func (c Config) missing(preference string) string {
	switch {
	case c.Browser != "":
		return "the browser " + c.Browser + " was not found, or its driver was not"
	case preference == "" || preference == "auto":
		return "neither Firefox nor a Chromium browser with its driver was found"
	}
	return "no browser for " + preference + " was found that this provider can start"
}

// steps are what a person does to get a browser.
func (c Config) steps(preference string) []string {
	firefox := "install Firefox (on Debian: apt-get install firefox-esr)"
	chromium := "install Chromium and its driver (on Debian: apt-get install chromium chromium-driver)"
	byHand := "or set browser, and for a Chromium browser driver, to absolute paths in the provider's block of the config file"
	switch preference {
	case "", "auto":
		return []string{firefox, "or " + chromium, byHand}
	case familyFirefox:
		return []string{firefox, byHand}
	case "edge":
		return []string{"install Microsoft Edge and msedgedriver of the same version", byHand}
	case "chrome":
		return []string{"install Google Chrome and chromedriver of the same version", byHand}
	}
	return []string{chromium, byHand}
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
