package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// envDial makes the test binary dial a socket, as another user.
const envDial = "DROVER_TEST_DIAL"

func TestMain(m *testing.M) {
	if path := os.Getenv(envDial); path != "" {
		c, err := net.Dial("unix", path)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_, _ = c.Read(make([]byte, 1)) // until the other side has looked
		return
	}
	os.Exit(m.Run())
}

func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "peer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, path
}

func TestSameUserIsLetIn(t *testing.T) {
	l, path := listen(t)
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
	if _, _, err := SameUser().ServerHandshake(s); err != nil {
		t.Errorf("server: %v", err)
	}
	if _, _, err := SameUser().ClientHandshake(t.Context(), "", c); err != nil {
		t.Errorf("client: %v", err)
	}
}

// Over TCP there is no telling who calls.
func TestTCPIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := SameUser().ClientHandshake(t.Context(), "", c); err == nil {
		t.Error("let in")
	}
}

// Should the folder's mode ever fail, the kernel's word about the peer still holds. Only root can be two users.
func TestAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to call as another user")
	}
	l, path := listen(t)
	exe, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dialer := filepath.Join(filepath.Dir(path), "dialer") // where the other user may run it
	if err := errors.Join(os.WriteFile(dialer, exe, 0o755), os.Chmod(filepath.Dir(path), 0o755), os.Chmod(path, 0o777)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(dialer)
	cmd.Env = []string{envDial + "=" + path}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = SameUser().ServerHandshake(s)
	if err == nil || !strings.Contains(err.Error(), "user 65534 is refused") {
		t.Errorf("handshake: %v", err)
	}
	_ = s.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
