package webdriver

import (
	"context"
	"fmt"
	"slices"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// describe adds the browsers that were found to provider.describe.
func (p *Provider) describe(_ context.Context, d *browserv1.DescribeResponse) error {
	for _, f := range p.found() {
		d.Browsers = append(d.Browsers, &browserv1.Browser{Family: f.family, Label: f.label})
	}
	return nil
}

func (p *Provider) found() []product {
	p.mu.Lock()
	config := p.config
	p.mu.Unlock()
	return config.search()
}

// status is provider.status. It starts nothing.
func (p *Provider) status(context.Context, *browserv1.StatusRequest) (*browserv1.StatusResponse, error) {
	p.mu.Lock()
	sessions := len(p.sessions)
	p.mu.Unlock()
	resp := &browserv1.StatusResponse{
		ProviderId: p.srv.Info().ID, BrowserRunning: sessions > 0, Sessions: int32(sessions),
		Availability: browserv1.Availability_AVAILABILITY_READY, SetupState: browserv1.SetupState_SETUP_STATE_COMPLETE,
	}
	found := p.found()
	if len(found) == 0 {
		steps := []string{"apt-get install webkit2gtk-driver xvfb", "apt-get install chromium chromium-driver"}
		resp.Availability, resp.SetupState = browserv1.Availability_AVAILABILITY_UNAVAILABLE, browserv1.SetupState_SETUP_STATE_REQUIRED
		resp.RequiresManualSetup, resp.ManualSteps = true, steps
		resp.Diagnostics = append(resp.Diagnostics, &browserv1.Diagnostic{
			Level: browserv1.Level_LEVEL_ERROR, Code: "browser_not_found", Message: "no browser with a WebDriver was found", ManualSteps: steps,
		})
		return resp, nil
	}
	resp.BrowserDetected, resp.RecommendedBrowser = true, found[0].family
	for _, f := range found {
		resp.Diagnostics = append(resp.Diagnostics, &browserv1.Diagnostic{
			Level: browserv1.Level_LEVEL_INFO, Code: "browser_found", Message: fmt.Sprintf("%s is at %s, its driver at %s", f.label, f.path, f.driver),
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
	there := func(family string) bool {
		return slices.ContainsFunc(p.found(), func(f product) bool { return f.family == family })
	}
	return &browserv1.SetupGuideResponse{
		Steps: []*browserv1.SetupStep{
			{Title: "Install WebKit's driver, and an X server where there is no display", Command: "apt-get install webkit2gtk-driver xvfb", Done: there(familyWebKit)},
			{Title: "For Chromium: install it with its driver", Command: "apt-get install chromium chromium-driver", Done: there(familyChromium)},
		},
		Diagnostics: st.GetDiagnostics(),
	}, nil
}
