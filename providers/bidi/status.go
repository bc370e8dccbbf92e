package bidi

import (
	"context"
	"fmt"
	"os/exec"
	"slices"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// describe adds the browsers that were found to provider.describe.
func (p *Provider) describe(ctx context.Context, d *browserv1.DescribeResponse) error {
	config, _ := p.settings()
	for _, f := range config.search() {
		f.ask(ctx)
		more := slices.DeleteFunc(slices.Clone(featuresOf(f.family)), func(word string) bool { return slices.Contains(features, word) })
		b := &browserv1.Browser{Family: f.family, Label: f.label, Version: f.version, Features: more}
		d.Browsers = append(d.Browsers, b)
	}
	return nil
}

// status is provider.status. It starts nothing.
func (p *Provider) status(context.Context, *browserv1.StatusRequest) (*browserv1.StatusResponse, error) {
	config, _ := p.settings()
	p.mu.Lock()
	running, sessions := len(p.browsers) > 0, len(p.sessions)
	p.mu.Unlock()
	resp := &browserv1.StatusResponse{
		ProviderId: p.srv.Info().ID, BrowserRunning: running, Sessions: int32(sessions),
		Availability: browserv1.Availability_AVAILABILITY_READY, SetupState: browserv1.SetupState_SETUP_STATE_COMPLETE,
	}
	found := config.search()
	if len(found) == 0 {
		resp.Availability = browserv1.Availability_AVAILABILITY_UNAVAILABLE
		resp.SetupState = browserv1.SetupState_SETUP_STATE_REQUIRED
		if config.Browser != "" {
			resp.SetupState = browserv1.SetupState_SETUP_STATE_BROKEN
		}
		resp.RequiresManualSetup = true
		resp.ManualSteps = config.steps("")
		resp.Diagnostics = append(resp.Diagnostics, &browserv1.Diagnostic{
			Level: browserv1.Level_LEVEL_ERROR, Code: "browser_not_found", Message: config.missing(""), ManualSteps: config.steps(""),
		})
		return resp, nil
	}
	resp.BrowserDetected, resp.RecommendedBrowser = true, found[0].name
	chromium := false
	for _, f := range found {
		message := fmt.Sprintf("%s is at %s", f.label, f.path)
		if f.driver != "" {
			chromium = true
			message += ", its driver at " + f.driver
		}
		resp.Diagnostics = append(resp.Diagnostics, &browserv1.Diagnostic{Level: browserv1.Level_LEVEL_INFO, Code: "browser_found", Message: message})
	}
	resp.Diagnostics = append(resp.Diagnostics, config.driverless()...)
	resp.Diagnostics = append(resp.Diagnostics, &browserv1.Diagnostic{
		Level: browserv1.Level_LEVEL_INFO, Code: "session_close",
		Message: "session.close closes what the session opened; a browser that was attached to is left running",
	})
	if chromium && config.sandboxDisabled() {
		resp.Diagnostics = append(resp.Diagnostics, &browserv1.Diagnostic{
			Level: browserv1.Level_LEVEL_WARNING, Code: "sandbox_disabled", Message: sandboxMessage,
			ManualSteps: []string{"run Drover as a user other than root"},
		})
	}
	return resp, nil
}

// driverless tells of browsers that are there and lack their driver.
func (c Config) driverless() (found []*browserv1.Diagnostic) {
	for _, o := range candidates {
		if len(o.drivers) == 0 || c.Browser != "" && c.Browser != o.name || o.look() == "" || c.driverFor(o) != "" {
			continue
		}
		step := "install " + o.drivers[0] + " of the same version"
		if o.name == "chromium" {
			step = "apt-get install chromium-driver"
		}
		found = append(found, &browserv1.Diagnostic{
			Level: browserv1.Level_LEVEL_WARNING, Code: "driver_not_found", Message: o.label + " is there, but its driver is not", ManualSteps: []string{step},
		})
	}
	return found
}

// setupGuide is provider.setup_guide.
func (p *Provider) setupGuide(ctx context.Context, _ *browserv1.SetupGuideRequest) (*browserv1.SetupGuideResponse, error) {
	st, err := p.status(ctx, nil)
	if err != nil {
		return nil, err
	}
	config, _ := p.settings()
	there := func(family string) bool {
		return slices.ContainsFunc(config.search(), func(f product) bool { return f.family == family })
	}
	_, err = exec.LookPath("chromedriver")
	return &browserv1.SetupGuideResponse{
		Steps: []*browserv1.SetupStep{
			{Title: "Install Firefox; it needs no driver", Command: "apt-get install firefox-esr", Url: "https://www.mozilla.org/firefox/", Done: there(familyFirefox)},
			{Title: "For Chromium: install it with its driver, of the same version", Command: "apt-get install chromium chromium-driver", Url: "https://developer.chrome.com/docs/chromedriver", Done: there(familyChromium) && err == nil},
			{Title: "To attach to your own Firefox: start it with a port, and set attach_url where it is not 9222", Command: "firefox --remote-debugging-port=9222"},
			{Title: "See whether it works", Command: "drover provider verify " + p.srv.Info().ID},
		},
		Diagnostics: st.GetDiagnostics(),
	}, nil
}
