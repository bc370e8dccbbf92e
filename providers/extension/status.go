package extension

import (
	"cmp"
	"context"
	"fmt"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/providers/extension/bridge"
)

// describe adds the browsers that are connected to provider.describe.
func (p *Provider) describe(_ context.Context, d *browserv1.DescribeResponse) error {
	p.mu.Lock()
	n := p.node
	p.mu.Unlock()
	if n == nil {
		return nil // it is asked before it is configured
	}
	for _, b := range n.Browsers() {
		if b.Connected {
			d.Browsers = append(d.Browsers, &browserv1.Browser{Family: "chromium", Label: cmp.Or(b.Name, "Chromium") + " " + b.Target, Features: featuresOf(b)})
		}
	}
	return nil
}

// featuresOf gives what a browser has beyond the features of all.
func featuresOf(bridge.Browser) []string { return nil }

// readyTime is how long status waits for the listener, or the process that holds it.
const readyTime = 2 * time.Second

// await waits until the node has its role and, with browsers, until a paired browser is connected.
func await(ctx context.Context, n *bridge.Node, d time.Duration, enough func() bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	for !enough() {
		changed := n.Changed()
		if enough() {
			return
		}
		select {
		case <-changed:
		case <-t.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// status is provider.status. Without a pairing it is unavailable and says what a person has to do; with one whose browser is
// away just now it is degraded, for the browser comes by itself when it is started.
func (p *Provider) status(ctx context.Context, _ *browserv1.StatusRequest) (*browserv1.StatusResponse, error) {
	resp := &browserv1.StatusResponse{ProviderId: p.srv.Info().ID, Sessions: int32(p.driver.Sessions())}
	n, err := p.bridge(ctx)
	if err != nil {
		return nil, err
	}
	await(ctx, n, readyTime, func() bool { ready, err := n.Ready(); return ready || err != nil })
	diagnose := func(level browserv1.Level, code, format string, args ...any) {
		resp.Diagnostics = append(resp.Diagnostics, &browserv1.Diagnostic{Level: level, Code: code, Message: fmt.Sprintf(format, args...)})
	}
	connected := 0
	for _, b := range n.Browsers() {
		if b.Connected {
			connected++
			diagnose(browserv1.Level_LEVEL_INFO, "browser_connected", "%s is connected as %s over %s", cmp.Or(b.Name, "a Chromium"), b.Target, b.Transport)
		}
	}
	resp.BrowserDetected, resp.BrowserRunning = connected > 0, connected > 0
	_, problem := n.Ready()
	switch unpaired := p.paired(n, ""); {
	case problem != nil:
		resp.Availability, resp.SetupState = browserv1.Availability_AVAILABILITY_UNAVAILABLE, browserv1.SetupState_SETUP_STATE_BROKEN
		resp.RequiresManualSetup = true
		resp.ManualSteps = []string{fault.From(errListener(n, problem)).Message, "end the program that has the port, or set listen in the provider's block"}
		diagnose(browserv1.Level_LEVEL_ERROR, "listener_unavailable", "%v", problem)
	case connected > 0:
		resp.Availability, resp.SetupState = browserv1.Availability_AVAILABILITY_READY, browserv1.SetupState_SETUP_STATE_COMPLETE
		resp.RecommendedBrowser = "chromium"
	case unpaired != nil:
		resp.Availability, resp.SetupState = browserv1.Availability_AVAILABILITY_UNAVAILABLE, browserv1.SetupState_SETUP_STATE_REQUIRED
		resp.RequiresManualSetup, resp.ManualSteps = true, manualSteps()
		diagnose(browserv1.Level_LEVEL_ERROR, "not_paired", "no browser is paired yet; run drover provider setup extension")
		resp.Diagnostics[len(resp.Diagnostics)-1].ManualSteps = manualSteps()
	default:
		resp.Availability, resp.SetupState = browserv1.Availability_AVAILABILITY_DEGRADED, browserv1.SetupState_SETUP_STATE_COMPLETE
		diagnose(browserv1.Level_LEVEL_WARNING, "browser_away", "a browser is paired and not connected; it connects when it runs and its extension is on")
	}
	return resp, nil
}

// setupGuide is provider.setup_guide.
func (p *Provider) setupGuide(ctx context.Context, _ *browserv1.SetupGuideRequest) (*browserv1.SetupGuideResponse, error) {
	st, err := p.status(ctx, nil)
	if err != nil {
		return nil, err
	}
	n, err := p.bridge(ctx)
	if err != nil {
		return nil, err
	}
	paired := p.paired(n, "") == nil
	return &browserv1.SetupGuideResponse{
		Steps: []*browserv1.SetupStep{
			{Title: "Write the extension to a folder, and load it in the browser (chrome://extensions, developer mode, Load unpacked)", Command: "drover-provider-extension setup", Done: paired},
			{Title: "Pair the browser: press Connect this browser on this page, then Connect in the extension's popup", Url: n.URL() + "/pair", Done: paired},
			{Title: "See that the browser is connected", Command: "drover provider status " + p.srv.Info().ID, Done: st.GetBrowserRunning()},
		},
		Diagnostics: st.GetDiagnostics(),
	}, nil
}

// verify is provider.verify: it really drives a connected browser once, in a tab of its own that is closed again.
func (p *Provider) verify(ctx context.Context, _ *browserv1.VerifyRequest) (*browserv1.VerifyResponse, error) {
	v := &browserv1.VerifyResponse{}
	note := func(id string, err error, well, fix string) bool {
		c := &browserv1.Check{Id: id, Status: browserv1.CheckStatus_CHECK_STATUS_PASS, Message: well}
		if err != nil {
			c.Status, c.Message, c.Fix = browserv1.CheckStatus_CHECK_STATUS_FAIL, fault.From(err).Message, fix
			if id == "paired" || id == "connected" { // nobody has to use this provider
				c.Status = browserv1.CheckStatus_CHECK_STATUS_WARN
			}
		}
		v.Checks = append(v.Checks, c)
		return err == nil
	}
	n, err := p.bridge(ctx)
	if err == nil {
		await(ctx, n, readyTime, func() bool { ready, err := n.Ready(); return ready || err != nil })
		if _, problem := n.Ready(); problem != nil {
			err = errListener(n, problem)
		}
	}
	if !note("listener", err, "browsers can connect", "end the program that has the port, or set listen in the provider's block") {
		return v, nil
	}
	if !note("paired", p.paired(n, ""), "a browser is paired", "run drover provider setup extension") {
		return v, nil
	}
	b, err := p.choose(ctx, n, &browserv1.EnsureSessionRequest{})
	if !note("connected", err, "a browser is connected", "start the browser and see that the extension's popup says Connected") {
		return v, nil
	}
	p.drive(ctx, n, b, note)
	return v, nil
}
