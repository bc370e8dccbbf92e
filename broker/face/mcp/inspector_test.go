package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Guards that the official inspector is content with both transports in both eras: it connects, finds nothing to say about
// any tool's schema, calls tools, and lists what else there is.
func TestInspector(t *testing.T) {
	path := npmTool(t, "mcp-inspector")
	h := build(t, "", fake())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for transport, server := range map[string][]string{
		"stdio": {self, "-e", asServer + "=1"},
		"http":  {h.http(), "--transport", "http", "--header", "Authorization: Bearer secret-ann"},
	} {
		for _, era := range []string{"legacy", "modern"} {
			run := func(t *testing.T, args ...string) map[string]any {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				args = append(append([]string{"--cli"}, server...), append(args, "--protocol-era", era, "--format", "json", "--quiet")...)
				cmd := exec.CommandContext(ctx, path, args...)
				cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "NO_COLOR=1")
				out, err := cmd.Output()
				if err != nil {
					var exit *exec.ExitError
					if errors.As(err, &exit) {
						t.Fatalf("%v: %v\n%s%s", args, err, out, exit.Stderr)
					}
					t.Fatal(err)
				}
				var got map[string]any
				if err := json.Unmarshal(out, &got); err != nil {
					t.Fatalf("%v: %v in %s", args, err, out)
				}
				if r, ok := got["result"].(map[string]any); ok {
					return r
				}
				return got
			}
			t.Run(transport+"/"+era, func(t *testing.T) {
				t.Parallel()
				tools, _ := run(t, "--method", "tools/list", "--strict")["tools"].([]any)
				if len(tools) < 15 {
					t.Errorf("%d tools", len(tools))
				}
				opened := run(t, "--method", "tools/call", "--tool-name", "browser_open", "--tool-arg", "url=http://a.test/")
				if text, err := json.Marshal(opened); err != nil || opened["isError"] == true || !strings.Contains(string(text), `"structuredContent"`) {
					t.Errorf("browser_open gives %s", text)
				}
				if list, ok := run(t, "--method", "resources/templates/list")["resourceTemplates"].([]any); !ok || len(list) == 0 {
					t.Error("no resource templates")
				}
			})
		}
	}
}
