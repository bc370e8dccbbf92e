package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/droverhq/drover/"

// Guards the arrows between the folders: which of ours, and which libraries, a folder may reach at all, however indirectly.
func TestArrowsGoOneWay(t *testing.T) {
	for _, c := range []struct {
		pkg    string
		never  []string
		reason string
	}{
		{"proto/...", []string{module + "broker", module + "plugins", module + "policy", module + "providers"}, "proto imports nothing of ours"},
		{"policy/...", []string{module + "broker", module + "plugins", module + "providers", "google.golang.org/grpc/", "os/exec"}, "policy is pure and starts nothing"},
		{"broker/...", []string{module + "plugins", module + "providers", "github.com/hashicorp/go-plugin"}, "the broker knows no provider"},
		{"broker", []string{"os/exec", "github.com/modelcontextprotocol/"}, "the broker knows no process and no face"},
		{"broker/face/envelope", []string{"os/exec", "github.com/modelcontextprotocol/"}, "the MCP SDK, which can start processes, is in broker/face/mcp alone"},
		{"broker/face/grpc/...", []string{"os/exec", "github.com/modelcontextprotocol/"}, "the MCP SDK, which can start processes, is in broker/face/mcp alone"},
		{"plugins", []string{module + "broker", module + "policy", module + "providers", module + "plugins/host"}, "an author needs the SDK alone"},
		{"plugins/inpage", []string{module + "broker", module + "policy", module + "providers", "github.com/chromedp/", "github.com/hashicorp/go-plugin"}, "the page engine knows no browser"},
		{"plugins/host", []string{module + "broker", module + "policy", module + "providers"}, "host and broker do not know each other"},
		{"providers/...", []string{module + "broker", module + "policy", module + "plugins/host"}, "a provider knows no broker"},
		{"cmd/drover-provider-cdp", []string{module + "broker", module + "policy", "github.com/hashicorp/hcl"}, "a provider binary holds a provider alone"},
		{"cmd/drover", []string{"github.com/chromedp/", "github.com/tebeka/selenium"}, "browsers are driven by providers alone"},
	} {
		t.Run(c.pkg, func(t *testing.T) {
			for _, dep := range deps(t, c.pkg) {
				if i := slices.IndexFunc(c.never, func(p string) bool { return dep == p || strings.HasPrefix(dep, strings.TrimSuffix(p, "/")+"/") }); i >= 0 {
					t.Errorf("%s reaches %s: %s", c.pkg, dep, c.reason)
				}
			}
		})
	}
}

func deps(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+pkg).Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v", pkg, err)
	}
	return strings.Fields(string(out))
}
