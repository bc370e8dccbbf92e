package firefox

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/droverhq/drover/plugins/inpage"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

const (
	levelInfo    = browserv1.Level_LEVEL_INFO
	levelWarning = browserv1.Level_LEVEL_WARNING
	levelError   = browserv1.Level_LEVEL_ERROR
)

// describe adds the browsers that are connected. It waits for none that is not.
func (p *Provider) describe(ctx context.Context, d *browserv1.DescribeResponse) error {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	for _, b := range p.discover(ctx) {
		if !slices.ContainsFunc(d.GetBrowsers(), func(o *browserv1.Browser) bool { return o.GetLabel() == b.label() }) {
			d.Browsers = append(d.Browsers, &browserv1.Browser{
				Family: family, Label: b.label(), Version: b.link.hello.Release, WithoutMethods: b.without(),
			})
		}
	}
	return nil
}

// without lists the methods that a browser lacks.
func (b *browser) without() []string {
	if b.public() {
		return b.p.unshared
	}
	return nil
}

// unfit says why a connected browser cannot take sessions, or nil.
func (b *browser) unfit() *browserv1.Diagnostic {
	if b.public() {
		return nil
	}
	_, engine := inpage.Bundle()
	h := b.link.hello
	switch {
	case h.Engine != engine:
		return &browserv1.Diagnostic{
			Level: levelError, Code: "extension_outdated", Message: "the add-on in Firefox is of another version of Drover",
			ManualSteps: []string{"run drover provider setup firefox", "in Firefox open about:debugging#/runtime/this-firefox and press Reload at Drover"},
		}
	case !h.Hosts:
		return &browserv1.Diagnostic{
			Level: levelError, Code: "permission_missing", Message: "the add-on may not act on pages",
			ManualSteps: []string{"open Drover's popup in Firefox and press Allow, then press Reload at Drover in about:debugging"},
		}
	}
	return nil
}

// paused asks the add-on whether the person paused it.
func (b *browser) paused(ctx context.Context) (bool, error) {
	var got struct {
		Paused bool `json:"paused"`
	}
	if b.public() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := b.link.request(ctx, "ping", map[string]any{}, &got)
	return got.Paused, err
}

// status is provider.status. It starts nothing.
func (p *Provider) status(ctx context.Context, _ *browserv1.StatusRequest) (*browserv1.StatusResponse, error) {
	p.mu.Lock()
	sessions := len(p.sessions)
	p.mu.Unlock()
	resp := &browserv1.StatusResponse{
		ProviderId: p.srv.Info().ID, Sessions: int32(sessions), RecommendedBrowser: family, BrowserDetected: firefoxThere(),
		Availability: browserv1.Availability_AVAILABILITY_UNAVAILABLE, SetupState: browserv1.SetupState_SETUP_STATE_REQUIRED,
	}
	usable := 0
	for _, b := range p.discover(ctx) {
		resp.BrowserDetected, resp.BrowserRunning = true, true
		d := b.diagnose(ctx)
		resp.Diagnostics = append(resp.Diagnostics, d)
		if d.GetLevel() != levelError {
			usable++
		}
	}
	if usable > 0 {
		resp.Availability, resp.SetupState = browserv1.Availability_AVAILABILITY_READY, browserv1.SetupState_SETUP_STATE_COMPLETE
	} else {
		if len(resp.GetDiagnostics()) > 0 {
			resp.SetupState = browserv1.SetupState_SETUP_STATE_BROKEN
			resp.ManualSteps = resp.GetDiagnostics()[0].GetManualSteps()
		} else {
			d := p.missing(ctx)
			resp.Diagnostics, resp.ManualSteps = append(resp.Diagnostics, d), d.GetManualSteps()
		}
		resp.RequiresManualSetup = true
	}
	resp.Diagnostics = append(resp.Diagnostics, p.installation()...)
	resp.Diagnostics = append(resp.Diagnostics, &browserv1.Diagnostic{
		Level: levelInfo, Code: "session_close", Message: "session.close closes the tabs that the session opened; tabs that the person shared stay, and Firefox goes on",
	})
	return resp, nil
}

// diagnose tells how one connected browser is.
func (b *browser) diagnose(ctx context.Context) *browserv1.Diagnostic {
	if d := b.unfit(); d != nil {
		return d
	}
	paused, err := b.paused(ctx)
	switch {
	case err != nil:
		return &browserv1.Diagnostic{
			Level: levelError, Code: "extension_silent", Message: "the add-on is connected but does not answer",
			ManualSteps: []string{"in Firefox open about:debugging#/runtime/this-firefox and press Reload at Drover"},
		}
	case paused:
		return &browserv1.Diagnostic{
			Level: levelError, Code: "bridge_paused", Message: "the person paused Drover in Firefox",
			ManualSteps: []string{"open Drover's popup in Firefox and press Resume"},
		}
	case b.public():
		return &browserv1.Diagnostic{Level: levelInfo, Code: "bridge_connected", Message: "the public Firefox Agent Bridge " + b.link.hello.Version + " is connected"}
	}
	h := b.link.hello
	return &browserv1.Diagnostic{
		Level: levelInfo, Code: "extension_connected",
		Message: fmt.Sprintf("Drover's add-on %s in %s %s is connected, instance %s", h.Version, h.Browser, h.Release, h.Instance),
	}
}

// firefoxThere says whether a Firefox is installed.
func firefoxThere() bool {
	return slices.ContainsFunc([]string{"firefox", "firefox-esr", "firefox-developer-edition"}, func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
}

// installation tells what is in place for the native host.
func (p *Provider) installation() []*browserv1.Diagnostic {
	var out []*browserv1.Diagnostic
	m, err := readManifest(appName)
	switch {
	case err != nil:
		out = append(out, &browserv1.Diagnostic{Level: levelWarning, Code: "native_host_broken", Message: "the native manifest cannot be read: " + err.Error()})
	case m.serves(addonID):
		out = append(out, &browserv1.Diagnostic{Level: levelInfo, Code: "native_host_detected", Message: "the native manifest is in place and starts " + m.Path})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, path := range sortedKeys(p.problems) {
		out = append(out, &browserv1.Diagnostic{Level: levelWarning, Code: "native_host_unreachable", Message: p.problems[path]})
	}
	return out
}

// missing tells the first thing that stands in the way of a connection.
func (p *Provider) missing(context.Context) *browserv1.Diagnostic {
	m, err := readManifest(appName)
	switch {
	case !firefoxThere():
		return &browserv1.Diagnostic{
			Level: levelError, Code: "browser_not_found", Message: "Firefox is not installed",
			ManualSteps: []string{"install Firefox (on Debian: apt-get install firefox-esr)", "run drover provider setup firefox"},
		}
	case err != nil || !m.serves(addonID):
		return &browserv1.Diagnostic{
			Level: levelError, Code: "native_host_missing", Message: "Firefox does not know Drover's native host yet",
			ManualSteps: append([]string{"run drover provider setup firefox"}, loadSteps()...),
		}
	}
	return &browserv1.Diagnostic{
		Level: levelError, Code: "extension_missing", Message: "no Firefox with Drover's add-on is running", ManualSteps: loadSteps(),
	}
}

// loadSteps are what a person does in Firefox.
func loadSteps() []string {
	dir, err := addonDir()
	if err != nil {
		dir = "drover/firefox-addon in your data folder"
	}
	return []string{
		"open about:debugging#/runtime/this-firefox in Firefox",
		"press Load Temporary Add-on and choose " + dir + "/manifest.json (Firefox forgets it when it ends; a signed build stays)",
	}
}
