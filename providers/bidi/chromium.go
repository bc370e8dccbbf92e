package bidi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/droverhq/drover/plugins/containment"
)

// arguments are the arguments that Chromium is started with. With the pipe it ends by itself when its driver does.
func (c Config) arguments(profile string) []string {
	args := []string{
		"--remote-debugging-pipe", "--user-data-dir=" + profile, "--no-first-run", "--no-default-browser-check", "--disable-back-forward-cache",
		"--disable-background-networking", "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
		"--disable-breakpad", "--disable-component-update", "--disable-default-apps", "--disable-dev-shm-usage",
		"--disable-ipc-flooding-protection", "--disable-popup-blocking", "--disable-prompt-on-repost", "--disable-quic",
		"--disable-renderer-backgrounding", "--disable-search-engine-choice-screen", "--disable-sync", "--metrics-recording-only",
		"--enable-unsafe-extension-debugging", "--force-color-profile=srgb", "--password-store=basic", "--use-mock-keychain",
		"--disable-features=" + strings.Join(disabledFeatures, ","),
	}
	if c.headless() {
		args = append(args, "--headless=new", "--hide-scrollbars", "--mute-audio", "--disable-gpu", "--enable-unsafe-swiftshader")
	}
	if c.sandboxDisabled() {
		args = append(args, "--no-sandbox")
	}
	return containment.WithoutMetadata(append(args, c.Args...))
}

// disabledFeatures talk to servers, put things beside the page, or keep pages from being what a script sees.
var disabledFeatures = []string{
	"Translate", "OptimizationHints", "MediaRouter", "DialMediaRouteProvider", "GlobalMediaControls", "InterestFeedContentSuggestions",
	"AutofillServerCommunication", "CertificateTransparencyComponentUpdater", "HttpsUpgrades", "HttpsFirstBalancedModeAutoEnable",
	"PaintHolding", "Prerender2",
}

// startChromium starts a driver, has it start the browser, and connects to the BiDi endpoint that it gives.
func (p *Provider) startChromium(ctx context.Context, found product, profile, egress string) (*browser, error) {
	config, host := p.settings()
	temp, err := makeFolder(host.GetRunDir(), "profile-")
	if err != nil {
		return nil, err
	}
	if profile == "" {
		profile = filepath.Join(temp, "profile")
	}
	proc, err := startProcess(found.driver, []string{"--port=0"}, nil, temp, "started successfully on port ")
	if err != nil {
		return nil, err
	}
	b := p.newBrowser(found)
	b.proc, b.profile = proc, profile
	port, err := proc.address(ctx)
	if err != nil {
		return b, err
	}
	args := config.arguments(profile)
	if egress != "" {
		args = append(args, containment.Chromium(egress)...)
	}
	options := map[string]any{"binary": found.path, "args": args}
	var got struct {
		SessionID    string       `json:"sessionId"`
		Capabilities capabilities `json:"capabilities"`
	}
	root := "http://127.0.0.1:" + port + "/session"
	err = drive(ctx, http.MethodPost, root, map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"webSocketUrl": true, "unhandledPromptBehavior": map[string]any{"default": "ignore"}, vendorOptions(found): options,
	}}}, &got)
	if err != nil {
		return b, err
	}
	b.caps, b.driver = got.Capabilities, root+"/"+got.SessionID
	if err := b.connect(ctx, got.Capabilities.WebSocketURL); err != nil {
		return b, err
	}
	return b, b.subscribe(ctx)
}

// vendorOptions names the capability that a vendor's driver takes its options from.
func vendorOptions(found product) string {
	if found.name == "edge" {
		return "ms:edgeOptions"
	}
	return "goog:chromeOptions"
}

// driverClient talks to drivers on the loopback, past any proxy of the environment.
var driverClient = &http.Client{Transport: &http.Transport{Proxy: nil, MaxIdleConnsPerHost: 1, IdleConnTimeout: 5 * time.Second}}

// drive sends one classic command to a driver (WebDriver, 6.3 "Processing model").
func drive(ctx context.Context, method, address string, body, result any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("writing a command for the driver: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("writing a command for the driver: %w", err)
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Close = true
	resp, err := driverClient.Do(req)
	if err != nil {
		return fmt.Errorf("talking to the driver: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("talking to the driver: %w", err)
	}
	var answer struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("reading the driver's answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		var failed struct{ Error, Message string }
		if json.Unmarshal(answer.Value, &failed) == nil && failed.Error != "" {
			message, _, _ := strings.Cut(failed.Message, "\n")
			return &refusal{Code: failed.Error, Message: message}
		}
		return fmt.Errorf("the driver answered with HTTP status %d", resp.StatusCode)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Value, result); err != nil {
		return fmt.Errorf("reading the driver's answer: %w", err)
	}
	return nil
}

// quit has the driver end its browser.
func (b *browser) quit(ctx context.Context) {
	_ = drive(ctx, http.MethodDelete, b.driver, nil, nil)
}

// cdp sends a command of the DevTools Protocol to a page, where the browser is a Chromium.
func (p *page) cdp(ctx context.Context, method string, params any) (json.RawMessage, error) {
	session, err := p.devtoolsSession(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := do(ctx, p.b.conn, cdpSend, cdpParams{Method: method, Params: params, Session: session})
	if err != nil {
		return nil, err
	}
	var res struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(raw, &res); err != nil {
		return nil, fmt.Errorf("reading the browser's answer: %w", err)
	}
	return res.Result, nil
}

// devtoolsSession gives the page's session for DevTools commands.
func (p *page) devtoolsSession(ctx context.Context) (string, error) {
	p.b.mu.Lock()
	session := p.devtools
	p.b.mu.Unlock()
	if session != "" {
		return session, nil
	}
	res, err := do(ctx, p.b.conn, cdpSession, inContext{p.context})
	if err != nil {
		return "", err
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.devtools = res.Session
	return res.Session, nil
}
