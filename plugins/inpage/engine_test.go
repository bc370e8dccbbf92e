package inpage

import (
	"slices"
	"strings"
	"testing"
)

// Every file of the engine is joined, exactly once.
func TestPartsAreTheFolder(t *testing.T) {
	entries, err := files.ReadDir("engine")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range entries {
		have = append(have, strings.TrimSuffix(e.Name(), ".js"))
	}
	want := slices.Sorted(slices.Values(parts))
	if !slices.Equal(have, want) {
		t.Errorf("the folder holds %v, joined are %v", have, want)
	}
	if n := strings.Count(source(), "@VERSION@"); n != 1 {
		t.Errorf("%d placeholders of the version", n)
	}
}
