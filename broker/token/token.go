// Package token keeps the named bearer tokens that callers show over HTTP. The file holds their SHA-256 hashes, never the
// tokens themselves; each token is told once, when it is made.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Token is one named token, without the token itself.
type Token struct {
	// ID is never used twice; what a caller owns is owned by it.
	ID string `json:"id"`
	// Name is what people call it; it is used once at a time.
	Name string `json:"name"`
	// Labels are what the policy sees.
	Labels  []string  `json:"labels,omitempty"`
	Created time.Time `json:"created"`
	// Hash is the SHA-256 of the token, in hex.
	Hash string `json:"hash"`
}

// File is a file of tokens. Another process may change it: every look reads it again when it changed. All methods may be
// called concurrently.
type File struct {
	path string

	mu     sync.Mutex
	stamp  stamp
	tokens []Token
}

// stamp tells whether a file is still the one that was read.
type stamp struct {
	when time.Time
	size int64
	file uint64 // the inode; every change makes a new one
}

var (
	// ErrExists is a name that is taken.
	ErrExists = errors.New("there is a token of this name already")
	// ErrUnknown is a name that is not there.
	ErrUnknown = errors.New("there is no token of this name")

	goodName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,63}$`)
)

// Open reads a file of tokens; one that is not there is empty. A file that others than its owner can read is refused.
func Open(path string) (*File, error) {
	f := &File{path: path}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f, f.load()
}

// Ensure makes a token of this name when there is none, and writes it to plainPath, mode 0600, for the programs of this
// user. When the file at plainPath is gone, or holds a token that is none any more, the token is made anew.
func (f *File) Ensure(name, plainPath string) error {
	if data, err := os.ReadFile(plainPath); err == nil {
		if t, ok := f.Lookup(strings.TrimSpace(string(data))); ok && t.Name == name {
			return os.Chmod(plainPath, 0o600)
		}
	}
	if err := f.Revoke(name); err != nil && !errors.Is(err, ErrUnknown) {
		return err
	}
	plain, err := f.New(name, nil)
	if err != nil {
		return err
	}
	return replace(plainPath, []byte(plain+"\n"))
}

// New makes a token and gives it; it cannot be read again.
func (f *File) New(name string, labels []string) (string, error) {
	if !goodName.MatchString(name) {
		return "", fmt.Errorf("%q cannot be the name of a token: letters, digits, - _ and . only, at most 64", name)
	}
	unlock, err := f.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := f.load(); err != nil {
		return "", err
	}
	if slices.ContainsFunc(f.tokens, func(t Token) bool { return t.Name == name }) {
		return "", fmt.Errorf("%s: %w", name, ErrExists)
	}
	plain := "drover_" + rand.Text() + rand.Text()
	sum := sha256.Sum256([]byte(plain))
	t := Token{
		ID: strings.ToLower(rand.Text()), Name: name, Labels: slices.Clone(labels),
		Created: time.Now().UTC().Truncate(time.Second), Hash: hex.EncodeToString(sum[:]),
	}
	return plain, f.save(append(slices.Clone(f.tokens), t))
}

// Revoke takes a token away; who shows it afterwards is refused.
func (f *File) Revoke(name string) error {
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.load(); err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(f.tokens), func(t Token) bool { return t.Name == name })
	if len(left) == len(f.tokens) {
		return fmt.Errorf("%s: %w", name, ErrUnknown)
	}
	return f.save(left)
}

// lock keeps out who else would change the file, in this process and in others, until the function that it gives is called.
func (f *File) lock() (func(), error) {
	f.mu.Lock()
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		f.mu.Unlock()
		return nil, fmt.Errorf("lock tokens: %w", err)
	}
	l, err := os.OpenFile(f.path+".lock", os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err == nil {
		if err = syscall.Flock(int(l.Fd()), syscall.LOCK_EX); err != nil {
			_ = l.Close()
		}
	}
	if err != nil {
		f.mu.Unlock()
		return nil, fmt.Errorf("lock tokens: %w", err)
	}
	return func() {
		_ = l.Close() // which gives the lock back
		f.mu.Unlock()
	}, nil
}

// List gives every token, in the order they were made.
func (f *File) List() ([]Token, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.load()
	return slices.Clone(f.tokens), err
}

// Lookup finds the token that a caller shows. How long it takes does not tell how much of a token was right: hashes are
// compared, all of them, in constant time.
func (f *File) Lookup(plain string) (Token, bool) {
	sum := sha256.Sum256([]byte(plain))
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.load(); err != nil {
		return Token{}, false // a file that cannot be trusted lets nobody in
	}
	var found Token
	ok := false
	for _, t := range f.tokens {
		hash, err := hex.DecodeString(t.Hash)
		if err == nil && subtle.ConstantTimeCompare(hash, sum[:]) == 1 {
			found, ok = t, true
		}
	}
	return found, ok
}

// load reads the file when it changed; f.mu is held.
func (f *File) load() error {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.tokens, f.stamp = nil, stamp{}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read tokens: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		f.tokens, f.stamp = nil, stamp{}
		return fmt.Errorf("read tokens: %s can be read by others; chmod 600 it", f.path)
	}
	now := stamp{when: info.ModTime(), size: info.Size()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		now.file = sys.Ino
	}
	if now == f.stamp {
		return nil
	}
	data, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("read tokens: %w", err)
	}
	var body struct {
		Tokens []Token `json:"tokens"`
	}
	if err := json.Unmarshal(data, &body); err != nil {
		f.tokens, f.stamp = nil, stamp{}
		return fmt.Errorf("read tokens: %s: %w", f.path, err)
	}
	f.tokens, f.stamp = body.Tokens, now
	return nil
}

// save writes the file; f.mu is held.
func (f *File) save(tokens []Token) error {
	data, err := json.MarshalIndent(map[string]any{"tokens": tokens}, "", "  ")
	if err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	if err := replace(f.path, append(data, '\n')); err != nil {
		return err
	}
	f.stamp = stamp{} // the next look reads it
	return f.load()
}

// replace writes a file whole, mode 0600, in a folder of mode 0700: a reader sees the old one or the new one.
func replace(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	tmp, err := os.CreateTemp(dir, ".new-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(tmp.Name()) // gone already when it was renamed
	_, err = tmp.Write(data)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
