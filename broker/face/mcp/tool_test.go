package mcp_test

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/droverhq/drover/broker/face/mcp"
	"github.com/droverhq/drover/proto/catalog"
)

// methodName finds the names of methods, which models do not know.
var methodName = regexp.MustCompile(`\b(page|tab|session|provider|download)\.[a-z]`)

func (u *user) tools() map[string]*sdk.Tool {
	u.t.Helper()
	list, err := u.ListTools(u.t.Context(), nil)
	if err != nil {
		u.t.Fatal(err)
	}
	out := map[string]*sdk.Tool{}
	for _, t := range list.Tools {
		out[t.Name] = t
	}
	return out
}

// Guards that tools come from the catalog alone: each method that names a tool is one, with its hints, and nothing else is.
func TestToolsAreTheCatalogs(t *testing.T) {
	u := build(t, "passthrough {\n allow = [\"cdp.*\"]\n}", withCustom(fake())).connect("mcp", mcp.Hello{Profiles: []string{mcp.ProfileAll}}, nil)
	got := u.tools()
	for _, m := range catalog.All() {
		name := m.Spec.GetMcpTool()
		if name == "" {
			continue
		}
		tool := got[name]
		if tool == nil {
			t.Errorf("%s is no tool", m.Name)
			continue
		}
		delete(got, name)
		a := tool.Annotations
		if a == nil || a.DestructiveHint == nil || a.OpenWorldHint == nil {
			t.Errorf("%s lacks hints", name)
			continue
		}
		if a.ReadOnlyHint != m.Spec.GetReadOnly() || a.IdempotentHint != m.Spec.GetIdempotent() || *a.DestructiveHint != m.Spec.GetDestructive() {
			t.Errorf("%s: hints %+v", name, a)
		}
		if len(tool.Description) < 15 || methodName.MatchString(tool.Description) {
			t.Errorf("%s: description %q", name, tool.Description)
		}
		checkInput(t, name, tool.InputSchema)
		checkOutput(t, name, tool.OutputSchema)
	}
	for name := range got {
		t.Errorf("%s is a tool of no method", name)
	}
}

// checkInput holds a schema to what every model API takes.
func checkInput(t *testing.T, name string, schema any) {
	t.Helper()
	s, ok := schema.(map[string]any)
	if !ok || s["type"] != "object" {
		t.Errorf("%s: input schema %v", name, schema)
		return
	}
	if _, ok := s["properties"].(map[string]any)["session_id"]; ok {
		t.Errorf("%s shows a session_id", name)
	}
	walk(t, name, s)
}

func walk(t *testing.T, at string, s map[string]any) {
	t.Helper()
	for _, word := range []string{"oneOf", "anyOf", "allOf", "not", "if", "$ref", "$defs", "const", "patternProperties"} {
		if _, ok := s[word]; ok {
			t.Errorf("%s uses %s", at, word)
		}
	}
	if kind, ok := s["type"]; ok {
		if _, ok := kind.(string); !ok {
			t.Errorf("%s: type is %v", at, kind)
		}
	}
	if s["type"] == "array" && s["items"] == nil {
		t.Errorf("%s: an array without items", at)
	}
	props, _ := s["properties"].(map[string]any)
	for name, p := range props {
		walk(t, at+"."+name, p.(map[string]any))
	}
	for _, r := range anys(s["required"]) {
		if props[r.(string)] == nil {
			t.Errorf("%s requires %v, which it has not", at, r)
		}
	}
	if items, ok := s["items"].(map[string]any); ok {
		walk(t, at+"[]", items)
	}
}

func anys(v any) []any { l, _ := v.([]any); return l }

func checkOutput(t *testing.T, name string, schema any) {
	t.Helper()
	s, ok := schema.(map[string]any)
	if !ok || s["type"] != "object" || s["required"] != nil || s["additionalProperties"] != nil {
		t.Errorf("%s: output schema %v", name, schema)
	}
}

// playwrightBytes is the size of the tools/list result of @playwright/mcp 0.0.83 with its defaults, as JSON.
const playwrightBytes = 20296

// Guards the cost of the tools that every client puts before its model.
func TestCoreIsSmall(t *testing.T) {
	u := build(t, "", fake()).agent()
	list, err := u.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if limit := playwrightBytes * 60 / 100; len(data) > limit {
		t.Errorf("tools/list has %d bytes, more than %d", len(data), limit)
	}
	t.Logf("%d tools, %d bytes", len(list.Tools), len(data))
}

// Guards the profiles: each adds its own tools, all has every one, and a wrong one is refused with the nearest.
func TestProfiles(t *testing.T) {
	h := build(t, "", fake())
	core := h.connect("a", mcp.Hello{}, nil).tools()
	both := h.connect("b", mcp.Hello{Profiles: []string{"core", "network"}}, nil).tools()
	if core["browser_click"] == nil || core["browser_network_list"] != nil || core["browser_eval"] != nil {
		t.Error("core is not core")
	}
	if both["browser_click"] == nil || both["browser_network_list"] == nil {
		t.Error("core,network lacks one of them")
	}
	if _, err := mcp.ParseProfiles("core,netwrok"); err == nil || !strings.Contains(err.Error(), `"network"`) {
		t.Errorf("a wrong profile: %v", err)
	}
	if got, err := mcp.ParseProfiles(" network , core ,network"); err != nil || !slices.Equal(got, []string{"core", "network"}) {
		t.Errorf("got %v, %v", got, err)
	}
}

// Guards passthrough: the tool is there only where the policy lets this caller use some custom method, and names those.
func TestPassthroughIsListedWhereAllowed(t *testing.T) {
	hello := mcp.Hello{Profiles: []string{"core", "debug"}}
	if tools := build(t, "", withCustom(fake())).connect("mcp", hello, nil).tools(); tools["browser_provider_command"] != nil {
		t.Error("it is listed without being allowed")
	}
	u := build(t, "passthrough {\n allow = [\"cdp.send\"]\n}", withCustom(fake())).connect("mcp", hello, nil)
	tool := u.tools()["browser_provider_command"]
	if tool == nil || !strings.Contains(tool.Description, "cdp.send") || strings.Contains(tool.Description, "cdp.secret") {
		t.Fatalf("got %+v", tool)
	}
	u.do("browser_provider_command", map[string]any{"provider_method": "cdp.send", "params": map[string]any{"method": "Page.enable"}})
	u.fails("browser_provider_command", map[string]any{"provider_method": "cdp.secret"}, "permission_denied (policy_denied)")
}

// Guards the words of a wrong call: they name the argument and the one that was meant.
func TestWrongArguments(t *testing.T) {
	u := build(t, "", fake()).agent()
	for _, c := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"browser_open", map[string]any{"urls": "http://a.test/"}, `did you mean "url"?`},
		{"browser_open", map[string]any{}, "url"},
		{"browser_click", map[string]any{"selector": "a", "text_query": "b"}, "text_query"},
		{"browser_click", map[string]any{"session_id": "x", "selector": "a"}, `"session"`},
		{"browser_snapshot", map[string]any{"format": "outline"}, "format"},
		{"browser_click", map[string]any{"selector": "a", "snapshot": "some"}, "none, delta, full"},
		{"browser_snapshot", map[string]any{"budget": -1}, "budget"},
		{"browser_snapshot", map[string]any{"budget": "many"}, "budget"},
		{"browser_session", map[string]any{"client_session_id": "x"}, `"session"`},
	} {
		if text := u.fails(c.tool, c.args, "invalid_request"); !strings.Contains(text, c.want) {
			t.Errorf("%s %v: %s", c.tool, c.args, text)
		}
	}
	for raw, want := range map[string]string{
		`{"url":"http://a.test/","url":"http://b.test/"}`: "url stands twice",
		`{"url":"http://a.test/","budget":1,"budget":2}`:  "budget stands twice",
	} {
		r, err := u.CallTool(context.Background(), &sdk.CallToolParams{Name: "browser_open", Arguments: json.RawMessage(raw)})
		if err != nil || !r.IsError {
			t.Errorf("%.60s: %+v, %v", raw, r, err)
			continue
		}
		if c, ok := r.Content[0].(*sdk.TextContent); !ok || !strings.HasPrefix(c.Text, "invalid_request") || !strings.Contains(c.Text, want) {
			t.Errorf("%.60s: %+v", raw, r.Content[0])
		}
	}
	if _, err := u.CallTool(context.Background(), &sdk.CallToolParams{Name: "browser_clik"}); err == nil {
		t.Error("an unknown tool is called")
	}
}
