package extension

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
	"github.com/droverhq/drover/providers/extension/bridge"
)

// catalogTools are the tools of the protocol's catalog, each a custom method extension.NAME.
var catalogTools = []struct{ name, purpose string }{
	{"tabs_context_mcp", "Tell the tabs of the extension's group: {createIfEmpty}."},
	{"tabs_create_mcp", "Open a tab in the extension's group."},
	{"navigate", "Load an address, or go back or forward: {url, tabId}."},
	{"computer", "Use mouse, keyboard and screen: {action, tabId, coordinate, ref, text, …}."},
	{"read_page", "Read the page as a tree with refs of the extension's own: {tabId, filter, depth, max_chars, ref_id}."},
	{"get_page_text", "Read the page's text: {tabId}."},
	{"find", "Find elements by words: {query, tabId}."},
	{"form_input", "Set a field: {ref, value, tabId}."},
	{"javascript_tool", "Evaluate JavaScript in the page: {text, tabId}."},
	{"read_console_messages", "Read the console: {tabId, pattern, limit, onlyErrors, clear}."},
	{"read_network_requests", "Read the network requests: {tabId, urlPattern, limit, clear}."},
	{"resize_window", "Resize the tab's window: {width, height, tabId}."},
	{"upload_image", "Give a screenshot to a page: {imageId, tabId, ref, coordinate}."},
	{"update_plan", "Echo a plan: {domains, approach}."},
	{"gif_creator", "Reserved by the protocol; the extension answers with a notice."},
	{"shortcuts_list", "Reserved by the protocol; the extension answers with a notice."},
	{"shortcuts_execute", "Reserved by the protocol; the extension answers with a notice."},
	{"switch_browser", "Reserved by the protocol; the extension answers with a notice."},
}

// registerTools registers every tool of the catalog as a custom method. params are the tool's own; a session's active page is
// the tab unless tabId names another of the extension's group.
func (p *Provider) registerTools(s *plugins.Server) {
	in, _ := wire.ToStruct(map[string]any{"type": "object", "description": "The tool's arguments, as the Browser Operator Protocol has them."})
	out, _ := wire.ToStruct(map[string]any{"type": "object", "properties": map[string]any{
		"content": map[string]any{"type": "array", "items": map[string]any{"type": "object"}, "description": "Blocks of text, and of pictures in base64."},
	}})
	for _, t := range catalogTools {
		m := &browserv1.CustomMethod{
			Name: "extension." + t.name, Description: t.purpose, Stability: browserv1.Stability_STABILITY_EXPERIMENTAL, InputSchema: in, OutputSchema: out,
		}
		s.HandleCustom(m, func(ctx context.Context, r *browserv1.CustomRequest) (*structpb.Value, error) {
			return p.tool(ctx, t.name, r)
		})
	}
}

// toolTime is how long a tool may take: navigate waits up to 10 s by itself, wait up to 30 s.
const toolTime = 45 * time.Second

func (p *Provider) tool(ctx context.Context, name string, r *browserv1.CustomRequest) (*structpb.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	if r.GetSessionId() == "" {
		return nil, fault.New(fault.InvalidRequest, "extension.%s needs a session", name).Field("session_id").Hint("call session.ensure first")
	}
	conn, target, err := p.driver.Page(r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	rel, ok := conn.(*relay)
	if !ok {
		return nil, fault.New(fault.InternalError, "the session has no bridge")
	}
	args := r.GetParams().AsMap()
	own := rel.byTarget(target)
	if given, has := args["tabId"]; has {
		if id, ok := number(given); !ok || !rel.has(id) {
			return nil, fault.New(fault.PageNotFound, "the session has no tab %v", given).Field("params.tabId").Hint("leave tabId out for the active page")
		}
	} else if own != nil {
		args["tabId"] = own.id
	}
	res, err := rel.node.Command(ctx, rel.target, name, args)
	if said, refused := bridge.Refused(err); refused {
		return nil, fault.New(fault.InvalidRequest, "%s", said).Reason("tool_failed")
	}
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(res)
	if err != nil {
		return nil, err
	}
	return wire.ParseValue(data)
}

func number(v any) (int, bool) {
	switch v := v.(type) {
	case float64:
		return int(v), v == float64(int(v))
	case string:
		n, err := strconv.Atoi(strings.TrimSpace(v))
		return n, err == nil
	}
	return 0, false
}

// has says whether a tab is one of the session's.
func (r *relay) has(id int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tabs[id] != nil
}
