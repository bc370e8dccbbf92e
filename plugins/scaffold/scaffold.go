// Package scaffold writes new provider projects: a whole provider that drives Chromium through the page engine, in
// Go. What it writes builds and is certified for the core methods as it stands.
package scaffold

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/droverhq/drover/proto/fault"
)

//go:embed all:go
var templates embed.FS

// Langs are the languages that there are templates for.
var Langs = []string{"go"}

// Project says what is written.
type Project struct {
	// Name is the provider's name; its binary is drover-provider-NAME.
	Name string
	// Lang is one of Langs.
	Lang string
	// Dir is the folder, which must be empty or not there.
	Dir string
	// SDK is the checkout of Drover that a Go project is built with.
	SDK string
	// GoMod is the go.mod of that checkout, and GoSum its go.sum.
	GoMod, GoSum string
}

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// Write makes the project's folder and gives the files that it wrote, relative to it.
func Write(p Project) ([]string, error) {
	if !namePattern.MatchString(p.Name) {
		return nil, fault.New(fault.InvalidRequest, "%q cannot be a provider's name", p.Name).Field("name").
			Hint("use lower-case letters, digits, dashes and underscores")
	}
	if entries, err := os.ReadDir(p.Dir); err == nil && len(entries) > 0 {
		return nil, fault.New(fault.InvalidRequest, "the folder %s is not empty", p.Dir).Field("dir").Hint("give another name, or remove it")
	}
	var written []string
	err := fs.WalkDir(templates, p.Lang, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := templates.ReadFile(name)
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(name, p.Lang+"/")
		text := string(data)
		if base, ok := strings.CutSuffix(rel, ".tmpl"); ok {
			rel = base
			if text, err = p.fill(name, text); err != nil {
				return err
			}
		}
		rel = path.Join(path.Dir(rel), strings.ReplaceAll(path.Base(rel), "PROVIDER", "drover-provider-"+p.Name))
		written = append(written, rel)
		return p.write(rel, []byte(text))
	})
	if err != nil {
		return nil, fmt.Errorf("write the project: %w", err)
	}
	if err := p.write("go.sum", []byte(p.GoSum)); err != nil {
		return nil, fmt.Errorf("write the project: %w", err)
	}
	return append(written, "go.sum"), nil
}

// fill runs a template.
func (p Project) fill(name, text string) (string, error) {
	t, err := template.New(name).Delims("{{", "}}").Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, map[string]string{"Name": p.Name, "SDK": p.SDK, "Requires": requires(p.GoMod), "Go": goVersion(p.GoMod)})
	return b.String(), err
}

func (p Project) write(rel string, data []byte) error {
	file := filepath.Join(p.Dir, filepath.FromSlash(rel))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // a project is no secret
		return err
	}
	mode := fs.FileMode(0o644)
	if strings.HasPrefix(string(data), "#!") {
		mode = 0o755
	}
	return os.WriteFile(file, data, mode)
}

// requires gives the require blocks of a go.mod, so that a project builds with the very versions that the SDK was built with,
// and without asking for any.
func requires(mod string) string {
	var out []string
	inside := false
	for _, line := range strings.Split(mod, "\n") {
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(line, "require ("):
			inside = true
		case inside && trimmed == ")":
			inside = false
		case inside && trimmed != "":
			out = append(out, "\t"+trimmed)
		case strings.HasPrefix(line, "require "):
			out = append(out, "\t"+strings.TrimPrefix(trimmed, "require "))
		}
	}
	return strings.Join(out, "\n")
}

// goVersion gives the go line of a go.mod.
func goVersion(mod string) string {
	for _, line := range strings.Split(mod, "\n") {
		if v, ok := strings.CutPrefix(line, "go "); ok {
			return strings.TrimSpace(v)
		}
	}
	return "1.26"
}
