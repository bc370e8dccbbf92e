package bidi

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// Config is the body of the provider's block in the config file. Its zero value is right for most.
type Config struct {
	// Browser is the only browser to use: an absolute path, or a name that configSchema lists. Left out: all that are
	// found, Firefox first.
	Browser string `json:"browser"`
	// Driver is the absolute path of the driver for a Chromium browser. Left out: chromedriver, or msedgedriver for Edge.
	Driver string `json:"driver"`
	// Headless starts the browser without a window. Left out: true.
	Headless *bool `json:"headless"`
	// Args are further arguments of the browser.
	Args []string `json:"args"`
	// Prefs are further preferences of Firefox: strings, booleans and whole numbers by name.
	Prefs map[string]any `json:"prefs"`
	// AttachURL is the running Firefox that attach uses. Left out: ws://127.0.0.1:9222.
	AttachURL string `json:"attach_url"`
	// NoSandbox starts Chromium without its sandbox. Left out: only as root, where it refuses to start with it.
	NoSandbox *bool `json:"no_sandbox"`
}

// configSchema is the JSON Schema of Config.
var configSchema = map[string]any{
	"type": "object", "additionalProperties": false,
	"properties": map[string]any{
		"browser": map[string]any{
			"type": "string", "description": "The only browser to use: an absolute path, or firefox, chromium, chrome or edge. Left out: all that are found, Firefox first.",
		},
		"driver":     map[string]any{"type": "string", "description": "The absolute path of the driver for a Chromium browser. Left out: chromedriver, or msedgedriver for Edge."},
		"headless":   map[string]any{"type": "boolean", "default": true, "description": "Start the browser without a window."},
		"args":       map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "description": "Further arguments of the browser, each beginning with -."},
		"prefs":      map[string]any{"type": "object", "description": "Further preferences of Firefox, by name."},
		"attach_url": map[string]any{"type": "string", "default": defaultAttachURL, "description": "The running Firefox that attach uses; start it with --remote-debugging-port=9222."},
		"no_sandbox": map[string]any{"type": "boolean", "description": "Start Chromium without its sandbox. Left out: only as root, where it does not start with it."},
	},
}

const (
	defaultAttachURL = "ws://127.0.0.1:9222"
	sandboxMessage   = "Chromium runs without its sandbox because it is started as root; run Drover as another user to have it"

	// The viewport of a session that asks for none, in CSS pixels.
	defaultWidth, defaultHeight = 1280, 720
)

// managed are arguments that this provider sets itself.
var managed = []string{
	"--remote-debugging-pipe", "--remote-debugging-port", "--remote-debugging-address", "--user-data-dir", "--profile", "-profile",
	"--no-remote", "--marionette", "--remote-allow-system-access",
}

func (p *Provider) configure(_ context.Context, body *structpb.Struct, host *browserv1.HostSettings) ([]*browserv1.Diagnostic, error) {
	var c Config
	found := plugins.DecodeConfig(body, &c)
	if found == nil {
		found = c.check()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.host = host
	if len(found) == 0 {
		p.config = c
	}
	dir := host.GetRunDir()
	if dir == "" {
		dir = os.TempDir()
	}
	sweep(dir)
	return found, nil
}

// check finds what is wrong with the values.
func (c Config) check() (found []*browserv1.Diagnostic) {
	if c.Browser != "" && !filepath.IsAbs(c.Browser) && !slices.ContainsFunc(candidates, func(o candidate) bool { return o.name == c.Browser }) {
		found = append(found, plugins.ConfigError("browser", "browser must be an absolute path, firefox, chromium, chrome or edge, not %q", c.Browser))
	}
	if c.Driver != "" && !filepath.IsAbs(c.Driver) {
		found = append(found, plugins.ConfigError("driver", "driver must be an absolute path, not %q", c.Driver))
	}
	for _, arg := range c.Args {
		name, _, _ := strings.Cut(arg, "=")
		switch {
		case !strings.HasPrefix(arg, "-"):
			found = append(found, plugins.ConfigError("args", "%q does not begin with -", arg))
		case slices.Contains(managed, name):
			found = append(found, plugins.ConfigError("args", "%s is set by the provider itself", name))
		}
	}
	for name, value := range c.Prefs {
		switch v := value.(type) {
		case string, bool:
		case float64:
			if v != float64(int32(v)) {
				found = append(found, plugins.ConfigError("prefs", "%s must be a whole number", name))
			}
		default:
			found = append(found, plugins.ConfigError("prefs", "%s must be a string, a boolean or a whole number", name))
		}
	}
	if c.AttachURL != "" {
		u, err := url.Parse(c.AttachURL)
		if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
			found = append(found, plugins.ConfigError("attach_url", "attach_url must be a ws:// or wss:// URL"))
		}
	}
	return found
}

func (c Config) headless() bool { return c.Headless == nil || *c.Headless }

// sandboxDisabled says whether Chromium is started without its sandbox.
func (c Config) sandboxDisabled() bool {
	if c.NoSandbox != nil {
		return *c.NoSandbox
	}
	return os.Geteuid() == 0
}
