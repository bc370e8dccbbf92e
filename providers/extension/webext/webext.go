// Package webext holds Drover's extension for Chromium: plain files, without a build step. The folder can be loaded as it is
// (Load unpacked); Write puts it elsewhere, and Zip packs it.
package webext

import (
	"archive/zip"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed manifest.json brand.json *.js *.html *.css lib icons
var files embed.FS

// Write puts the extension into a folder, which is made when it is missing. Files of an earlier version are replaced.
func Write(dir string) error {
	return each(func(name string, data []byte) error {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a browser of the same user reads it; nothing in it is secret
			return fmt.Errorf("making the extension's folder: %w", err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil { //nolint:gosec // as above
			return fmt.Errorf("writing the extension: %w", err)
		}
		return nil
	})
}

// Zip packs the extension, always to the same bytes.
func Zip(w io.Writer) error {
	z := zip.NewWriter(w)
	if err := each(func(name string, data []byte) error {
		f, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		return err
	}); err != nil {
		return fmt.Errorf("packing the extension: %w", err)
	}
	return z.Close()
}

func each(do func(name string, data []byte) error) error {
	return fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		return do(name, data)
	})
}
