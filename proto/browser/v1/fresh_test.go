package browserv1_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Guards the committed code against falling behind the .proto files: what `make gen` would write is what is there.
func TestGeneratedIsFresh(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	buf := filepath.Join(root, ".tools", "node_modules", ".bin", "buf")
	if _, err := os.Stat(buf); err != nil {
		if buf, err = exec.LookPath("buf"); err != nil {
			t.Fatal("buf is missing; run make setup")
		}
	}
	out := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), buf, args...)
		cmd.Dir = root
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("buf %s: %v\n%s", strings.Join(args, " "), err, b)
		}
	}
	run("lint")
	run("generate", "-o", out)
	image := filepath.Join(out, "proto", "browser", "v1", "image.binpb")
	run("build", "-o", image)

	made, err := filepath.Glob(filepath.Join(out, "proto", "browser", "v1", "*"))
	if err != nil || len(made) < 10 {
		t.Fatalf("only %d files were generated: %v", len(made), err)
	}
	names := map[string]bool{}
	for _, f := range made {
		name := filepath.Base(f)
		names[name] = true
		want, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the .proto files say (%v); run make gen", name, err)
		}
	}
	committed, err := filepath.Glob("*.pb.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range committed {
		if !names[f] {
			t.Errorf("%s comes from no .proto file any more", f)
		}
	}
}
