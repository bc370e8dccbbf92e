package bidi

import (
	"encoding/json"
	"time"
)

// subscribed are the events that a connection is subscribed to.
var subscribed = []string{"browsingContext", "network", "log", "script.realmCreated", "script.realmDestroyed"}

// crashEvent tells of a page whose process ended, in a Chromium.
const crashEvent = "goog:cdp.Inspector.targetCrashed"

// contextInfo is browsingContext.Info.
type contextInfo struct {
	Context     string        `json:"context"`
	Parent      string        `json:"parent"`
	URL         string        `json:"url"`
	UserContext string        `json:"userContext"`
	Opener      string        `json:"originalOpener"`
	Children    []contextInfo `json:"children"`
}

// navigationEvent is browsingContext.NavigationInfo, with what the download and failure events add.
type navigationEvent struct {
	Context    string `json:"context"`
	Navigation string `json:"navigation"`
	URL        string `json:"url"`
	Timestamp  stamp  `json:"timestamp"`

	Download  string `json:"download"` // Chromium names its downloads, Firefox goes by the navigation
	Suggested string `json:"suggestedFilename"`
	Status    string `json:"status"` // complete or canceled
	Path      string `json:"filepath"`
}

type promptEvent struct {
	Context  string  `json:"context"`
	Type     string  `json:"type"`
	Message  string  `json:"message"`
	Default  *string `json:"defaultValue"`
	Accepted bool    `json:"accepted"`
}

type realmEvent struct {
	Realm   string `json:"realm"`
	Context string `json:"context"`
	Type    string `json:"type"`
	Sandbox string `json:"sandbox"`
}

type logEvent struct {
	Type       string        `json:"type"` // console or javascript
	Level      string        `json:"level"`
	Text       *string       `json:"text"`
	Timestamp  stamp         `json:"timestamp"`
	StackTrace *stackTrace   `json:"stackTrace"`
	Method     string        `json:"method"`
	Args       []remoteValue `json:"args"`
	Source     struct {
		Context string `json:"context"`
		Realm   string `json:"realm"`
	} `json:"source"`
}

type networkEvent struct {
	Context    string `json:"context"`
	Navigation string `json:"navigation"`
	Redirects  int    `json:"redirectCount"`
	Timestamp  stamp  `json:"timestamp"`
	ErrorText  string `json:"errorText"`
	Request    struct {
		ID            string `json:"request"`
		URL           string `json:"url"`
		Method        string `json:"method"`
		Destination   string `json:"destination"`
		InitiatorType string `json:"initiatorType"`
		ResourceType  string `json:"goog:resourceType"`
	} `json:"request"`
	Response struct {
		URL      string `json:"url"`
		Status   int32  `json:"status"`
		MimeType string `json:"mimeType"`
	} `json:"response"`
}

// stamp is a time of the protocol: milliseconds since the epoch.
type stamp float64

func (s stamp) time() time.Time {
	if s <= 0 {
		return time.Now()
	}
	return time.UnixMilli(int64(s))
}

// parse reads the params of an event; false when they are not what the specification says.
func parse[E any](params json.RawMessage) (*E, bool) {
	e := new(E)
	return e, json.Unmarshal(params, e) == nil
}

// onEvent sees every event in order, on the reader's goroutine. It never blocks on the browser.
func (b *browser) onEvent(method string, params json.RawMessage) {
	switch method {
	case "browsingContext.contextCreated":
		on(params, b.onCreated)
	case "browsingContext.contextDestroyed":
		on(params, b.onDestroyed)
	case "browsingContext.userPromptOpened":
		on(params, b.onPrompt)
	case "browsingContext.userPromptClosed":
		on(params, b.onPromptClosed)
	case "browsingContext.downloadWillBegin":
		on(params, b.onDownload)
	case "browsingContext.downloadEnd":
		on(params, b.onDownloadEnd)
	case "browsingContext.navigationStarted", "browsingContext.fragmentNavigated", "browsingContext.historyUpdated",
		"browsingContext.navigationCommitted", "browsingContext.domContentLoaded", "browsingContext.load",
		"browsingContext.navigationAborted", "browsingContext.navigationFailed":
		on(params, func(e *navigationEvent) { b.onNavigation(method, e) })
	case "script.realmCreated":
		on(params, b.onRealm)
	case "script.realmDestroyed":
		on(params, b.onRealmGone)
	case crashEvent:
		on(params, b.onTargetCrashed)
	case "log.entryAdded":
		on(params, b.onLog)
	case "network.beforeRequestSent", "network.responseStarted", "network.responseCompleted", "network.fetchError":
		on(params, func(e *networkEvent) { b.onNetwork(method, e) })
	}
}

func on[E any](params json.RawMessage, fn func(*E)) {
	if e, ok := parse[E](params); ok {
		fn(e)
	}
}
