package cdp

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// difference is a kind of differences, with why the snapshot is right to differ, and all of that kind.
type difference struct {
	kind, chromium, snapshot, why string
	lines                         []string
}

const notArgued = "not argued"

// judgeDifferences compares the differences that were found with the list.
func judgeDifferences(t *testing.T, found []string) {
	t.Helper()
	list := readDifferences(t)
	kindOf := map[string]int{}
	for i, d := range list {
		for _, line := range d.lines {
			kindOf[line] = i
		}
	}
	if *update {
		for i := range list {
			list[i].lines = slices.DeleteFunc(list[i].lines, func(l string) bool { return !slices.Contains(found, l) })
		}
		open := difference{kind: notArgued}
		for _, line := range found {
			if i, ok := kindOf[line]; !ok || list[i].kind == notArgued {
				open.lines = append(open.lines, line)
			}
		}
		list = slices.DeleteFunc(list, func(d difference) bool { return d.kind == notArgued || len(d.lines) == 0 })
		if len(open.lines) > 0 {
			list = append(list, open)
		}
		writeDifferences(t, list)
		writeDifferenceDocs(t, list)
		kindOf = map[string]int{}
		for i, d := range list {
			for _, line := range d.lines {
				kindOf[line] = i
			}
		}
	}
	for _, line := range found {
		if i, ok := kindOf[line]; !ok || list[i].kind == notArgued {
			t.Errorf("not argued: %s", line)
		}
	}
	for line, i := range kindOf {
		if !slices.Contains(found, line) {
			t.Errorf("listed under %q but no longer there: %s", list[i].kind, line)
		}
	}
	for _, d := range list {
		if d.kind != notArgued && d.why == "" {
			t.Errorf("%q has no reason", d.kind)
		}
	}
	doc, err := os.ReadFile(namesPage)
	if err != nil {
		t.Fatal(err)
	}
	if _, has, _ := cutDocs(string(doc)); has != differenceTable(list) {
		t.Errorf("%s tells other differences than the list: run this test with -update", namesPage)
	}
}

// readDifferences reads the list: a kind begins with "## ", its three words follow as "chromium:", "snapshot:" and "why:".
func readDifferences(t *testing.T) []difference {
	t.Helper()
	data, err := os.ReadFile(controlDifferences)
	if err != nil && !*update {
		t.Fatal(err)
	}
	var list []difference
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		kind, isKind := strings.CutPrefix(line, "## ")
		switch {
		case isKind:
			list = append(list, difference{kind: kind})
			continue
		case line == "" || strings.HasPrefix(line, "# "):
			continue
		case len(list) == 0:
			t.Fatalf("%s: %q stands under no kind", controlDifferences, line)
		}
		d := &list[len(list)-1]
		if v, ok := strings.CutPrefix(line, "chromium: "); ok {
			d.chromium = v
		} else if v, ok := strings.CutPrefix(line, "snapshot: "); ok {
			d.snapshot = v
		} else if v, ok := strings.CutPrefix(line, "why: "); ok {
			d.why = v
		} else {
			d.lines = append(d.lines, line)
		}
	}
	return list
}

func writeDifferences(t *testing.T, list []difference) {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Where a snapshot of the pages of controls differs from Chromium's accessibility tree, by kind, each with its reason.\n" +
		"# A line is: page | element | what differs | Chromium | snapshot. TestControlsAgreeWithChromium (providers/cdp) holds the list\n" +
		"# to be exact, and writes the table of docs/names.md from its heads: go test ./providers/cdp -run TestControlsAgree -update\n")
	for _, d := range list {
		fmt.Fprintf(&b, "\n## %s\n", d.kind)
		if d.kind != notArgued {
			fmt.Fprintf(&b, "chromium: %s\nsnapshot: %s\nwhy: %s\n", d.chromium, d.snapshot, d.why)
		}
		for _, line := range d.lines {
			b.WriteString(line + "\n")
		}
	}
	if err := os.WriteFile(controlDifferences, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The table in the docs stands between two marks.
const (
	namesPage  = "../../docs/names.md"
	tableBegin = "<!-- differences: written by providers/cdp TestControlsAgreeWithChromium -update -->\n"
	tableEnd   = "<!-- end -->\n"
)

func cutDocs(doc string) (before, table, after string) {
	before, rest, _ := strings.Cut(doc, tableBegin)
	table, after, _ = strings.Cut(rest, tableEnd)
	return before, table, after
}

func differenceTable(list []difference) string {
	var b strings.Builder
	b.WriteString("| what | Chromium | snapshot | nodes | why |\n|---|---|---|---|---|\n")
	for _, d := range list {
		if d.kind != notArgued {
			fmt.Fprintf(&b, "| %s | %s | %s | %d | %s |\n", d.kind, d.chromium, d.snapshot, len(d.lines), d.why)
		}
	}
	return b.String()
}

func writeDifferenceDocs(t *testing.T, list []difference) {
	t.Helper()
	doc, err := os.ReadFile(namesPage)
	if err != nil {
		t.Fatal(err)
	}
	before, _, after := cutDocs(string(doc))
	if after == "" {
		t.Fatalf("%s has no place for the table", namesPage)
	}
	if err := os.WriteFile(namesPage, []byte(before+tableBegin+differenceTable(list)+tableEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
