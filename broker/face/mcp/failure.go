package mcp

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// fail makes the result of a call that failed: an error of the tool, which a model sees, never one of the protocol. The
// text says code and reason, what is wrong, what to do next and whether to try again; the structure has it all.
func (r *reply) fail(err error) *mcp.CallToolResult {
	e := r.named(fault.From(err))
	head := fault.Word(e.Code)
	if reason := e.ReasonWord(); reason != "" {
		head += " (" + reason + ")"
	}
	var text []string
	if r.quotesPage(e) {
		text = append(text, head, fence("", e.Message))
	} else {
		text = append(text, head+": "+e.Message)
	}
	for _, step := range texts(e.Details["manual_steps"]) {
		text = append(text, "- "+step)
	}
	if step := next(e); r.blank && e.Code == fault.ElementNotFound {
		text = append(text, "next: "+firstOpen)
	} else if step != "" {
		text = append(text, "next: "+step)
	}
	text = append(text, "retry: "+retry(e))
	if data := pageDetails(e); data != "" {
		text = append(text, fence("", data))
	}
	res := &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: strings.Join(text, "\n")}}}
	if r.structured {
		if data, err := wire.Marshal(e.Proto()); err == nil {
			res.StructuredContent = map[string]json.RawMessage{"error": data}
		}
	}
	return res
}

// named says an error in the words that a model knows: tools for methods, and a session by its name.
func (r *reply) named(e *fault.Error) *fault.Error {
	e = e.Clone()
	e.Message = renamed(e.Message)
	if r.seat == nil || r.seat.id == "" {
		return e
	}
	e.Message = strings.ReplaceAll(e.Message, r.seat.id, r.seat.name)
	if e.Details["session_id"] == r.seat.id {
		delete(e.Details, "session_id")
	}
	if e.Details[fault.KeyField] == "session_id" {
		e.Details[fault.KeyField] = argSession
	}
	return e
}

// firstOpen is what to do about a page that is empty because its session is new.
const firstOpen = "the session is new and its page is empty: browser_open a URL first"

// quoted finds what stands between quotation marks.
var quoted = regexp.MustCompile(`"([^"]*)"`)

// quotesPage says that the message of an error may hold words of the page: what a script threw, how an element is called,
// and whatever else is quoted that the call did not say itself.
func (r *reply) quotesPage(e *fault.Error) bool {
	if e.ReasonWord() == "script_error" || e.Code == fault.ElementNotActionable {
		return true
	}
	if e.Details[fault.KeyProvider] == nil {
		return false
	}
	for _, m := range quoted.FindAllStringSubmatch(e.Message, -1) {
		if r.seat != nil && m[1] == r.seat.name {
			continue
		}
		if !strings.Contains(string(r.asked), strings.Trim(string(encode(m[1])), `"`)) {
			return true
		}
	}
	return false
}

// next is the next step for those failures whose step is another tool.
func next(e *fault.Error) string {
	switch e.ReasonWord() {
	case "stale_ref":
		return "take a new browser_snapshot and use its refs"
	case "ambiguous_target":
		return "use the element_ref of one of the candidates"
	case "dialog_open":
		return "answer the dialog with browser_dialog_respond"
	case "covered":
		return "close or scroll away what covers it, or use force: true"
	case "not_visible", "zero_size":
		return "bring it into view with browser_scroll, or open what hides it"
	case "disabled":
		return "fill in what enables it"
	case "moving":
		return "wait a moment, then try again"
	case "session_lost", "provider_exited":
		return "browser_open starts a new browser; pages and logins of the old one are gone"
	case "page_unresponsive":
		return "browser_reload or browser_open ends the page's script"
	case "page_crashed":
		return "browser_tab_new opens another page"
	case "no_provider":
		return "tell the person what has to be set up; the prompt setup has the steps"
	case "policy_denied", "url_refused", "path_refused":
		return "do not try again; tell the person that the policy does not allow it"
	}
	switch e.Code {
	case fault.ElementNotFound, fault.InvalidSelector:
		return "take a browser_snapshot and use a ref of it"
	case fault.SessionNotFound:
		return "browser_open starts a new session"
	case fault.PageNotFound:
		return "browser_tab_list shows the pages"
	case fault.SetupRequired:
		return "tell the person what has to be set up"
	default:
		return ""
	}
}

func retry(e *fault.Error) string {
	if !e.Retryable {
		return "no"
	}
	switch how, _ := e.Details[fault.KeyRetry].(string); how {
	case "same":
		return "the same call may succeed"
	case "new_session":
		return "in a new session"
	case "after_ms":
		return fmt.Sprintf("after %v ms", e.Details[fault.KeyRetryAfter])
	default:
		return "yes"
	}
}

// detailLimit is how many bytes of details an error's text holds.
const detailLimit = 4 << 10

// pageDetails gives the details that hold text of the page, as JSON.
func pageDetails(e *fault.Error) string {
	some := map[string]any{}
	for _, key := range []string{"candidates", "dialog", "covered_by", "covered_by_ref", "stack"} {
		if v, ok := e.Details[key]; ok {
			some[key] = v
		}
	}
	if data := encode(some); len(some) > 0 && len(data) <= detailLimit {
		return string(data)
	}
	return ""
}

// texts gives the texts of a list, whose type depends on whether it came over a wire.
func texts(v any) []string {
	switch v := v.(type) {
	case []string:
		return v
	case []any:
		var out []string
		for _, x := range v {
			if s, ok := x.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}
