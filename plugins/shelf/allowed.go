package shelf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/droverhq/drover/proto/fault"
)

// Allowed gives the real path of a file that may be uploaded: a regular file that lies, with every link followed, inside
// one of the folders. A relative path is looked up below each folder.
func Allowed(path string, dirs []string) (string, error) {
	real, err := AllowedFolder(path, dirs)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(real); err == nil && !info.Mode().IsRegular() {
		return "", fault.New(fault.InvalidRequest, "%s is no file", filepath.Base(path)).Field("paths")
	}
	return real, nil
}

// AllowedFolder is Allowed for what may be a folder as well.
func AllowedFolder(path string, dirs []string) (string, error) {
	refused := func() error {
		return fault.New(fault.PermissionDenied, "the file lies outside the folders that may be uploaded from").Reason("path_refused").
			Field("paths").With("path", path).Hint("put it into an allowed folder, or allow its folder in the config")
	}
	if strings.ContainsRune(path, 0) {
		return "", fault.New(fault.InvalidRequest, "the path holds a NUL").Field("paths")
	}
	missing := false
	for _, dir := range dirs {
		root, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		full := path
		if !filepath.IsAbs(full) {
			full = filepath.Join(root, path)
		}
		if within(filepath.Clean(full), root) || within(filepath.Clean(full), filepath.Clean(dir)) {
			_, err := os.Lstat(full)
			missing = missing || errors.Is(err, fs.ErrNotExist)
		}
		real, err := filepath.EvalSymlinks(full)
		if err != nil || !within(real, root) {
			continue
		}
		if _, err := os.Stat(real); err != nil {
			continue
		}
		return real, nil
	}
	if missing {
		return "", fault.New(fault.InvalidRequest, "there is no file %s", filepath.Base(path)).Field("paths").Reason("file_not_found")
	}
	return "", refused()
}

// within says whether a clean path lies below a folder.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && rel != "." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
