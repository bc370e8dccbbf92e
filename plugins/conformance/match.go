package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// match compares an answer with what a transcript expects of it. An object need only have the members that are named; an
// array must hold, in any order, something that matches each element. Texts have words of their own:
//
//	"$any"        something that is not empty
//	"$absent"     the member is not there
//	"$empty"      an empty text, list or object
//	"$positive"   a number above zero
//	"$no WORDS"   the words do not occur in the text
//	"~REGEXP"     the text matches
//	"$name"       the first time it takes the value, then it must be the same
//	"$not name"   a value other than the one that was taken
type match struct{ vars map[string]any }

func (m match) value(want, got any, path string) error {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is %s, not an object", path, show(got))
		}
		for _, k := range slices.Sorted(maps.Keys(w)) {
			value, there := g[k]
			if w[k] == "$absent" {
				if there {
					return fmt.Errorf("%s.%s is there: %s", path, k, show(value))
				}
				continue
			}
			if !there {
				return fmt.Errorf("%s.%s is missing", path, k)
			}
			if err := m.value(w[k], value, path+"."+k); err != nil {
				return err
			}
		}
		return nil
	case []any:
		g, ok := got.([]any)
		if !ok {
			return fmt.Errorf("%s is %s, not a list", path, show(got))
		}
		return m.list(w, g, path)
	case string:
		return m.text(w, got, path)
	default:
		if !same(want, got) {
			return fmt.Errorf("%s is %s, not %s", path, show(got), show(want))
		}
		return nil
	}
}

func (m match) list(want, got []any, path string) error {
	taken := make([]bool, len(got))
	for _, w := range want {
		var why []string
		found := false
		for i, g := range got {
			if taken[i] {
				continue
			}
			try := match{vars: maps.Clone(m.vars)}
			err := try.value(w, g, fmt.Sprintf("%s[%d]", path, i))
			if err == nil {
				taken[i], found = true, true
				maps.Copy(m.vars, try.vars)
				break
			}
			why = append(why, err.Error())
		}
		if !found {
			if len(got) == 1 && len(why) == 1 {
				return errors.New(why[0])
			}
			return fmt.Errorf("%s holds nothing like %s among %d: %s", path, show(w), len(got), strings.Join(why[:min(len(why), 3)], "; "))
		}
	}
	return nil
}

func (m match) text(want string, got any, path string) error {
	word, rest, _ := strings.Cut(want, " ")
	switch {
	case want == "$any":
		if empty(got) {
			return fmt.Errorf("%s is empty", path)
		}
	case want == "$empty":
		if !empty(got) {
			return fmt.Errorf("%s is %s, not empty", path, show(got))
		}
	case want == "$positive":
		if n, ok := got.(float64); !ok || n <= 0 {
			return fmt.Errorf("%s is %s, not a number above zero", path, show(got))
		}
	case word == "$no":
		if strings.Contains(plain(got), rest) {
			return fmt.Errorf("%s holds %q", path, rest)
		}
	case word == "$not":
		if old := m.vars[rest]; same(old, got) {
			return fmt.Errorf("%s is %s again", path, show(got))
		}
	case strings.HasPrefix(want, "~"):
		text, ok := got.(string)
		re, err := regexp.Compile("(?s)" + m.fill(want[1:]))
		if err != nil {
			return fmt.Errorf("%s: the transcript's pattern: %w", path, err)
		}
		if !ok || !re.MatchString(text) {
			return fmt.Errorf("%s is %s, which does not match %s", path, show(got), want[1:])
		}
	case variable.MatchString(want):
		name := want[1:]
		old, known := m.vars[name]
		if !known {
			if empty(got) {
				return fmt.Errorf("%s is empty", path)
			}
			m.vars[name] = got
			return nil
		}
		if !same(old, got) {
			return fmt.Errorf("%s is %s, not %s as before", path, show(got), show(old))
		}
	default:
		if w := m.fill(want); !same(w, got) {
			return fmt.Errorf("%s is %s, not %s", path, show(got), show(w))
		}
	}
	return nil
}

var (
	variable = regexp.MustCompile(`^\$[a-z][a-z0-9_]*$`)
	inside   = regexp.MustCompile(`\$[a-z][a-z0-9_]*`)
)

// fill puts the values of variables into a text.
func (m match) fill(text string) string {
	return inside.ReplaceAllStringFunc(text, func(v string) string {
		if value, ok := m.vars[v[1:]].(string); ok {
			return value
		}
		return v
	})
}

// fillAll puts the values of variables into a request. A text that is a variable as a whole becomes its value.
func (m match) fillAll(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = m.fillAll(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = m.fillAll(e)
		}
		return out
	case string:
		if variable.MatchString(v) {
			if value, ok := m.vars[v[1:]]; ok {
				return value
			}
		}
		return m.fill(v)
	}
	return v
}

func same(a, b any) bool { return show(a) == show(b) }

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func plain(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, _ := json.Marshal(v) // it came of JSON
	return string(data)
}

// show writes a value for a message, cut where it is long.
func show(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	const most = 200
	if len(data) > most {
		return strings.ToValidUTF8(string(data[:most]), "") + "…"
	}
	return string(data)
}
