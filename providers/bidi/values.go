package bidi

import (
	"encoding/json"
	"fmt"
	"strings"
)

// scriptTarget is where a script runs: the engine's sandbox of a document, or its page's own realm.
type scriptTarget struct {
	Context string `json:"context"`
	Sandbox string `json:"sandbox,omitempty"`
}

// serialization says how much of a value the browser writes.
type serialization struct {
	MaxDomDepth    *int   `json:"maxDomDepth,omitempty"`
	MaxObjectDepth *int   `json:"maxObjectDepth,omitempty"`
	ShadowTree     string `json:"includeShadowTree,omitempty"`
}

type evaluateParams struct {
	Expression    string         `json:"expression"`
	Target        scriptTarget   `json:"target"`
	AwaitPromise  bool           `json:"awaitPromise"`
	Ownership     string         `json:"resultOwnership,omitempty"`
	Serialization *serialization `json:"serializationOptions,omitempty"`
}

type callParams struct {
	Function      string         `json:"functionDeclaration"`
	Arguments     []any          `json:"arguments,omitempty"`
	Target        scriptTarget   `json:"target"`
	AwaitPromise  bool           `json:"awaitPromise"`
	Ownership     string         `json:"resultOwnership,omitempty"`
	Serialization *serialization `json:"serializationOptions,omitempty"`
}

// evaluateResult is script.EvaluateResult: a value, or what the script threw.
type evaluateResult struct {
	Type      string      `json:"type"` // success or exception
	Realm     string      `json:"realm"`
	Result    remoteValue `json:"result"`
	Exception *exception  `json:"exceptionDetails"`
}

type exception struct {
	Text       string      `json:"text"`
	Value      remoteValue `json:"exception"`
	Line       int         `json:"lineNumber"`
	StackTrace stackTrace  `json:"stackTrace"`
}

type stackTrace struct {
	CallFrames []callFrame `json:"callFrames"`
}

type callFrame struct {
	Function string `json:"functionName"`
	URL      string `json:"url"`
	Line     int    `json:"lineNumber"`
	Column   int    `json:"columnNumber"`
}

// String writes a stack the way that consoles do.
func (s stackTrace) String() string {
	var b strings.Builder
	for _, f := range s.CallFrames {
		name := f.Function
		if name == "" {
			name = "(anonymous)"
		}
		fmt.Fprintf(&b, "    at %s (%s:%d:%d)\n", name, f.URL, f.Line+1, f.Column+1)
	}
	return strings.TrimRight(b.String(), "\n")
}

// reference names an object that the browser holds: a node by its shared id, anything else by its handle.
type reference struct {
	SharedID string `json:"sharedId,omitempty"`
	Handle   string `json:"handle,omitempty"`
}

// remoteValue is script.RemoteValue.
type remoteValue struct {
	Type     string          `json:"type"`
	Value    json.RawMessage `json:"value"`
	SharedID string          `json:"sharedId"`
	Handle   string          `json:"handle"`
}

// text gives a string value.
func (v remoteValue) text() (string, bool) {
	var s string
	if v.Type != "string" || json.Unmarshal(v.Value, &s) != nil {
		return "", false
	}
	return s, true
}

// window gives the context of a window proxy.
func (v remoteValue) window() (string, bool) {
	var w inContext
	if v.Type != "window" || json.Unmarshal(v.Value, &w) != nil {
		return "", false
	}
	return w.Context, w.Context != ""
}

// list gives the members of an array.
func (v remoteValue) list() []remoteValue {
	var out []remoteValue
	if v.Type != "array" || json.Unmarshal(v.Value, &out) != nil {
		return nil
	}
	return out
}

// closedRoot gives the shadow root of a node, where it is closed.
func (v remoteValue) closedRoot() (reference, bool) {
	var node struct {
		ShadowRoot *struct {
			SharedID string `json:"sharedId"`
			Value    struct {
				Mode string `json:"mode"`
			} `json:"value"`
		} `json:"shadowRoot"`
	}
	if v.Type != "node" || json.Unmarshal(v.Value, &node) != nil || node.ShadowRoot == nil || node.ShadowRoot.SharedID == "" {
		return reference{}, false
	}
	return reference{SharedID: node.ShadowRoot.SharedID}, node.ShadowRoot.Value.Mode == "closed"
}

// plain gives a value as text, for messages.
func (v remoteValue) plain() string {
	if s, ok := v.text(); ok {
		return s
	}
	switch v.Type {
	case "number", "boolean", "bigint":
		return strings.Trim(string(v.Value), `"`)
	case "undefined", "null":
		return v.Type
	}
	return "[" + v.Type + "]"
}

// localValue writes a JSON value as script.LocalValue.
func localValue(v any) map[string]any {
	switch v := v.(type) {
	case nil:
		return map[string]any{"type": "null"}
	case bool:
		return map[string]any{"type": "boolean", "value": v}
	case string:
		return map[string]any{"type": "string", "value": v}
	case float64:
		return map[string]any{"type": "number", "value": v}
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = localValue(e)
		}
		return map[string]any{"type": "array", "value": list}
	case map[string]any:
		pairs := make([]any, 0, len(v))
		for k, e := range v {
			pairs = append(pairs, []any{k, localValue(e)})
		}
		return map[string]any{"type": "object", "value": pairs}
	}
	return map[string]any{"type": "undefined"}
}
