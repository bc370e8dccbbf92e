package webext

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func read(t *testing.T, name string) (m map[string]any) {
	t.Helper()
	data, err := files.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Who puts another brand on the extension edits brand.json; the manifest, which cannot read it, must say the same.
func TestTheManifestSaysWhatTheBrandSays(t *testing.T) {
	brand, manifest := read(t, "brand.json"), read(t, "manifest.json")
	for _, key := range []string{"name", "short_name", "description", "icons"} {
		if !reflect.DeepEqual(brand[key], manifest[key]) {
			t.Errorf("%s: the brand says %v, the manifest %v", key, brand[key], manifest[key])
		}
	}
	action := manifest["action"].(map[string]any)
	if action["default_title"] != brand["name"] || !reflect.DeepEqual(action["default_icon"], brand["icons"]) {
		t.Errorf("the manifest's action: %v", action)
	}
}

func TestWriteAndZipHoldTheSame(t *testing.T) {
	dir := t.TempDir()
	var packed bytes.Buffer
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := Zip(&packed); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, f := range z.File {
		found[f.Name] = true
		if _, err := os.Stat(filepath.Join(dir, f.Name)); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"manifest.json", "worker.js", "pair.js", "popup.html", "lib/tools.js", "icons/128.png"} {
		if !found[name] {
			t.Errorf("%s is not packed", name)
		}
	}
}
