package cdp

import (
	"context"
	"fmt"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// describe adds the browsers that were found to provider.describe.
func (p *Provider) describe(ctx context.Context, d *browserv1.DescribeResponse) error {
	for _, f := range p.usable() {
		f.ask(ctx)
		d.Browsers = append(d.Browsers, &browserv1.Browser{Family: "chromium", Label: f.label, Version: f.version})
	}
	return nil
}

// usable lists the browsers that this provider could start; with a configured one, that alone.
func (p *Provider) usable() []product {
	config := p.settings()
	if config.Browser == "" {
		return search()
	}
	f, err := config.choose("")
	if err != nil {
		return nil
	}
	return []product{f}
}

// status is provider.status. It starts nothing.
func (p *Provider) status(context.Context, *browserv1.StatusRequest) (*browserv1.StatusResponse, error) {
	config := p.settings()
	p.mu.Lock()
	running, sessions := len(p.browsers) > 0, len(p.sessions)
	p.mu.Unlock()
	resp := &browserv1.StatusResponse{
		ProviderId: p.srv.Info().ID, BrowserRunning: running, Sessions: int32(sessions),
		Availability: browserv1.Availability_AVAILABILITY_READY, SetupState: browserv1.SetupState_SETUP_STATE_COMPLETE,
	}
	f, err := config.choose("")
	if err != nil {
		resp.Availability = browserv1.Availability_AVAILABILITY_UNAVAILABLE
		resp.SetupState = browserv1.SetupState_SETUP_STATE_REQUIRED
		if config.Browser != "" {
			resp.SetupState = browserv1.SetupState_SETUP_STATE_BROKEN
		}
		resp.RequiresManualSetup = true
		resp.ManualSteps = config.steps()
		resp.Diagnostics = append(resp.Diagnostics, &browserv1.Diagnostic{
			Level: browserv1.Level_LEVEL_ERROR, Code: "browser_not_found", Message: config.missingMessage(), ManualSteps: config.steps(),
		})
		return resp, nil
	}
	resp.BrowserDetected, resp.RecommendedBrowser = true, f.name
	resp.Diagnostics = append(resp.Diagnostics, &browserv1.Diagnostic{
		Level: browserv1.Level_LEVEL_INFO, Code: "browser_found", Message: fmt.Sprintf("%s is at %s", f.label, f.path),
	}, &browserv1.Diagnostic{
		Level: browserv1.Level_LEVEL_INFO, Code: "session_close",
		Message: "session.close closes what the session opened; a browser that was attached to is left running",
	})
	if config.sandboxDisabled() {
		resp.Diagnostics = append(resp.Diagnostics, &browserv1.Diagnostic{
			Level: browserv1.Level_LEVEL_WARNING, Code: "sandbox_disabled", Message: sandboxMessage,
			ManualSteps: []string{"run Drover as a user other than root"},
		})
	}
	return resp, nil
}

// setupGuide is provider.setup_guide.
func (p *Provider) setupGuide(ctx context.Context, _ *browserv1.SetupGuideRequest) (*browserv1.SetupGuideResponse, error) {
	st, err := p.status(ctx, nil)
	if err != nil {
		return nil, err
	}
	return &browserv1.SetupGuideResponse{
		Steps: []*browserv1.SetupStep{
			{Title: "Install Chromium or another browser of its family", Command: "apt-get install chromium", Url: "https://www.chromium.org/getting-involved/download-chromium/", Done: st.GetBrowserDetected()},
			{Title: "See whether it works", Command: "drover provider verify " + p.srv.Info().ID},
		},
		Diagnostics: st.GetDiagnostics(),
	}, nil
}
