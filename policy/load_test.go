package policy

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/droverhq/drover/proto/wire"
)

var update = flag.Bool("update", false, "write what the config files come to into their golden files")

// TestLoad guards what every config file comes to: the config that is read, or every mistake with its place. A file in
// testdata/config opens by saying what it is about, and holds config.hcl and what is wanted.
func TestLoad(t *testing.T) {
	files, err := filepath.Glob("testdata/config/*.txtar")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d config files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			a := txtar.Parse(data)
			if len(a.Comment) == 0 || len(a.Files) == 0 || a.Files[0].Name != "config.hcl" {
				t.Fatal("it must open by saying what it guards, and hold config.hcl first")
			}
			got := outcome(t, a.Files[0].Data)
			if *update {
				a.Files = append(a.Files[:1], txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(a), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(a.Files) != 2 || string(a.Files[1].Data) != got {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

// known stands for what the program knows of the protocol.
var known = Known{
	Methods:  []string{"session.ensure", "page.open", "page.click", "page.snapshot", "provider.command"},
	Features: []string{"input_trusted", "pdf", "containment_proxy", "containment_hooks"},
	Plugins:  []string{"stranger"},
}

// outcome writes what a config file comes to.
func outcome(t *testing.T, src []byte) string {
	t.Helper()
	c, err := LoadWith("config.hcl", src, known)
	if err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			if len(line) > 80 && strings.Contains(line, " ") {
				t.Errorf("a line of the message has %d columns", len(line))
			}
		}
		return trailing(err.Error())
	}
	if c.Hash == "" || c.File != "config.hcl" {
		t.Errorf("hash %q, file %q", c.Hash, c.File)
	}
	type provider struct {
		*Provider
		Body json.RawMessage
	}
	var providers []provider
	for _, p := range c.Providers {
		body, err := wire.Marshal(p.Body)
		if err != nil {
			t.Fatal(err)
		}
		providers = append(providers, provider{p, body})
	}
	got := map[string]any{
		"prefer": c.Prefer, "providers": providers, "listen": c.Listen, "files": c.Files, "passthrough": c.Passthrough, "limits": c.Limits,
		"sessions": map[string]string{
			"idle": c.Sessions.Idle.String(), "grace": c.Sessions.Grace.String(), "provider_idle": c.Sessions.ProviderIdle.String(), "exit": c.Sessions.Exit.String(),
		},
	}
	type rule struct {
		*Rule
		When string
	}
	var rules []rule
	for _, r := range c.Rules {
		rules = append(rules, rule{r, r.When()})
	}
	for name, part := range map[string]any{"rules": rules, "guards": c.Guards, "clients": c.Clients, "audit": c.Audit} {
		if v := reflect.ValueOf(part); !v.IsZero() {
			got[name] = part
		}
	}
	if len(c.Tests) > 0 {
		var tests []string
		p := New(c)
		results := p.RunTests()
		for _, r := range results {
			tests = append(tests, r.Test.Name+": "+or(strings.Join(r.Failures, "; "), "passes"))
		}
		got["tests"], got["unreached"] = tests, p.Unreached(results)
	}
	out, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out) + "\n"
}

// trailing takes the blanks at line ends away, which the renderer leaves.
func trailing(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// A diagnostic of a provider about its configuration names a path; the file and line of it are found.
func TestPlace(t *testing.T) {
	c, err := Load("c.hcl", []byte("\nprovider \"x\" {\n  viewport {\n    width = 1\n  }\n  args = []\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"viewport.width": "c.hcl:4", "viewport.height": "c.hcl:3", "viewport": "c.hcl:3", "args": "c.hcl:6", "args.0": "c.hcl:6", "nothing": "c.hcl:2", "": "c.hcl:2",
	} {
		if got := c.Provider("x").Place(path); got != want {
			t.Errorf("%q is at %s, not %s", path, got, want)
		}
	}
}

func TestPassthroughIsByName(t *testing.T) {
	for allow, tt := range map[string]struct{ yes, no []string }{
		"":                          {nil, []string{"cdp.send", "*"}},
		`"cdp.send"`:                {[]string{"cdp.send"}, []string{"cdp.sendx", "CDP.send", "xcdp.send", "cdp.send.x", "page.open"}},
		`"cdp.*", "webdriver.e?ec"`: {[]string{"cdp.send", "cdp.x", "webdriver.exec"}, []string{"firefox.x", "webdriver.execute", "cdp"}},
	} {
		src := ""
		if allow != "" {
			src = "passthrough { allow = [" + allow + "] }"
		}
		c, err := Load("c.hcl", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		ask := func(name string) *Denial {
			return New(c).Decide(Facts{Method: "provider.command", Custom: name}).Denied
		}
		for _, name := range tt.yes {
			if d := ask(name); d != nil {
				t.Errorf("%s does not allow %s", allow, name)
			}
		}
		for _, name := range tt.no {
			if d := ask(name); d == nil || d.Reason != ReasonPolicy || !strings.Contains(d.Hint, "passthrough") {
				t.Errorf("%s says %+v to %s", allow, d, name)
			}
		}
	}
}

func TestDefault(t *testing.T) {
	c := New(nil).Config()
	if c.Sessions.Idle != 30*time.Minute || c.Limits.Calls < 1 || c.Sessions.Grace <= 0 || len(c.Passthrough) != 0 {
		t.Errorf("the default config is %+v", c)
	}
	order := []string{"cdp", "bidi", "webdriver", "firefox", "extension", "other"}
	for i := 1; i < len(order); i++ {
		if c.Rank(order[i-1], order[i-1]) >= c.Rank(order[i], order[i]) {
			t.Errorf("%s does not come before %s", order[i-1], order[i])
		}
	}
	c.Prefer = []string{"other"}
	if c.Rank("other", "other") >= c.Rank("cdp", "cdp") || c.Rank("mine", "cdp") != c.Rank("cdp", "cdp") {
		t.Error("prefer, or the rank of an instance, does not count")
	}
}

// FuzzLoad guards that no file makes the loader panic, and that what it reads can be told to a provider.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/config/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(txtar.Parse(data).Files[0].Data)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		c, err := Load("fuzz.hcl", src)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Fatal("a mistake without words")
			}
			return
		}
		for _, p := range c.Providers {
			body, err := wire.Marshal(p.Body)
			if err != nil || !json.Valid(body) {
				t.Fatalf("the body of %s is %s, %v", p.ID, body, err)
			}
			p.Place("a.b")
		}
	})
}
