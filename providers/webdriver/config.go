package webdriver

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

const (
	familyWebKit   = "webkit"
	familyChromium = "chromium"
)

// Config is the body of the provider's block in the config file. Its zero value is right for most.
type Config struct {
	// Browser is the only browser to use: webkit or chromium. Left out: all that are found, WebKit first.
	Browser string `json:"browser"`
}

// configSchema is the JSON Schema of Config.
var configSchema = map[string]any{
	"type": "object", "additionalProperties": false,
	"properties": map[string]any{
		"browser": map[string]any{
			"type": "string", "enum": []any{familyWebKit, familyChromium}, "description": "The only browser to use. Left out: all that are found, WebKit first.",
		},
	},
}

func (p *Provider) configure(_ context.Context, body *structpb.Struct, host *browserv1.HostSettings) ([]*browserv1.Diagnostic, error) {
	var c Config
	found := plugins.DecodeConfig(body, &c)
	if found == nil && c.Browser != "" && c.Browser != familyWebKit && c.Browser != familyChromium {
		found = append(found, plugins.ConfigError("browser", "browser must be webkit or chromium, not %q", c.Browser))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.host = host
	if len(found) == 0 {
		p.config = c
	}
	sweep(host.GetRunDir())
	return found, nil
}

// folderPrefix begins the name of every temporary folder; the provider's pid follows.
const folderPrefix = "drover-webdriver-"

// sweep removes temporary folders of providers that were killed, "" for those of the system's folder.
func sweep(dir string) {
	if dir == "" {
		dir = os.TempDir()
	}
	all, _ := filepath.Glob(filepath.Join(dir, folderPrefix+"*"))
	for _, path := range all {
		word, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), folderPrefix), "-")
		pid, err := strconv.Atoi(word)
		if err == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(path)
		}
	}
}

// product is a browser that was found, with its driver.
type product struct{ family, label, path, driver string }

// search gives the browsers that are here with their drivers, in the order of preference.
func (c Config) search() (found []product) {
	if driver, err := exec.LookPath("WebKitWebDriver"); err == nil && c.Browser != familyChromium {
		if path := miniBrowser(); path != "" {
			found = append(found, product{familyWebKit, "WebKitGTK MiniBrowser", path, driver})
		}
	}
	if driver, err := exec.LookPath("chromedriver"); err == nil && c.Browser != familyWebKit {
		for _, name := range []string{"chromium", "google-chrome", "google-chrome-stable"} {
			if path, err := exec.LookPath(name); err == nil {
				found = append(found, product{familyChromium, "Chromium", path, driver})
				break
			}
		}
	}
	return found
}

// miniBrowser finds WebKitGTK's own browser, which lies in its library's folder.
func miniBrowser() string {
	for _, pattern := range []string{"/usr/lib/*/webkit2gtk-4.*/MiniBrowser", "/usr/lib*/webkit2gtk-4.*/MiniBrowser", "/usr/libexec/webkit2gtk-4.*/MiniBrowser"} {
		if all, _ := filepath.Glob(pattern); len(all) > 0 {
			return all[len(all)-1]
		}
	}
	return ""
}

// choose gives the browser that a session asks for.
func (c Config) choose(prefer string) (product, error) {
	found := c.search()
	for _, f := range found {
		if prefer == "" || prefer == "any" || prefer == f.family || prefer == "chrome" && f.family == familyChromium {
			return f, nil
		}
	}
	e := fault.New(fault.NotReady, "no browser with a WebDriver was found").Reason("browser_not_found").Field("browser_preference")
	switch prefer {
	case familyWebKit, "":
		return product{}, e.Hint("apt-get install webkit2gtk-driver xvfb")
	case familyChromium, "chrome":
		return product{}, e.Hint("apt-get install chromium chromium-driver")
	}
	return product{}, e.Hint("this provider drives webkit and chromium")
}

func errNoDisplay() error {
	return fault.New(fault.NotReady, "WebKit needs a display, and there is neither DISPLAY nor Xvfb").Reason("browser_start_failed").
		Hint("apt-get install xvfb")
}

func needsDisplay(found product) bool {
	return found.family == familyWebKit && os.Getenv("DISPLAY") == ""
}
