package mcp

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// firstStructured is the first version of MCP with structured content; older clients get it as text.
const firstStructured = "2025-06-18"

// reply collects what a tool call gives: short words, blocks of page text, the structured result, pictures and links.
type reply struct {
	tool       *tool
	structured bool   // the client understands structured content
	room       int    // bytes of text and structure together; 0 for no limit
	session    string // the session's name, where the client would not know it
	finished   bool   // nothing is left to call
	blank      bool   // the session was made for a call that needs a page, and has an empty one
	asked      json.RawMessage
	seat       *seat // the session that the call is about; nil where it is about none, or found none

	words    []string
	pages    []string
	fields   map[string]json.RawMessage
	content  []mcp.Content
	warnings []*browserv1.Warning
}

// say adds a short sentence of the face's own.
func (r *reply) say(text string) { r.words = append(r.words, text) }

func (r *reply) warn(w []*browserv1.Warning) { r.warnings = append(r.warnings, w...) }

// set sets a field of the structured result to a text.
func (r *reply) set(name, text string) { r.fields[name] = encode(text) }

// take makes the structured result of a response, less what the face tells in another form, and says in a few words what
// came of the call. The response is changed.
func (r *reply) take(resp proto.Message) error {
	m := resp.ProtoReflect()
	fds := m.Descriptor().Fields()
	hidden := []string{"session_id"}
	for i := range fds.Len() {
		if fd := fds.Get(i); wire.SpecOf(fd).GetOffMcp() {
			m.Clear(fd)
			hidden = append(hidden, string(fd.Name()))
		}
	}
	r.words = append(r.words, words(r.tool.method, m)...)
	if w, ok := resp.(interface{ GetWarnings() []*browserv1.Warning }); ok {
		r.warn(w.GetWarnings())
	}
	data, _, err := wire.MarshalResponse(resp)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &r.fields); err != nil {
		return fault.New(fault.InternalError, "the result of %s cannot be read", r.tool.method.Name).Cause(err)
	}
	for _, name := range hidden {
		delete(r.fields, name)
	}
	if r.blank && string(r.fields["url"]) == `"about:blank"` {
		r.say(firstOpen)
	}
	if r.session != "" {
		r.set(argSession, r.session)
		r.say("session " + r.session)
	}
	return nil
}

// words tells the outcome for a person or model that sees the text alone: what holds, how many of what, ids of what is
// new. Text of the page stays out; it is in the structured result.
func words(method *catalog.Method, m protoreflect.Message) []string {
	var out []string
	fds := m.Descriptor().Fields()
	for i := range fds.Len() {
		fd := fds.Get(i)
		name := strings.ReplaceAll(string(fd.Name()), "_", " ")
		switch {
		case fd.Name() == "warnings" || fd.IsMap() || wire.SpecOf(fd).GetOffMcp():
		case fd.IsList() && strings.HasSuffix(string(fd.Name()), "_ids"):
			if l := m.Get(fd).List(); l.Len() > 0 {
				out = append(out, strings.TrimSuffix(name, "s")+" "+joined(l))
			}
		case fd.IsList():
			if n := m.Get(fd).List().Len(); n > 0 || len(out) == 0 {
				out = append(out, fmt.Sprintf("%d %s", n, name))
			}
		case fd.Kind() == protoreflect.BoolKind && m.Get(fd).Bool():
			out = append(out, name)
		case fd.Name() == "satisfied":
			out = append(out, "not satisfied in time")
		case fd.Name() == "dialog" && m.Has(fd):
			out = append(out, "a dialog is open: answer it with browser_dialog_respond")
		case fd.Name() == "http_status" && m.Has(fd) && m.Get(fd).Int() >= 400:
			out = append(out, fmt.Sprintf("HTTP status %d", m.Get(fd).Int()))
		case fd.Name() == "navigation_state" && method.Spec.GetNavigates() && m.Has(fd):
			out = append(out, "navigation "+wire.Words(fd.Enum())[m.Get(fd).Enum()-1])
		}
	}
	return out
}

func joined(l protoreflect.List) string {
	parts := make([]string, l.Len())
	for i := range parts {
		parts[i] = l.Get(i).String()
	}
	return strings.Join(parts, ", ")
}

// result gives the finished reply.
func (r *reply) result() *mcp.CallToolResult {
	var text []string
	if len(r.words) > 0 {
		text = append(text, strings.Join(r.words, "; "))
	}
	for _, w := range r.warnings {
		text = append(text, "warning ("+w.GetCode()+"): "+renamed(w.GetMessage()))
	}
	text = append(text, r.pages...)
	res := &mcp.CallToolResult{}
	if r.structured {
		res.StructuredContent = r.fields
	} else if len(r.fields) > 0 {
		text = append(text, fence(r.origin(), string(encode(r.fields))))
	}
	res.Content = r.content
	if len(text) > 0 {
		res.Content = append([]mcp.Content{&mcp.TextContent{Text: strings.Join(text, "\n")}}, r.content...)
	}
	return res
}

func (r *reply) origin() string {
	var address string
	_ = json.Unmarshal(r.fields["url"], &address) // none is none
	return originOf(address)
}
