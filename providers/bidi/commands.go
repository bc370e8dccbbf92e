package bidi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/droverhq/drover/plugins/w3c"
)

// command is one command of WebDriver BiDi with the types of its params and result, and the longest that it may take.
type command[P, R any] struct {
	name  string
	limit time.Duration
}

// do sends a command. It ends at its own limit or with ctx, whichever is first.
func do[P, R any](ctx context.Context, c *conn, cmd command[P, R], params P) (R, error) {
	var result R
	ctx, cancel := context.WithTimeoutCause(ctx, cmd.limit, fmt.Errorf("%s: %w", cmd.name, context.DeadlineExceeded))
	defer cancel()
	err := c.call(ctx, cmd.name, params, &result)
	return result, err
}

const (
	quick   = 15 * time.Second // commands that no page has a part in
	patient = time.Hour        // commands that wait for a page; the call's own deadline is shorter
)

// nothing is the params, or the result, of a command that has none.
type nothing struct{}

// The commands that this provider uses, in the order of the specification (https://w3c.github.io/webdriver-bidi/).
var (
	sessionNew       = command[newSession, newSessionResult]{"session.new", time.Minute}
	sessionEnd       = command[nothing, nothing]{"session.end", quick}
	sessionSubscribe = command[subscription, nothing]{"session.subscribe", quick}

	browserClose             = command[nothing, nothing]{"browser.close", quick}
	browserCreateUserContext = command[newUserContext, userContext]{"browser.createUserContext", quick}
	browserRemoveUserContext = command[userContext, nothing]{"browser.removeUserContext", quick}
	browserDownloads         = command[downloadBehavior, nothing]{"browser.setDownloadBehavior", quick}

	contextActivate   = command[inContext, nothing]{"browsingContext.activate", quick}
	contextScreenshot = command[screenshotParams, screenshotResult]{"browsingContext.captureScreenshot", patient}
	contextClose      = command[closeParams, nothing]{"browsingContext.close", patient}
	contextCreate     = command[createParams, inContext]{"browsingContext.create", time.Minute}
	contextTree       = command[treeParams, treeResult]{"browsingContext.getTree", quick}
	contextPrompt     = command[promptParams, nothing]{"browsingContext.handleUserPrompt", patient}
	contextNavigate   = command[navigateParams, navigateResult]{"browsingContext.navigate", patient}
	contextReload     = command[reloadParams, navigateResult]{"browsingContext.reload", patient}
	contextViewport   = command[viewportParams, nothing]{"browsingContext.setViewport", quick}
	contextTraverse   = command[traverseParams, nothing]{"browsingContext.traverseHistory", patient}

	scriptPreload  = command[preloadParams, preloadResult]{"script.addPreloadScript", quick}
	scriptUnload   = command[preloadResult, nothing]{"script.removePreloadScript", quick}
	scriptEvaluate = command[evaluateParams, evaluateResult]{"script.evaluate", patient}
	scriptCall     = command[callParams, evaluateResult]{"script.callFunction", patient}
	scriptDisown   = command[disownParams, nothing]{"script.disown", quick}

	storageGetCookies    = command[cookieQuery, cookieList]{"storage.getCookies", quick}
	storageSetCookie     = command[cookieSetting, nothing]{"storage.setCookie", quick}
	storageDeleteCookies = command[cookieQuery, nothing]{"storage.deleteCookies", quick}

	inputPerform  = command[performParams, nothing]{"input.performActions", patient}
	inputRelease  = command[inContext, nothing]{"input.releaseActions", quick}
	inputSetFiles = command[setFilesParams, nothing]{"input.setFiles", patient}

	extensionInstall = command[extensionParams, extensionResult]{"webExtension.install", time.Minute}

	// Chromium's own (chromium-bidi, "goog:cdp").
	cdpSession = command[inContext, cdpSessionResult]{"goog:cdp.getSession", quick}
	cdpSend    = command[cdpParams, json.RawMessage]{"goog:cdp.sendCommand", patient}
)

type newSession struct {
	Capabilities struct {
		AlwaysMatch map[string]any `json:"alwaysMatch"`
	} `json:"capabilities"`
}

type newSessionResult struct {
	Capabilities capabilities `json:"capabilities"`
}

// capabilities is what a session tells about its browser.
type capabilities struct {
	BrowserName    string `json:"browserName"`
	BrowserVersion string `json:"browserVersion"`
	Headless       bool   `json:"moz:headless"`
	WebSocketURL   string `json:"webSocketUrl"`
}

type subscription struct {
	Events []string `json:"events"`
}

type userContext struct {
	UserContext string `json:"userContext"`
}

type newUserContext struct {
	Proxy *proxySettings `json:"proxy,omitempty"`
}

// proxySettings is session.ProxyConfiguration, by hand.
type proxySettings struct {
	Type    string   `json:"proxyType"`
	HTTP    string   `json:"httpProxy"`
	SSL     string   `json:"sslProxy,omitempty"`
	NoProxy []string `json:"noProxy,omitempty"`
}

type downloadBehavior struct {
	Behavior     *downloadTarget `json:"downloadBehavior"`
	UserContexts []string        `json:"userContexts,omitempty"`
}

type downloadTarget struct {
	Type   string `json:"type"`
	Folder string `json:"destinationFolder,omitempty"`
}

type inContext struct {
	Context string `json:"context"`
}

type closeParams struct {
	Context      string `json:"context"`
	PromptUnload bool   `json:"promptUnload"`
}

type createParams struct {
	Type        string `json:"type"`
	UserContext string `json:"userContext,omitempty"`
	Background  bool   `json:"background,omitempty"`
}

type treeParams struct {
	Root     string `json:"root,omitempty"`
	MaxDepth *int   `json:"maxDepth,omitempty"`
}

type treeResult struct {
	Contexts []contextInfo `json:"contexts"`
}

type promptParams struct {
	Context  string  `json:"context"`
	Accept   bool    `json:"accept"`
	UserText *string `json:"userText,omitempty"`
}

type navigateParams struct {
	Context string `json:"context"`
	URL     string `json:"url"`
	Wait    string `json:"wait"`
}

type navigateResult struct {
	Navigation string `json:"navigation"`
	URL        string `json:"url"`
}

type reloadParams struct {
	Context string `json:"context"`
	Wait    string `json:"wait"`
}

type traverseParams struct {
	Context string `json:"context"`
	Delta   int    `json:"delta"`
}

type viewportParams struct {
	Context      string    `json:"context,omitempty"`
	UserContexts []string  `json:"userContexts,omitempty"`
	Viewport     *viewport `json:"viewport"`
}

type viewport struct {
	Width  int32 `json:"width"`
	Height int32 `json:"height"`
}

type screenshotParams struct {
	Context string       `json:"context"`
	Origin  string       `json:"origin,omitempty"`
	Format  *imageFormat `json:"format,omitempty"`
	Clip    *clip        `json:"clip,omitempty"`
}

type imageFormat struct {
	Type    string   `json:"type"`
	Quality *float64 `json:"quality,omitempty"`
}

type clip struct {
	Type   string  `json:"type"`
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
}

type screenshotResult struct {
	Data []byte `json:"data"`
}

type preloadParams struct {
	Function     string   `json:"functionDeclaration"`
	Sandbox      string   `json:"sandbox,omitempty"`
	Contexts     []string `json:"contexts,omitempty"`
	UserContexts []string `json:"userContexts,omitempty"`
}

type preloadResult struct {
	Script string `json:"script"`
}

type disownParams struct {
	Handles []string     `json:"handles"`
	Target  scriptTarget `json:"target"`
}

type performParams struct {
	Context string       `json:"context"`
	Actions []w3c.Source `json:"actions"`
}

type setFilesParams struct {
	Context string    `json:"context"`
	Element reference `json:"element"`
	Files   []string  `json:"files"`
}

type extensionParams struct {
	Data map[string]any `json:"extensionData"`
}

type extensionResult struct {
	Extension string `json:"extension"`
}

type cdpSessionResult struct {
	Session string `json:"session"`
}

type cdpParams struct {
	Method  string `json:"method"`
	Params  any    `json:"params"`
	Session string `json:"session,omitempty"`
}
