package policy

import (
	"errors"
	"strings"
	"testing"
)

// Guards who validates a file that nobody wrote by hand: what is larger or deeper than any config is refused with its place
// before it is parsed, for the parser would take minutes.
func TestTooLarge(t *testing.T) {
	many := 50_000
	for name, c := range map[string]struct{ text, want string }{
		"braces":    {strings.Repeat("{", many), "Nested too deep"},
		"blocks":    {strings.Repeat("a {\n", many), "Nested too deep"},
		"lists":     {"prefer = " + strings.Repeat("[", many), "Nested too deep"},
		"brackets":  {"prefer = " + strings.Repeat("(", many), "Nested too deep"},
		"templates": {"prefer = " + strings.Repeat("\"${", many), "Nested too deep"},
		"signs":     {"prefer = " + strings.Repeat("!", many) + "true", "Nested too deep"},
		"mixed":     {"prefer = " + strings.Repeat("[-(", many), "Nested too deep"},
		"large":     {strings.Repeat("# nothing\n", 3<<20/10), "Config too large"},
	} {
		_, err := Load("x.hcl", []byte(c.text))
		var wrong *LoadError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) || wrong.Mistakes()[0].Line == 0 {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	if _, err := Load("x.hcl", []byte("rule \"r\" {\n  when = "+strings.Repeat("(", 90)+"true"+strings.Repeat(")", 90)+"\n  deny { reason = \"${\"x\"}\" }\n}\n")); err != nil && strings.Contains(err.Error(), "too deep") {
		t.Errorf("a config is refused that is not too deep: %v", err)
	}
}
