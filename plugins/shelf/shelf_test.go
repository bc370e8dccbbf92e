package shelf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// A server cannot choose a path, a hidden file, a device or an endless name.
func TestSafeName(t *testing.T) {
	for suggested, want := range map[string]string{
		"report.csv": "report.csv", "../../x": "x", "/etc/passwd": "passwd", `..\..\y`: "y", "": "download", "..": "download",
		"a\x00b": "a_b", "CON": "_CON", "nul.txt": "_nul.txt", ".bashrc": "bashrc", "é 漢.txt": "é 漢.txt", "x. ": "x",
	} {
		if got := SafeName(suggested); got != want {
			t.Errorf("%q became %q, want %q", suggested, got, want)
		}
	}
	if got := SafeName(strings.Repeat("漢", 300) + ".txt"); len(got) > 255 || !strings.HasSuffix(got, ".txt") {
		t.Errorf("a long name became %q", got)
	}
}

// The same name twice makes two files; what was there stays.
func TestTakeOverwritesNothing(t *testing.T) {
	s := &Shelf{Root: t.TempDir(), Prefix: "test-"}
	for _, text := range []string{"one", "two"} {
		dir, err := s.Folder()
		if err != nil {
			t.Fatal(err)
		}
		from := filepath.Join(dir, ".part")
		if err := os.WriteFile(from, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		to, err := s.Take(from, "x.txt")
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Get(&browserv1.GetArtifactRequest{Ref: s.Add(to, "")})
		if err != nil || string(got.GetData()) != text || !got.GetEof() || !strings.HasPrefix(got.GetMediaType(), "text/plain") {
			t.Errorf("the file of %q holds %v (%v)", text, got, err)
		}
	}
	s.Remove()
	if left, err := os.ReadDir(s.Root); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// Links and dots lead nowhere outside the folders.
func TestAllowed(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	inside, outside := filepath.Join(dir, "a.txt"), filepath.Join(other, "b.txt")
	for _, path := range []string{inside, outside} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for path, reason := range map[string]string{
		inside: "", "a.txt": "", outside: "path_refused", "link": "path_refused", "../b.txt": "path_refused", dir: "path_refused",
		filepath.Join(dir, "none"): "file_not_found",
	} {
		if _, err := Allowed(path, []string{dir}); (err == nil) != (reason == "") || err != nil && fault.ReasonOf(err) != reason {
			t.Errorf("%s: %v, want %q", path, err, reason)
		}
	}
}
