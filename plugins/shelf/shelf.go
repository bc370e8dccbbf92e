package shelf

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Shelf is the files of one session. It is safe for concurrent use. The zero value, with Root and Prefix, is empty.
type Shelf struct {
	// Root is the folder in which the shelf makes its own; "" is the system's folder for temporary files.
	Root string
	// Prefix begins the name of that folder.
	Prefix string
	// Downloads is the folder that finished downloads are put into, where they stay; "" is the shelf's own.
	Downloads string

	mu    sync.Mutex
	dir   string
	items map[string]item
	count int
}

type item struct{ path, kind string }

// maxPart is how many bytes artifact.get gives at once.
const maxPart = 16 << 20

// Folder gives the shelf's own folder, which Remove takes away; it is made on first use.
func (s *Shelf) Folder() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir != "" {
		return s.dir, nil
	}
	dir, err := os.MkdirTemp(s.Root, s.Prefix)
	if err != nil {
		return "", fmt.Errorf("making a folder for the session's files: %w", err)
	}
	s.dir = dir
	return dir, nil
}

// Add gives a file that is there a ref. kind is its media type, or "" to go by its name.
func (s *Shelf) Add(path, kind string) string {
	if kind == "" {
		kind = mime.TypeByExtension(filepath.Ext(path))
	}
	if kind == "" {
		kind = "application/octet-stream"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items == nil {
		s.items = map[string]item{}
	}
	s.count++
	ref := "a" + strconv.Itoa(s.count) + "-" + token()
	s.items[ref] = item{path: path, kind: kind}
	return ref
}

// Store writes bytes into the folder and gives their ref. ext is the name's end, such as ".png".
func (s *Shelf) Store(data []byte, kind, ext string) (string, error) {
	dir, err := s.Folder()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, ".picture-"+token()+ext)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", fmt.Errorf("keeping a picture: %w", err)
	}
	return s.Add(path, kind), nil
}

// Get is artifact.get. Errors: invalid_request, reason artifact_not_found.
func (s *Shelf) Get(r *browserv1.GetArtifactRequest) (*browserv1.GetArtifactResponse, error) {
	missing := func() error {
		return fault.New(fault.InvalidRequest, "there is no artifact %s in this session", r.GetRef()).Field("ref").Reason("artifact_not_found")
	}
	s.mu.Lock()
	it, ok := s.items[r.GetRef()]
	s.mu.Unlock()
	if !ok {
		return nil, missing()
	}
	f, err := os.Open(it.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing()
	}
	if err != nil {
		return nil, fmt.Errorf("reading an artifact: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading an artifact: %w", err)
	}
	limit := r.GetLimit()
	if limit == 0 {
		limit = maxPart
	}
	data := make([]byte, min(limit, max(info.Size()-r.GetOffset(), 0)))
	n, err := f.ReadAt(data, r.GetOffset())
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading an artifact: %w", err)
	}
	return &browserv1.GetArtifactResponse{
		Data: data[:n], MediaType: it.kind, Size: info.Size(), Eof: r.GetOffset()+int64(n) >= info.Size(),
	}, nil
}

// Remove deletes the folder with everything in it. Nothing can be read any more.
func (s *Shelf) Remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
	s.items = nil
}

func token() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // It never fails (crypto/rand, Go 1.24).
	return hex.EncodeToString(b[:])
}
