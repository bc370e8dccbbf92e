package mcp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/face/door"
)

// Guards that the official conformance suite is content with the HTTP transport, in what it asks of every server; the rest
// of it calls tools, prompts and resources of its own example server.
func TestOfficialConformance(t *testing.T) {
	suite := npmTool(t, "conformance")
	h := build(t, "", fake())
	d := &door.Door{Tokens: tokens{}}
	guarded := d.Guard(h.face.Handler())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer secret-ann") // the suite has no way to show a token
		guarded.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	for _, scenario := range []string{
		"server-initialize", "ping", "tools-list", "resources-list", "server-sse-multiple-streams", "dns-rebinding-protection",
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, suite, "server", "--url", s.URL+"/mcp", "--scenario", scenario)
			cmd.Env, cmd.Dir = append(os.Environ(), "NO_COLOR=1"), t.TempDir()
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%.4000s", err, out)
			}
		})
	}
}

// npmTool is a program that make setup installs.
func npmTool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../../.tools/node_modules/.bin/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "" {
			t.Skipf("make setup installs it: %v", err)
		}
		t.Fatalf("make setup installs it: %v", err)
	}
	return path
}
