package host_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/plugins/host"
)

func TestFind(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for path, mode := range map[string]os.FileMode{
		filepath.Join(a, "drover-provider-cdp"):       0o755,
		filepath.Join(a, "drover-provider-plain"):     0o644,
		filepath.Join(a, "drover-provider-Odd Name"):  0o755,
		filepath.Join(a, "drover"):                    0o755,
		filepath.Join(b, "drover-provider-cdp"):       0o755,
		filepath.Join(b, "drover-provider-my_bidi-2"): 0o755,
	} {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(b, "drover-provider-folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := host.Find(host.Place{Name: "beside", Dirs: []string{a}}, host.Place{Name: "path", Dirs: []string{"relative", "/nonexistent", b}})
	want := []host.Found{
		{Name: "cdp", Path: filepath.Join(a, "drover-provider-cdp"), Place: "beside"},
		{Name: "my_bidi-2", Path: filepath.Join(b, "drover-provider-my_bidi-2"), Place: "path"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFindLooksWhereTheDocSays(t *testing.T) {
	data, path := t.TempDir(), t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	t.Setenv("PATH", path)
	plugins := filepath.Join(data, "drover", "plugins")
	if err := os.MkdirAll(plugins, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{plugins, path} {
		if err := os.WriteFile(filepath.Join(dir, "drover-provider-found-"+filepath.Base(dir)), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if f, ok := host.FindOne("found-plugins"); !ok || f.Place != "plugins" {
		t.Errorf("plugins: %+v", f)
	}
	if f, ok := host.FindOne("found-" + filepath.Base(path)); !ok || f.Place != "path" {
		t.Errorf("path: %+v", f)
	}
	if _, ok := host.FindOne("none"); ok {
		t.Error("found none")
	}
}

// A digest is remembered across runs, but not over a change of the file.
func TestDigests(t *testing.T) {
	dir := t.TempDir()
	bin, file := filepath.Join(dir, "bin"), filepath.Join(dir, "cache", "digests.json")
	write := func(s string) {
		if err := os.WriteFile(bin, []byte(s), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	of := func() string {
		d, err := (&host.Digests{File: file}).Of(bin)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	write("abc")
	if got := of(); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("sha256 of abc is %s", got)
	}
	info, err := os.Stat(bin)
	if err != nil {
		t.Fatal(err)
	}
	write("abd") // the same size, and below the same time: the remembered one answers
	if err := os.Chtimes(bin, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got := of(); got[:4] != "ba78" {
		t.Errorf("not remembered: %s", got)
	}
	write("abcd")
	if got := of(); got[:4] == "ba78" {
		t.Error("a changed file has the old digest")
	}
	if err := os.WriteFile(file, []byte("{broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	of()
}
