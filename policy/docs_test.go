package policy

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// reference writes what docs/policy.md derives from the tables.
func reference(part string) string {
	var b strings.Builder
	if part == "functions" {
		b.WriteString("| function | |\n|---|---|\n")
		for _, f := range Functions() {
			fmt.Fprintf(&b, "| `%s` | %s |\n", f.Call, f.Doc)
		}
		return b.String()
	}
	b.WriteString("| variable | type | |\n|---|---|---|\n")
	for _, v := range Variables() {
		doc := v.Doc
		var words []string
		for _, w := range v.Words {
			if w != "" {
				words = append(words, "`"+w+"`")
			}
		}
		if len(words) > 0 {
			doc += " " + strings.Join(words, ", ") + "."
		}
		fmt.Fprintf(&b, "| `%s.%s` | %s | %s |\n", v.Object, v.Name, v.Type, doc)
	}
	return b.String()
}

// The tables in docs/policy.md are those that decide; -update writes them. Every recipe there can be loaded.
func TestDocs(t *testing.T) {
	const file = "../docs/policy.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	derived := regexp.MustCompile(`(?s)(<!-- derived: (\w+) -->\n).*?(<!-- end -->)`)
	want := derived.ReplaceAllStringFunc(string(data), func(s string) string {
		m := derived.FindStringSubmatch(s)
		return m[1] + reference(m[2]) + m[3]
	})
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if want != string(data) {
		t.Error("docs/policy.md is not fresh; run go test ./policy -run TestDocs -update")
	}
	recipes := regexp.MustCompile("(?s)```hcl\n(.*?)```").FindAllStringSubmatch(string(data), -1)
	if len(recipes) != 6 {
		t.Errorf("there are %d recipes", len(recipes))
	}
	for _, r := range recipes {
		if _, err := Load("recipe.hcl", []byte(r[1])); err != nil {
			t.Error(err)
		}
		if string(Format([]byte(r[1]))) != r[1] {
			t.Errorf("it is not in the one layout:\n%s", r[1])
		}
	}
}

// config.hcl.example is right, its tests pass and reach every rule, and it shows every block that there is.
func TestExample(t *testing.T) {
	src, err := os.ReadFile("../config.hcl.example")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Load("config.hcl.example", src)
	if err != nil {
		t.Fatal(err)
	}
	p := New(c)
	results := p.RunTests()
	for _, r := range results {
		if len(r.Failures) > 0 {
			t.Errorf("%s: %v", r.Test.Name, r.Failures)
		}
	}
	if missed := p.Unreached(results); len(missed) > 0 || len(results) == 0 {
		t.Errorf("no test reaches %v", missed)
	}
	if string(Format(src)) != string(src) {
		t.Error("it is not in the one layout")
	}
	for _, word := range []string{"prefer", "provider", "listen", "sessions", "files", "limits", "audit", "client", "rule", "guard", "passthrough", "test", "expect"} {
		if !regexp.MustCompile(`(?m)^\s*` + word + `\b`).Match(src) {
			t.Errorf("it does not show %s", word)
		}
	}
}
