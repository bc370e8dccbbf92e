package conformance

import (
	"encoding/json"
	"strings"
	"testing"
)

// Guards that a transcript's expectation refuses what it should refuse: a suite whose matcher takes anything certifies
// anything.
func TestMatch(t *testing.T) {
	for _, c := range []struct{ name, want, got, wrong string }{
		{"members that are not named do not count", `{"a":1}`, `{"a":1,"b":2}`, ""},
		{"another value", `{"a":1}`, `{"a":2}`, "is 2, not 1"},
		{"a missing member", `{"a":"$any"}`, `{}`, "a is missing"},
		{"absent", `{"a":"$absent"}`, `{"a":null}`, "is there"},
		{"any is not empty", `{"a":"$any"}`, `{"a":""}`, "is empty"},
		{"positive", `{"a":"$positive"}`, `{"a":0}`, "above zero"},
		{"no words", `{"a":"$no secret"}`, `{"a":["the secret"]}`, `holds "secret"`},
		{"a pattern", `{"a":"~^x+$"}`, `{"a":"xxy"}`, "does not match"},
		{"a list in any order", `[{"a":2},{"a":1}]`, `[{"a":1},{"a":2}]`, ""},
		{"each element once", `[{"a":1},{"a":1}]`, `[{"a":1},{"a":2}]`, "nothing like"},
		{"a variable is taken, then compared", `{"a":"$x","b":"$x"}`, `{"a":"1","b":"2"}`, "as before"},
		{"not again", `{"a":"$x","b":"$not x"}`, `{"a":"1","b":"1"}`, "again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want, got any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(c.got), &got); err != nil {
				t.Fatal(err)
			}
			err := match{vars: map[string]any{}}.value(want, got, "it")
			if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("got %v, want %q", err, c.wrong)
			}
		})
	}
}

// Guards that every check says what it guards, and that no two have one name.
func TestChecksAreNamed(t *testing.T) {
	list, err := allChecks()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range list {
		if seen[c.id] {
			t.Errorf("two checks are named %s", c.id)
		}
		seen[c.id] = true
		if len(c.guards) < 20 || !strings.HasSuffix(c.guards, ".") {
			t.Errorf("%s guards %q, which is no sentence", c.id, c.guards)
		}
	}
}
