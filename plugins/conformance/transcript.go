package conformance

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

//go:embed transcripts
var transcriptFiles embed.FS

// transcript is a check that is written as talk:
//
//	What it guards, in a sentence or two.
//	-- needs --
//	page.eval
//	feature frames
//	session own
//	-- talk --
//	> page.open {"url": "$site/form.html"}
//	< {"title": "Order form", "page_id": "$page"}
//	> page.click {"selector": "#gone"}
//	! element_not_found {"details": {"reason": "$any"}}
//
// A line of ">" calls a method; "<" is the answer that must come, "!" the error, with its code, or code/reason, and the
// members that it must have. Without either the call must succeed. Lines that begin with a space continue the line before.
// A call whose error may differ is followed by "! a|b". What match knows can be expected.
type transcript struct {
	id, method, guards string
	methods, features  []string
	own                bool
	steps              []step
}

type step struct {
	line   int
	method string
	params map[string]any
	want   map[string]any // nil: any answer
	codes  []string       // nil: success is expected
}

// transcripts reads all that are built in, in order of their names.
func transcripts() ([]*transcript, error) {
	var out []*transcript
	err := fs.WalkDir(transcriptFiles, "transcripts", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := transcriptFiles.ReadFile(p)
		if err != nil {
			return err
		}
		t, err := parseTranscript(strings.TrimSuffix(strings.TrimPrefix(p, "transcripts/"), ".txtar"), data)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		out = append(out, t)
		return nil
	})
	return out, err
}

func parseTranscript(id string, data []byte) (*transcript, error) {
	a := txtar.Parse(data)
	t := &transcript{id: id, method: path.Dir(id), guards: strings.Join(strings.Fields(string(a.Comment)), " ")}
	if t.guards == "" {
		return nil, fmt.Errorf("it does not say what it guards")
	}
	for _, f := range a.Files {
		var err error
		switch f.Name {
		case "needs":
			t.need(string(f.Data))
		case "talk":
			err = t.talk(string(f.Data))
		default:
			err = fmt.Errorf("there is no part %q", f.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(t.steps) == 0 {
		return nil, fmt.Errorf("it has no talk")
	}
	t.methods = append(t.methods, t.method)
	return t, nil
}

func (t *transcript) need(text string) {
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		word, rest, two := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case two && word == "feature":
			t.features = append(t.features, rest)
		case two && word == "session":
			t.own = true
		case word != "":
			t.methods = append(t.methods, word)
		}
	}
}

func (t *transcript) talk(text string) error {
	var lines []string
	var at []int
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case line[0] == ' ' && len(lines) > 0:
			lines[len(lines)-1] += line
		default:
			lines, at = append(lines, line), append(at, i+1)
		}
	}
	for i, line := range lines {
		if err := t.line(line, at[i]); err != nil {
			return fmt.Errorf("line %d: %w", at[i], err)
		}
	}
	return nil
}

func (t *transcript) line(line string, at int) error {
	mark, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch {
	case mark == ">":
		method, params, _ := strings.Cut(rest, " ")
		s := step{line: at, method: method, params: map[string]any{}}
		if err := object(params, &s.params); err != nil {
			return err
		}
		t.steps = append(t.steps, s)
		return nil
	case len(t.steps) == 0:
		return fmt.Errorf("an answer before any call")
	case mark == "<":
		return object(rest, &t.steps[len(t.steps)-1].want)
	case mark == "!":
		codes, more, _ := strings.Cut(rest, " ")
		s := &t.steps[len(t.steps)-1]
		s.codes = strings.Split(codes, "|")
		return object(more, &s.want)
	}
	return fmt.Errorf("a line begins with >, < or !, not %q", mark)
}

func object(text string, into *map[string]any) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("%w in %s", err, text)
	}
	return nil
}

// play has the provider say its part.
func (t *transcript) play(c *T) {
	m := match{vars: c.vars}
	for _, s := range t.steps {
		params, _ := m.fillAll(maps.Clone(s.params)).(map[string]any)
		a := c.Call(s.method, maps.Clone(params))
		if ms, short := params["timeout_ms"].(float64); short && s.codes != nil && hasty(a, s.codes) {
			// The machine may be too slow to find it out in so short a time; a provider that never finds it out still will not.
			params["timeout_ms"] = ms * 5
			a = c.Call(s.method, params)
		}
		switch {
		case s.codes == nil && a.Err != nil:
			c.Fatalf("line %d: %s: %v", s.line, s.method, a.Err)
		case s.codes == nil:
			if err := m.value(orEmpty(s.want), any(a.Result), s.method); err != nil {
				c.Fatalf("line %d: %v", s.line, err)
			}
		case !slices.ContainsFunc(s.codes, func(code string) bool { return says(a, code) }):
			c.Fatalf("line %d: %s must answer %s, and it answers %s", s.line, s.method, strings.Join(s.codes, " or "), a.said())
		case a.Err != nil:
			if err := m.value(orEmpty(s.want), any(a.Fault()), s.method+": error"); err != nil {
				c.Fatalf("line %d: %v", s.line, err)
			}
		}
	}
}

func orEmpty(m map[string]any) any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// says tells whether an answer has a code, or code/reason.
func says(a Answer, want string) bool {
	code, _, two := strings.Cut(want, "/")
	got, _, _ := strings.Cut(a.Code(), "/")
	if !two {
		return got == code
	}
	return a.Code() == want
}

// said writes an answer for a message.
func (a Answer) said() string {
	if a.Err == nil {
		return "success, " + show(a.Result)
	}
	return a.Err.Error()
}

// hasty says that an answer tells only that time ran out, where something else was expected.
func hasty(a Answer, codes []string) bool {
	return a.Err != nil && a.Err.ReasonWord() == "deadline_exceeded" && !slices.ContainsFunc(codes, func(code string) bool { return says(a, code) })
}
