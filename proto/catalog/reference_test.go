package catalog_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/droverhq/drover/proto/catalog"
)

var update = flag.Bool("update", false, "write the files that are derived")

// Guards the method reference against falling behind the declarations.
func TestReferenceIsFresh(t *testing.T) {
	const path = "../../docs/methods.md"
	want := catalog.Reference()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/methods.md is not what the declarations say; run make gen")
	}
}
