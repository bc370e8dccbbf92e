package inpage

import (
	"regexp"
	"strings"
	"testing"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

func TestGraphemes(t *testing.T) {
	for text, want := range map[string]string{
		"":              "",
		"ab":            "a|b",
		"e\u0301x":      "e\u0301|x",
		"👩‍👩‍👧‍👦!":      "👩‍👩‍👧‍👦|!",
		"🇩🇪🇫🇷":          "🇩🇪|🇫🇷",
		"👍🏽👍":           "👍🏽|👍",
		"a\nb":          "a|\n|b",
		"한글":            "한|글",
		"क्षि":          "क्|षि",
		"1\ufe0f\u20e3": "1\ufe0f\u20e3",
	} {
		if got := strings.Join(graphemes(text), "|"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestChord(t *testing.T) {
	for in, want := range map[string]struct {
		held      Modifiers
		key, code string
		text      string
	}{
		"Enter":           {0, "Enter", "Enter", "\r"},
		"return":          {0, "Enter", "Enter", "\r"},
		"a":               {0, "a", "KeyA", "a"},
		"A":               {0, "A", "KeyA", "A"},
		"Shift+a":         {ModShift, "A", "KeyA", "A"},
		"Shift+1":         {ModShift, "!", "Digit1", "!"},
		"Control+Shift+a": {ModControl | ModShift, "A", "KeyA", ""},
		"ctrl+ArrowLeft":  {ModControl, "ArrowLeft", "ArrowLeft", ""},
		"Control++":       {ModControl, "+", "Equal", ""},
		"+":               {0, "+", "Equal", "+"},
		" ":               {0, " ", "Space", " "},
		"Space":           {0, " ", "Space", " "},
		"Shift":           {0, "Shift", "ShiftLeft", ""},
		"f12":             {0, "F12", "F12", ""},
		"é":               {0, "é", "", "é"},
	} {
		held, s, err := chord(in)
		if err != nil || held != want.held || s.key != want.key || s.code != want.code || s.text != want.text {
			t.Errorf("%q: %v %+v %v, want %+v", in, held, s, err, want)
		}
	}
	for _, in := range []string{"", "Entre", "Foo+a", "a+b", "F25"} {
		if _, s, err := chord(in); err == nil {
			t.Errorf("%q is taken for %+v", in, s)
		}
	}
}

// Whatever is held goes down before the key and is let go after it, in reverse.
func TestPressReleasesModifiers(t *testing.T) {
	held, s, err := chord("Control+Alt+Shift+Meta+Delete")
	if err != nil {
		t.Fatal(err)
	}
	down := map[string]bool{}
	var last Modifiers
	for _, e := range s.press(held) {
		down[e.Key] = e.Kind == KeyDown
		last = e.Modifiers
	}
	for k, d := range down {
		if d {
			t.Errorf("%s stays down", k)
		}
	}
	if len(down) != 5 || last != 0 {
		t.Errorf("%d keys, modifiers %v at the end", len(down), last)
	}
}

func TestGlobPattern(t *testing.T) {
	for _, c := range []struct {
		glob, url string
		want      bool
	}{
		{"http://a/b", "http://a/b", true},
		{"http://a/b", "http://a/bc", false},
		{"http://a/*", "http://a/b?c=d", true},
		{"http://a/*", "http://a/b/c", false},
		{"http://a/**", "http://a/b/c", true},
		{"**/c-d.(x)+$", "http://a/c-d.(x)+$", true},
		{"*", "http://a/", false},
		{"**", "http://a/", true},
	} {
		// [^] is JavaScript's "any character".
		pattern := strings.ReplaceAll(globPattern(c.glob), "[^]", `[\s\S]`)
		if got := regexp.MustCompile(pattern).MatchString(c.url); got != c.want {
			t.Errorf("%s against %s: %v", c.glob, c.url, got)
		}
	}
}

func TestDocOf(t *testing.T) {
	for ref, want := range map[string]int{"d1e1": 1, "d12e345": 12, "d1": 0, "de1": 0, "d1e": 0, "d1e1x": 0, "x1e1": 0, "": 0, "d99999999999999999999e1": 0, "d1e1 ": 0} {
		if got := docOf(ref); got != want {
			t.Errorf("%q: %d, want %d", ref, got, want)
		}
	}
}

func TestOfLine(t *testing.T) {
	for line, want := range map[string]was{
		`- button "Save \"all\"" [ref=d1e2]`: {"button", `Save "all"`},
		`    - link [ref=d1e2]`:              {"link", ""},
		`- row: a | b`:                       {"row:", ""},
	} {
		if got := ofLine(line); got != want {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// A frame's nodes take only what the limit leaves after the page around it, and ids stay in document order.
func TestStitchLimit(t *testing.T) {
	zero, one := 0, 1
	inner := &reading{Total: 4, Nodes: []rawNode{
		{Role: "document", Children: []int{1, 2, 3}}, {Role: "button", Name: "i1", Ref: "d2e1", Actionable: true}, {Role: "button", Name: "i2", Ref: "d2e2", Actionable: true}, {Role: "button", Name: "i3", Ref: "d2e3", Actionable: true},
	}, Outline: []string{"- button \"i1\" [ref=d2e1]"}, Text: "inner"}
	r := &reading{Total: 3, Text: "outer", Nodes: []rawNode{
		{Role: "document", Children: []int{1, 2}}, {Role: "iframe", Ref: "d1e1"}, {Role: "button", Name: "o", Ref: "d1e2", Actionable: true},
	}, Outline: []string{"- iframe [ref=d1e1]", "- button \"o\" [ref=d1e2]"}, Frames: []framePlace{{Ref: "d1e1", Node: &one, Line: &zero}}, inner: map[string]*reading{"d1e1": inner}}
	names := func(nodes []*browserv1.Node) string {
		var out []string
		for _, n := range nodes {
			out = append(out, n.GetNodeId()+n.GetName())
		}
		return strings.Join(out, " ")
	}
	s := stitch(r, 0)
	if got := names(s.nodes); got != "n1 n2 n3i1 n4i2 n5i3 n6o" || s.truncated || s.total != 6 {
		t.Errorf("%s, truncated %v, total %d", got, s.truncated, s.total)
	}
	if got := strings.Join(s.lines, "\n"); got != "- iframe [ref=d1e1]\n  - button \"i1\" [ref=d2e1]\n- button \"o\" [ref=d1e2]" {
		t.Error(got)
	}
	if s.text != "outer\n\ninner" {
		t.Errorf("text %q", s.text)
	}
	s = stitch(r, 4)
	if got := names(s.nodes); got != "n1 n2 n3i1 n4o" || !s.truncated || s.total != 6 {
		t.Errorf("%s, truncated %v, total %d", got, s.truncated, s.total)
	}
}
