package cdp

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// setFiles is upload.set_files.
func (p *Provider) setFiles(ctx context.Context, r *browserv1.SetFilesRequest) (*browserv1.SetFilesResponse, error) {
	p.mu.Lock()
	dirs := p.host.GetUploadDirs()
	p.mu.Unlock()
	paths := make([]string, 0, len(r.GetPaths()))
	for _, path := range r.GetPaths() {
		file, err := allowed(path, dirs)
		if err != nil {
			return nil, err
		}
		paths = append(paths, file)
	}
	pg, e, err := p.act(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) error {
		_, err := pg.driver.SetFiles(ctx, r.GetTarget(), paths)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.SetFilesResponse{PageId: pg.id, Files: paths, Dialog: e.dialog}, nil
}

// allowed gives the real path of a file that may be uploaded: a regular file that lies, with every link followed, inside
// one of the folders. A relative path is looked up below each folder.
func allowed(path string, dirs []string) (string, error) {
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
		if _, err := os.Lstat(full); os.IsNotExist(err) && (within(filepath.Clean(full), root) || within(filepath.Clean(full), filepath.Clean(dir))) {
			missing = true
		}
		file, err := filepath.EvalSymlinks(full)
		if err != nil || !within(file, root) {
			continue
		}
		info, err := os.Stat(file)
		if err != nil {
			continue
		}
		if !info.Mode().IsRegular() {
			return "", fault.New(fault.InvalidRequest, "%s is no file", filepath.Base(path)).Field("paths")
		}
		return file, nil
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
