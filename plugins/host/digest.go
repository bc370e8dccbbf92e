package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Digests computes the SHA-256 of binaries and remembers it as long as path, size and time of change stay the same. The
// zero value remembers in memory; with a file it remembers across runs.
type Digests struct {
	// File is where digests are kept, as JSON; empty for nowhere.
	File string

	mu     sync.Mutex
	loaded bool
	known  map[string]digestEntry
}

type digestEntry struct {
	Size   int64     `json:"size"`
	ModAt  time.Time `json:"modified_at"`
	Digest string    `json:"sha256"`
}

// Of gives the digest of a file in lower-case hexadecimal digits.
func (d *Digests) Of(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.load()
	if e, ok := d.known[path]; ok && e.Size == info.Size() && e.ModAt.Equal(info.ModTime()) {
		return e.Digest, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	e := digestEntry{Size: info.Size(), ModAt: info.ModTime().UTC(), Digest: hex.EncodeToString(h.Sum(nil))}
	d.known[path] = e
	d.save()
	return e.Digest, nil
}

func (d *Digests) load() {
	if d.loaded {
		return
	}
	d.loaded = true
	d.known = map[string]digestEntry{}
	if d.File == "" {
		return
	}
	if data, err := os.ReadFile(d.File); err == nil {
		if json.Unmarshal(data, &d.known) != nil || d.known == nil {
			d.known = map[string]digestEntry{} // a broken cache is an empty one
		}
	}
}

// save does its best: a cache that cannot be written is only slower.
func (d *Digests) save() {
	if d.File == "" {
		return
	}
	if data, err := json.MarshalIndent(d.known, "", "  "); err == nil {
		_ = writeFile(d.File, append(data, '\n'))
	}
}

// writeFile replaces a file in one step, readable by this user alone.
func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
