package firefox

import (
	"context"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// setupGuide is provider.setup_guide: the steps, and which are done. It writes nothing.
func (p *Provider) setupGuide(ctx context.Context, _ *browserv1.SetupGuideRequest) (*browserv1.SetupGuideResponse, error) {
	plugins.Progress(ctx, "looking", "looking for Firefox, its native manifest and the add-on")
	st, err := p.status(ctx, nil)
	if err != nil {
		return nil, err
	}
	m, _ := readManifest(appName) // One that cannot be read is told of in the diagnostics.
	connected := st.GetAvailability() == browserv1.Availability_AVAILABILITY_READY
	load := loadSteps()
	return &browserv1.SetupGuideResponse{
		Steps: []*browserv1.SetupStep{
			{Title: "Install Firefox", Command: "apt-get install firefox-esr", Url: "https://www.mozilla.org/firefox/", Done: st.GetBrowserDetected()},
			{Title: "Write the native manifest and the add-on's files", Command: setupCommand, Done: m.serves(addonID)},
			{Title: load[0], Url: "about:debugging#/runtime/this-firefox", Done: connected},
			{Title: load[1], Done: connected},
			{Title: "See whether it works", Command: "drover provider verify " + p.srv.Info().ID},
		},
		Diagnostics: st.GetDiagnostics(),
	}, nil
}
