package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// A daemon serves callers that were started in many folders, so its providers may take files from one folder alone: the
// daemon's staging folder. A command that uploads may take files from the folder it was started in, and puts copies there;
// where the config names folders, the paths go to the provider as they are.

// makeStaging makes the folder, named as the run folder is, and removes those whose run is over.
func (e *engine) makeStaging(root string) error {
	all := filepath.Join(e.places.state, "uploads")
	if err := private(all); err != nil {
		return err
	}
	old, err := os.ReadDir(all)
	if err != nil {
		return fault.New(fault.InternalError, "the folder %s: %v", all, err).Cause(err)
	}
	for _, o := range old {
		if _, err := os.Lstat(filepath.Join(root, o.Name())); errors.Is(err, os.ErrNotExist) {
			_ = os.RemoveAll(filepath.Join(all, o.Name()))
		}
	}
	e.staging = filepath.Join(all, filepath.Base(e.run.Dir()))
	e.uploads = []string{e.staging}
	return private(e.staging)
}

// stage puts copies of the files of an upload where the daemon's providers may take them from. It gives the paths as they
// were, so that the result can name them.
func (a *app) stage(ctx context.Context, params map[string]any) ([]string, error) {
	t, err := a.target()
	if err != nil {
		return nil, err
	}
	r, err := command(ctx, t.socket, order{Do: doInfo})
	if err != nil {
		return nil, err
	}
	paths, _ := params["paths"].([]any)
	if len(r.Info.UploadDirs) > 0 || r.Info.Uploads == "" || len(paths) == 0 {
		return nil, nil
	}
	folders, err := workingFolder()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(r.Info.Uploads, strings.ToLower(rand.Text()))
	var own []string
	for i, p := range paths {
		from := fmt.Sprint(p)
		if err := within(folders, from); err != nil {
			return nil, err
		}
		to := filepath.Join(dir, strconv.Itoa(i), filepath.Base(from))
		if err := copyFile(from, to); err != nil {
			return nil, fault.New(fault.InvalidRequest, "the file cannot be read: %v", err).Field(fmt.Sprintf("paths[%d]", i)).Cause(err)
		}
		own, paths[i] = append(own, from), to
	}
	return own, nil
}

// within refuses a file that does not really lie in one of the folders.
func within(folders []string, path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fault.New(fault.InvalidRequest, "the file cannot be read: %v", err).Field("paths").Cause(err)
	}
	for _, f := range folders {
		if rel, err := filepath.Rel(f, real); err == nil && filepath.IsLocal(rel) {
			return nil
		}
	}
	return fault.New(fault.PermissionDenied, "%s does not lie in the folder that the command was started in", path).
		Reason("path_refused").Field("paths").Hint("go to its folder, or allow one in the config with files { upload = [...] }")
}

// copyFile makes a second name for a file, or a copy where that cannot be.
func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	if info, err := src.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s is no file", from))
	}
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

// unstage names the files as the caller did.
func unstage(r *browserv1.SetFilesResponse, own []string) {
	if len(own) == len(r.GetFiles()) {
		copy(r.Files, own)
	}
}
