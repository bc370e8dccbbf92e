package mcp_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/face/mcp"
)

// Guards the configurations that people copy from docs/clients.md: each is of its client's form and starts drover mcp, or
// names /mcp.
func TestClientConfigurations(t *testing.T) {
	data, err := os.ReadFile("../../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	section := strings.Split(string(data), "\n## gRPC")[0]
	clients := 0
	for part := range strings.SplitSeq(section, "\n### ") {
		name, body, _ := strings.Cut(part, "\n")
		for _, b := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```").FindAllStringSubmatch(body, -1) {
			clients++
			switch b[1] {
			case "json":
				checkJSON(t, name, b[2])
			case "sh":
				if !strings.HasSuffix(strings.TrimSpace(b[2]), "-- drover mcp") {
					t.Errorf("%s: %s", name, b[2])
				}
			default: // TOML and YAML, whose parsers are not worth a module
				if !strings.Contains(b[2], "drover") || !regexp.MustCompile(`args\s*[=:]\s*\["?mcp"?`).MatchString(b[2]) {
					t.Errorf("%s: %s", name, b[2])
				}
			}
		}
	}
	if clients < 10 {
		t.Errorf("only %d clients", clients)
	}
}

func checkJSON(t *testing.T, name, text string) {
	t.Helper()
	var top map[string]map[string]struct {
		Command json.RawMessage   `json:"command"`
		Args    []string          `json:"args"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
	}
	if err := json.Unmarshal([]byte(text), &top); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	for key, servers := range top {
		if !slices.Contains([]string{"mcpServers", "servers", "context_servers", "mcp"}, key) {
			t.Errorf("%s: %s", name, key)
		}
		for _, s := range servers {
			var words []string
			if err := json.Unmarshal(s.Command, &words); err != nil {
				var one string
				_ = json.Unmarshal(s.Command, &one)
				words = append([]string{one}, s.Args...)
			}
			switch {
			case s.URL != "" && strings.HasSuffix(s.URL, "/mcp") && strings.HasPrefix(s.Headers["Authorization"], "Bearer "):
			case len(words) >= 2 && words[0] == "drover" && words[1] == "mcp":
			default:
				t.Errorf("%s: %s", name, text)
			}
		}
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
