package token

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A token lets in whoever shows it until it is revoked, in this process and in another; the file never holds it.
func TestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "tokens.json")
	f, other := open(t, path), open(t, path)
	ci, err := f.New("ci", []string{"read-only"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.New("ci", nil); !errors.Is(err, ErrExists) {
		t.Errorf("a second token of the name: %v", err)
	}
	for _, bad := range []string{"", "a b", "../x", strings.Repeat("x", 65)} {
		if _, err := f.New(bad, nil); err == nil {
			t.Errorf("%q may be a name", bad)
		}
	}
	first, ok := other.Lookup(ci)
	if !ok || first.Name != "ci" || first.Labels[0] != "read-only" || first.ID == "" {
		t.Errorf("the other process finds %+v, %v", first, ok)
	}
	for _, wrong := range []string{"", ci[1:], ci + "x", strings.ToLower(ci), first.Hash, first.ID} {
		if _, ok := f.Lookup(wrong); ok {
			t.Errorf("%q is let in", wrong)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), ci) {
		t.Errorf("the file holds the token, or %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has the mode %v, %v", info.Mode(), err)
	}
	if err := other.Revoke("ci"); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Lookup(ci); ok {
		t.Error("a revoked token is let in")
	}
	if err := f.Revoke("ci"); !errors.Is(err, ErrUnknown) {
		t.Errorf("revoked twice: %v", err)
	}
	again, err := f.New("ci", nil)
	if err != nil {
		t.Fatal(err)
	}
	if second, ok := other.Lookup(again); !ok || second.ID == first.ID {
		t.Error("who comes after owns what the one before owned")
	}
	if list, err := f.List(); err != nil || len(list) != 1 {
		t.Errorf("the list is %v, %v", list, err)
	}
}

// A file that others can read, or that is none, lets nobody in and is told of.
func TestUntrustedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	f := open(t, path)
	plain, err := f.New("a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Lookup(plain); ok {
		t.Error("a file that others can read lets in")
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("opening it gives %v", err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil {
		t.Error("a file that is no JSON is opened")
	}
}

// The first start writes the token for this user's programs; later ones keep it, and make it anew when it opens nothing.
func TestEnsure(t *testing.T) {
	dir := t.TempDir()
	f, plain := open(t, filepath.Join(dir, "tokens.json")), filepath.Join(dir, "token")
	read := func() string {
		if err := f.Ensure("local", plain); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(plain)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("the mode is %v, %v", info.Mode(), err)
		}
		data, err := os.ReadFile(plain)
		if err != nil {
			t.Fatal(err)
		}
		s := strings.TrimSpace(string(data))
		if _, ok := f.Lookup(s); !ok {
			t.Fatal("it opens nothing")
		}
		return s
	}
	first := read()
	if read() != first {
		t.Error("it changes from start to start")
	}
	if err := f.Revoke("local"); err != nil {
		t.Fatal(err)
	}
	second := read()
	if err := os.Remove(plain); err != nil {
		t.Fatal(err)
	}
	if third := read(); second == first || third == second {
		t.Error("a token that was lost stays")
	}
	if _, ok := f.Lookup(second); ok {
		t.Error("the one before is let in")
	}
}

// Guards tokens that are made at the same moment by several processes: none is lost.
func TestConcurrentNewLosesNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	const n = 8
	made := make(chan string, n)
	for i := range n {
		f := open(t, path) // each with a mutex of its own, as processes have
		go func() {
			plain, err := f.New(fmt.Sprintf("c%d", i), nil)
			if err != nil {
				t.Error(err)
			}
			made <- plain
		}()
	}
	f := open(t, path)
	for range n {
		if plain := <-made; plain == "" {
			continue
		} else if _, ok := f.Lookup(plain); !ok {
			t.Error("a token is lost")
		}
	}
	if l, err := f.List(); err != nil || len(l) != n {
		t.Errorf("%d tokens, %v", len(l), err)
	}
}
