package bidi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// firefoxPrefs keep Firefox from talking to servers, from asking a person, and from having windows that scripts cannot
// see. Firefox itself adds those that it recommends for automation (RecommendedPreferences.sys.mjs).
var firefoxPrefs = map[string]any{
	"app.normandy.enabled":                                  false,
	"app.update.auto":                                       false,
	"browser.aboutwelcome.enabled":                          false,
	"browser.contentanalysis.enabled":                       false,
	"browser.download.always_ask_before_handling_new_types": false,
	"browser.newtab.preload":                                false,
	"browser.newtabpage.enabled":                            false,
	"browser.region.update.enabled":                         false,
	"browser.safebrowsing.update.enabled":                   false,
	"browser.sessionhistory.max_total_viewers":              0, // no back/forward cache: a document that was left is gone
	"browser.sessionstore.resume_from_crash":                false,
	"browser.startup.homepage":                              "about:blank",
	"browser.startup.page":                                  0,
	"browser.tabs.firefox-view":                             false,
	"browser.link.open_newwindow":                           2, // a popup is a window, so that its opener stays visible
	"browser.link.open_newwindow.restriction":               0,
	"datareporting.policy.dataSubmissionEnabled":            false,
	"dom.disable_beforeunload":                              false, // leave prompts are the agent's to answer
	"dom.ipc.processCount":                                  8,
	"dom.min_background_timeout_value":                      10,
	"dom.timeout.enable_budget_timer_throttling":            false,
	"extensions.getAddons.cache.enabled":                    false,
	"extensions.systemAddon.update.enabled":                 false,
	"fission.bfcacheInParent":                               false,
	"media.gmp-manager.updateEnabled":                       false,
	"messaging-system.rsexperimentloader.enabled":           false,
	"network.captive-portal-service.enabled":                false,
	"network.connectivity-service.enabled":                  false,
	"network.dns.disablePrefetch":                           true,
	"network.http.speculative-parallel-limit":               0,
	"network.prefetch-next":                                 false,
	"network.protocol-handler.external-default":             false,
	"network.protocol-handler.warn-external-default":        false,
	"network.trr.mode":                                      5,
	"nimbus.rollouts.enabled":                               false,
	"pdfjs.disabled":                                        false,
	"security.OCSP.enabled":                                 0,
	"services.settings.server":                              "data:,#",
	"toolkit.telemetry.enabled":                             false,
	"toolkit.telemetry.unified":                             false,
	"widget.gtk.overlay-scrollbars.enabled":                 true,
}

// writePrefs writes the preferences into a profile; later ones win.
func writePrefs(dir string, more ...map[string]any) error {
	all := maps.Clone(firefoxPrefs)
	for _, m := range more {
		maps.Copy(all, m)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := all[name]
		if f, ok := value.(float64); ok {
			value = int(f)
		}
		key, err := json.Marshal(name)
		if err != nil {
			return fmt.Errorf("writing the preference %s: %w", name, err)
		}
		data, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("writing the preference %s: %w", name, err)
		}
		fmt.Fprintf(&b, "user_pref(%s, %s);\n", key, data)
	}
	if err := os.WriteFile(filepath.Join(dir, "user.js"), []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("writing the preferences: %w", err)
	}
	return nil
}

// startFirefox starts Firefox on a profile and connects to it. profile is "" for one that goes with the browser.
func (p *Provider) startFirefox(ctx context.Context, found product, profile, egress string) (*browser, error) {
	config, host := p.settings()
	temp, err := makeFolder(host.GetRunDir(), "profile-")
	if err != nil {
		return nil, err
	}
	kept := profile != ""
	if !kept {
		profile = temp
	}
	if err := prepare(profile, kept, config.Prefs, egress); err != nil {
		_ = os.RemoveAll(temp)
		return nil, err
	}
	args := []string{"--remote-debugging-port=0", "--no-remote", "--new-instance", "--profile", profile}
	if config.headless() {
		args = append(args, "--headless")
	}
	proc, err := startProcess(found.path, append(args, config.Args...), []string{"MOZ_CRASHREPORTER_DISABLE=1", "MOZ_DISABLE_AUTO_SAFE_MODE=1"}, temp, "WebDriver BiDi listening on ")
	if err != nil {
		return nil, err
	}
	b := p.newBrowser(found)
	b.proc = proc
	address, err := proc.address(ctx)
	if err == nil {
		err = b.connect(ctx, address+"/session")
	}
	if err == nil {
		err = b.newSession(ctx)
	}
	return b, err
}

// newSession is session.new on a connection that has no session yet.
func (b *browser) newSession(ctx context.Context) error {
	params := newSession{}
	params.Capabilities.AlwaysMatch = map[string]any{"unhandledPromptBehavior": map[string]any{"default": "ignore"}}
	res, err := do(ctx, b.conn, sessionNew, params)
	if err != nil {
		return err
	}
	b.caps = res.Capabilities
	return b.subscribe(ctx)
}
