package firefox

import (
	"archive/zip"
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/droverhq/drover/plugins/inpage"
)

//go:embed addon
var addonFiles embed.FS

// addonID is the add-on's id, as its manifest and the native messaging manifest have it.
const addonID = "drover@droverhq.github.io"

// bundled gives the add-on's files by name: those of the folder, and the engine with its digest.
func bundled() (map[string][]byte, error) {
	out := map[string][]byte{}
	script, engine := inpage.Bundle()
	out["engine.js"] = []byte("// The engine that reads and aims in the page; made of plugins/inpage.\n" + script)
	out["version.js"] = []byte(fmt.Sprintf("// The digest of the engine beside this file.\nexport default %q;\n", engine))
	entries, err := fs.ReadDir(addonFiles, "addon")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := fs.ReadFile(addonFiles, "addon/"+e.Name())
		if err != nil {
			return nil, err
		}
		out[e.Name()] = data
	}
	return out, nil
}

// unpack writes the add-on into a folder, from where about:debugging loads it. Files that are right already are left alone.
func unpack(dir string) error {
	files, err := bundled()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // Firefox reads it; there is no secret in it
		return fmt.Errorf("the add-on's folder: %w", err)
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
			continue
		}
		if err := os.WriteFile(path, data, 0o644); err != nil { //nolint:gosec // as above
			return fmt.Errorf("the add-on's files: %w", err)
		}
	}
	return nil
}

// pack gives the add-on as an xpi, which is a zip with the manifest at its root. The same files make the same bytes.
func pack() ([]byte, error) {
	files, err := bundled()
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, name := range sortedKeys(files) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err == nil {
			_, err = w.Write(files[name])
		}
		if err != nil {
			return nil, fmt.Errorf("packing the add-on: %w", err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("packing the add-on: %w", err)
	}
	return buf.Bytes(), nil
}
