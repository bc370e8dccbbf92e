package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Guards the gRPC clients that people copy from docs/clients.md, in TypeScript and in Python: their stubs are generated as it
// says, their code has the right types, and a daemon with a real browser answers them.
func TestDocumentedClients(t *testing.T) {
	data, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	npm := filepath.Join(root, ".tools", "node_modules")
	for _, need := range []string{npm + "/ts-proto", "/usr/bin/grpc_python_plugin", "/usr/lib/python3/dist-packages/grpc"} {
		if _, err := os.Stat(need); err != nil {
			if os.Getenv("CI") == "" {
				t.Skipf("make setup installs it: %v", err)
			}
			t.Fatalf("make setup installs it: %v", err)
		}
	}
	h := setHomes(t)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>Hello page</title><h1>Hi</h1><button>Go</button>")
	}))
	t.Cleanup(page.Close)
	t.Cleanup(page.CloseClientConnections)
	startServe(t)

	// block gives the first block of a language in a section, as it is but for the address and the socket.
	block := func(section, language string) string {
		t.Helper()
		_, text, _ := strings.Cut(string(data), "\n### "+section+"\n")
		text, _, _ = strings.Cut(text, "\n### ")
		m := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```").FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%s has no block of %s", section, language)
		}
		return strings.NewReplacer("/run/user/1000/drover/drover.sock", h.socket(), "https://example.com", page.URL).Replace(m[1])
	}
	run := func(t *testing.T, dir string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%.3000s", args, err, out)
		}
		return string(out)
	}
	folder := func(t *testing.T, files map[string]string) string {
		t.Helper()
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(root, filepath.Join(dir, "drover")); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	t.Run("TypeScript", func(t *testing.T) {
		dir := folder(t, map[string]string{
			"buf.gen.yaml":  block("TypeScript", "yaml"),
			"main.ts":       block("TypeScript", "ts"),
			"package.json":  `{"type": "module"}`,
			"tsconfig.json": `{"compilerOptions": {"module": "nodenext", "target": "es2022", "strict": true, "skipLibCheck": true, "outDir": "out", "types": ["node"]}, "include": ["main.ts", "gen"]}`,
		})
		if err := os.Symlink(npm, filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		run(t, dir, "node_modules/.bin/buf", "generate")
		run(t, dir, "node_modules/.bin/tsc", "-p", ".")
		if got := firstLine(t, dir, "node", "out/main.js"); got != "Hello page" {
			t.Errorf("it says %q", got)
		}
	})
	t.Run("Python", func(t *testing.T) {
		dir := folder(t, map[string]string{"main.py": block("Python", "python")})
		protos, err := filepath.Glob(filepath.Join(root, "proto/browser/v1/*.proto"))
		if err != nil || len(protos) == 0 {
			t.Fatal(protos, err)
		}
		run(t, dir, append([]string{
			"protoc", "-I", root + "/proto", "--python_out=.", "--grpc_out=.", "--plugin=protoc-gen-grpc=/usr/bin/grpc_python_plugin",
		}, protos...)...)
		if got := run(t, dir, "/usr/bin/python3", "main.py"); !strings.HasPrefix(got, "Hello page\n") || !strings.Contains(got, `- button "Go" [ref=`) {
			t.Errorf("it says %q", got)
		}
	})
}

// firstLine runs a program whose connections keep it alive, and gives its first line.
func firstLine(t *testing.T, dir string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, _ := out.Read(buf)
	cancel()
	_ = cmd.Wait()
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	return line
}
