package mcp_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/droverhq/drover/broker/face/mcp"
)

// form is what a client's configuration looks like: the language, the file it goes to, the key of its servers, what a server
// must say, and what it may say beside that.
type form struct {
	language, file, servers string
	must, may               []string
}

// forms are those of the clients that docs/clients.md tells of, by their own documentation.
var forms = map[string][]form{
	"Claude Code": {
		{language: "sh"},
		{"json", ".mcp.json", "mcpServers", []string{"command", "args"}, []string{"type", "env"}},
	},
	"Claude Desktop":        {{"json", "claude_desktop_config.json", "mcpServers", []string{"command", "args"}, []string{"env"}}},
	"Cursor":                {{"json", "~/.cursor/mcp.json", "mcpServers", []string{"command", "args"}, []string{"type", "env", "envFile"}}},
	"VS Code":               {{"json", ".vscode/mcp.json", "servers", []string{"type", "command", "args"}, []string{"env", "envFile"}}},
	"Windsurf":              {{"json", "~/.codeium/windsurf/mcp_config.json", "mcpServers", []string{"command", "args"}, []string{"env"}}},
	"Zed":                   {{"json", "settings.json", "context_servers", []string{"command", "args"}, []string{"env", "source", "enabled"}}},
	"Gemini CLI":            {{"json", "~/.gemini/settings.json", "mcpServers", []string{"command", "args"}, []string{"env", "cwd", "timeout", "trust"}}},
	"Codex CLI":             {{language: "toml", file: "~/.codex/config.toml"}},
	"OpenCode":              {{"json", "opencode.json", "mcp", []string{"type", "command"}, []string{"enabled", "environment", "timeout"}}},
	"Goose":                 {{language: "yaml", file: "~/.config/goose/config.yaml"}},
	"GitHub Copilot CLI":    {{"json", "~/.copilot/mcp-config.json", "mcpServers", []string{"type", "command", "args", "tools"}, []string{"env", "cwd"}}},
	"Cline":                 {{"json", "cline_mcp_settings.json", "mcpServers", []string{"command", "args"}, []string{"env", "disabled", "timeout", "alwaysAllow"}}},
	"Kiro":                  {{"json", ".kiro/settings/mcp.json", "mcpServers", []string{"command", "args"}, []string{"env", "disabled", "autoApprove", "disabledTools"}}},
	"LM Studio":             {{"json", "mcp.json", "mcpServers", []string{"command", "args"}, []string{"env"}}},
	"Any client, over HTTP": {{"json", "", "mcpServers", []string{"type", "url", "headers"}, nil}},
}

// Guards the configurations that people copy from docs/clients.md: each client's is of that client's form, goes to its file,
// and starts drover mcp, or names /mcp with a token.
func TestClientConfigurations(t *testing.T) {
	data, err := os.ReadFile("../../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	section := strings.Split(string(data), "\n## gRPC")[0]
	seen := map[string]bool{}
	for _, part := range strings.Split(section, "\n### ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		seen[name] = true
		blocks := regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```").FindAllStringSubmatch(body, -1)
		if len(blocks) != len(forms[name]) {
			t.Errorf("%s has %d blocks, want %d", name, len(blocks), len(forms[name]))
			continue
		}
		for i, f := range forms[name] {
			language, text := blocks[i][1], blocks[i][2]
			if language != f.language || !strings.Contains(body, "`"+f.file) {
				t.Errorf("%s: a block of %s, or no word of %s", name, language, f.file)
			}
			switch language {
			case "json":
				f.check(t, name, text)
			case "sh":
				if !strings.HasSuffix(strings.TrimSpace(text), "-- drover mcp") {
					t.Errorf("%s: %s", name, text)
				}
			case "toml":
				if text != "[mcp_servers.browser]\ncommand = \"drover\"\nargs = [\"mcp\"]\n" {
					t.Errorf("%s: %s", name, text)
				}
			default:
				checkGoose(t, text)
			}
		}
	}
	for name := range forms {
		if !seen[name] {
			t.Errorf("there is nothing about %s", name)
		}
	}
}

func (f form) check(t *testing.T, name, text string) {
	t.Helper()
	var top map[string]map[string]map[string]any
	if err := json.Unmarshal([]byte(text), &top); err != nil || len(top) != 1 || len(top[f.servers]) != 1 {
		t.Errorf("%s: %s: %v", name, text, err)
		return
	}
	for _, s := range top[f.servers] {
		for key := range s {
			if !slices.Contains(f.must, key) && !slices.Contains(f.may, key) {
				t.Errorf("%s has no %s", name, key)
			}
		}
		for _, key := range f.must {
			if s[key] == nil {
				t.Errorf("%s lacks %s", name, key)
			}
		}
		if url, ok := s["url"].(string); ok {
			if h, ok := s["headers"].(map[string]any); !ok || h["Authorization"] != "Bearer TOKEN" || !strings.HasSuffix(url, "/mcp") {
				t.Errorf("%s: %s", name, text)
			}
			continue
		}
		words, _ := s["command"].([]any) // one client has it in one list
		if one, ok := s["command"].(string); ok {
			words = []any{one}
		}
		more, _ := s["args"].([]any)
		if words = append(words, more...); len(words) < 2 || words[0] != "drover" || words[1] != "mcp" || len(words) > 2 && words[2] != "--text" {
			t.Errorf("%s starts %v", name, words)
		}
	}
}

// checkGoose reads the extension of a Goose configuration.
func checkGoose(t *testing.T, text string) {
	t.Helper()
	var c struct {
		Extensions map[string]struct {
			Type, Name, Cmd string
			Enabled         bool
			Args            []string
			Timeout         int
		}
	}
	err := yaml.Unmarshal([]byte(text), &c)
	if e := c.Extensions["browser"]; err != nil || e.Type != "stdio" || !e.Enabled || e.Name != "browser" || e.Cmd != "drover" || !slices.Equal(e.Args, []string{"mcp"}) || e.Timeout <= 0 {
		t.Errorf("Goose: %+v, %v", c, err)
	}
}

// Guards the table of profiles in docs/mcp.md.
func TestProfilesAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range mcp.Profiles() {
		if !strings.Contains(string(data), "`"+p+"`") {
			t.Errorf("docs/mcp.md does not name the profile %s", p)
		}
	}
}
