package cdp

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/plugins/containment"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Config is the body of the provider's block in the config file. Its zero value is right for most.
type Config struct {
	// Browser is the browser to start: an absolute path, or a name that configSchema lists. Left out: the first one found.
	Browser string `json:"browser"`
	// Headless starts the browser without a window. Left out: true.
	Headless *bool `json:"headless"`
	// Args are further arguments of the browser.
	Args []string `json:"args"`
	// AttachURL is the running browser that attach uses: ws://… or http://host:port. Left out: http://127.0.0.1:9222.
	AttachURL string `json:"attach_url"`
	// NoSandbox starts the browser without its sandbox. Left out: only as root, where Chromium refuses to start with it.
	NoSandbox *bool `json:"no_sandbox"`
}

// configSchema is the JSON Schema of Config.
var configSchema = map[string]any{
	"type": "object", "additionalProperties": false,
	"properties": map[string]any{
		"browser": map[string]any{
			"type": "string", "description": "The browser to start: an absolute path, or chromium, chrome, edge, brave or headless-shell. Left out: the first one found.",
		},
		"headless":   map[string]any{"type": "boolean", "default": true, "description": "Start the browser without a window."},
		"args":       map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "description": "Further arguments of the browser, each beginning with --."},
		"attach_url": map[string]any{"type": "string", "default": defaultAttachURL, "description": "The running browser that attach uses: ws://… or http://host:port."},
		"no_sandbox": map[string]any{"type": "boolean", "description": "Start the browser without its sandbox. Left out: only as root, where Chromium does not start with it."},
	},
}

const (
	defaultAttachURL = "http://127.0.0.1:9222"
	sandboxMessage   = "the browser runs without its sandbox because it is started as root; run Drover as another user to have it"

	// The viewport of a session that asks for none, in CSS pixels.
	defaultWidth, defaultHeight = 1280, 720
)

// managed are arguments that this provider sets itself.
var managed = []string{"--remote-debugging-pipe", "--remote-debugging-port", "--remote-debugging-address", "--user-data-dir", "--no-startup-window"}

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
	if c.sandboxDisabled() {
		found = append(found, &browserv1.Diagnostic{Level: browserv1.Level_LEVEL_WARNING, Code: "sandbox_disabled", Message: sandboxMessage})
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
		found = append(found, plugins.ConfigError("browser", "browser must be an absolute path, chromium, chrome, edge, brave or headless-shell, not %q", c.Browser))
	}
	for _, arg := range c.Args {
		name, _, _ := strings.Cut(arg, "=")
		switch {
		case !strings.HasPrefix(arg, "--"):
			found = append(found, plugins.ConfigError("args", "%q does not begin with --", arg))
		case slices.Contains(managed, name):
			found = append(found, plugins.ConfigError("args", "%s is set by the provider itself", name))
		}
	}
	if c.AttachURL != "" {
		u, err := url.Parse(c.AttachURL)
		if err != nil || u.Host == "" || !slices.Contains([]string{"ws", "wss", "http", "https"}, u.Scheme) {
			found = append(found, plugins.ConfigError("attach_url", "attach_url must be a ws:// or http:// URL"))
		}
	}
	return found
}

func (c Config) headless() bool { return c.Headless == nil || *c.Headless }

// sandboxDisabled says whether the browser is started without its sandbox.
func (c Config) sandboxDisabled() bool {
	if c.NoSandbox != nil {
		return *c.NoSandbox
	}
	return os.Geteuid() == 0
}

// choose gives the browser to start: the configured one, else the one that the preference (a name or a label) means, else
// the first one found. Without any it is setup_required, with what a person has to do.
func (c Config) choose(preference string) (product, error) {
	if filepath.IsAbs(c.Browser) {
		if info, err := os.Stat(c.Browser); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return at(c.Browser), nil
		}
		return product{}, c.missing()
	}
	found := search()
	for _, word := range []string{c.Browser, preference} {
		for _, f := range found {
			if word != "" && (strings.EqualFold(word, f.name) || strings.EqualFold(word, f.label)) {
				return f, nil
			}
		}
		if c.Browser != "" {
			return product{}, c.missing()
		}
	}
	if len(found) == 0 {
		return product{}, c.missing()
	}
	return found[0], nil
}

func (c Config) missing() error {
	steps := c.steps()
	told := make([]any, len(steps))
	for i, s := range steps {
		told[i] = s
	}
	return fault.New(fault.SetupRequired, "%s", c.missingMessage()).Reason("browser_not_found").With("manual_steps", told).Hint("%s", steps[0])
}

func (c Config) missingMessage() string {
	if c.Browser != "" {
		return "the browser " + c.Browser + " was not found"
	}
	return "no Chromium, Chrome, Edge or Brave was found"
}

// steps are what a person does to get a browser.
func (c Config) steps() []string {
	return []string{
		"install Chromium (on Debian and Ubuntu: apt-get install chromium)",
		"or set browser to the absolute path of a Chromium-based browser in the provider's block of the config file",
	}
}

// arguments are the arguments that a browser is started with, but for its profile. Chromium takes only the last list of
// features, so those of the configuration are put together with ours, and win.
func (c Config) arguments() []string {
	args := []string{
		"--remote-debugging-pipe", "--no-startup-window", "--no-first-run", "--no-default-browser-check", "--disable-back-forward-cache",
		"--disable-background-networking", "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
		"--disable-breakpad", "--disable-client-side-phishing-detection", "--disable-component-extensions-with-background-pages",
		"--disable-component-update", "--disable-default-apps", "--disable-dev-shm-usage", "--disable-hang-monitor",
		"--disable-ipc-flooding-protection", "--disable-popup-blocking", "--disable-prompt-on-repost", "--disable-quic",
		"--disable-renderer-backgrounding", "--disable-search-engine-choice-screen", "--disable-sync", "--metrics-recording-only",
		"--force-color-profile=srgb", "--password-store=basic", "--use-mock-keychain",
	}
	if c.headless() {
		args = append(args, "--headless", "--hide-scrollbars", "--mute-audio", "--disable-gpu", "--enable-unsafe-swiftshader")
	}
	if c.sandboxDisabled() {
		args = append(args, "--no-sandbox")
	}
	enabled, disabled := slices.Clone(enabledFeatures), slices.Clone(disabledFeatures)
	for _, arg := range c.Args {
		name, value, _ := strings.Cut(arg, "=")
		switch words := strings.Split(value, ","); name {
		case "--enable-features":
			enabled = append(enabled, words...)
			disabled = slices.DeleteFunc(disabled, func(f string) bool { return slices.Contains(words, f) })
		case "--disable-features":
			disabled = append(disabled, words...)
			enabled = slices.DeleteFunc(enabled, func(f string) bool { return slices.Contains(words, f) })
		default:
			args = append(args, arg)
		}
	}
	args = append(args, "--enable-features="+strings.Join(enabled, ","), "--disable-features="+strings.Join(disabled, ","))
	return containment.WithoutMetadata(args)
}

// enabledFeatures: a screenshot is taken from a surface of its own instead of waiting for the frames of the page's.
var enabledFeatures = []string{"CDPScreenshotNewSurface"}

// disabledFeatures talk to servers, put things beside the page, or keep pages from being what a script sees.
var disabledFeatures = []string{
	"Translate", "OptimizationHints", "MediaRouter", "DialMediaRouteProvider", "GlobalMediaControls", "InterestFeedContentSuggestions",
	"AutofillServerCommunication", "CertificateTransparencyComponentUpdater", "HttpsUpgrades", "HttpsFirstBalancedModeAutoEnable",
	"PaintHolding", "Prerender2", "DestroyProfileOnBrowserClose",
}
