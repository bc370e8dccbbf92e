package cdp

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// artifacts are the pictures and files that a session left for artifact.get.
type artifacts struct {
	mu    sync.Mutex
	dir   string // removed with the session
	items map[string]artifact
	count int
}

type artifact struct{ path, kind string }

// maxPart is how many bytes artifact.get gives at once.
const maxPart = 16 << 20

// add gives a file a ref.
func (a *artifacts) add(path, kind string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.items == nil {
		a.items = map[string]artifact{}
	}
	a.count++
	ref := "a" + strconv.Itoa(a.count) + "-" + newToken()
	a.items[ref] = artifact{path: path, kind: kind}
	return ref
}

func (a *artifacts) get(ref string) (artifact, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	item, ok := a.items[ref]
	return item, ok
}

func (a *artifacts) remove() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dir != "" {
		_ = os.RemoveAll(a.dir)
	}
	a.items = nil
}

// store writes bytes into the session's folder and gives their ref.
func (s *session) store(data []byte, kind, ext string) (string, error) {
	dir, err := s.folder()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, ".picture-"+newToken()+ext)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", err
	}
	return s.files.add(path, kind), nil
}

// getArtifact is artifact.get.
func (p *Provider) getArtifact(_ context.Context, r *browserv1.GetArtifactRequest) (*browserv1.GetArtifactResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	missing := func() error {
		return fault.New(fault.InvalidRequest, "there is no artifact %s in this session", r.GetRef()).Field("ref").Reason("artifact_not_found")
	}
	item, ok := s.files.get(r.GetRef())
	if !ok {
		return nil, missing()
	}
	f, err := os.Open(item.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing()
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	limit := r.GetLimit()
	if limit == 0 {
		limit = maxPart
	}
	left := max(info.Size()-r.GetOffset(), 0)
	data := make([]byte, min(limit, left))
	n, err := f.ReadAt(data, r.GetOffset())
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return &browserv1.GetArtifactResponse{
		Data: data[:n], MediaType: item.kind, Size: info.Size(), Eof: r.GetOffset()+int64(n) >= info.Size(),
	}, nil
}
