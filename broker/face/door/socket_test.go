package door

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A socket is opened only where no other user can reach it, never in the place of something else, and with a word about what
// is wrong otherwise. What a killed broker left is taken away.
func TestListen(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(open, "s"): "chmod 700",
		file:                     "in the way",
		filepath.Join(dir, strings.Repeat("x", 108)): "shorter",
	} {
		if l, err := Listen(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, %v", path, l, err)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "mine" {
		t.Errorf("the file that was in the way is %q, %v", data, err)
	}

	left := filepath.Join(dir, "left")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: left, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false) // as after SIGKILL
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(left)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Stat(left); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has the mode %v, %v", info.Mode(), err)
	}
	if _, err := Listen(left); !errors.Is(err, ErrInUse) {
		t.Errorf("a second one gets %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Listen(left)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// The peer of a socket is this user.
func TestPeer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "s")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := Peer(s)
	if err != nil || !strings.HasPrefix(p.ID, "uid:") || p.Name == "" {
		t.Errorf("the peer is %+v, %v", p, err)
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, err := Peer(a); err == nil {
		t.Error("a pipe has a peer")
	}
}
