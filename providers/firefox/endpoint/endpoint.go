// Package endpoint is where native hosts and providers meet: a folder of this user's alone, in which every host that a
// Firefox profile started has a socket. Each host is the one holder of its browser; the providers of any number of brokers
// connect to it. A host that dies leaves a socket that nobody answers, and Firefox starts another host.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const suffix = ".sock"

// Folder gives the folder: drover/firefox under $XDG_RUNTIME_DIR, or drover-UID/firefox in the folder for temporary files. It need
// not be there. Firefox and Drover meet where both have the same environment in this.
func Folder() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "drover", "firefox")
	}
	return filepath.Join(os.TempDir(), "drover-"+strconv.Itoa(os.Getuid()), "firefox")
}

// Private makes the folder, and the one around it, for this user alone, and refuses what belongs to somebody else: under a
// shared folder for temporary files anyone could have made it before us.
func Private(dir string) error {
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("making the folder of the sockets: %w", err)
		}
	}
	return Ours(dir)
}

// Ours refuses a folder that somebody else owns or may enter.
func Ours(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir(), ok && int(st.Uid) != os.Getuid():
		return fmt.Errorf("%s is not a folder of this user", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to others (mode %o); make it 0700", dir, info.Mode().Perm())
	}
	return nil
}

// Listen makes the socket of this process in the folder. Closing the listener removes it.
func Listen(ctx context.Context, dir string) (net.Listener, error) {
	if err := Private(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, strconv.Itoa(os.Getpid())+suffix)
	_ = os.Remove(path) // One of an earlier process with this number.
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening for Drover: %w", err)
	}
	return l, os.Chmod(path, 0o600)
}

// Sockets lists the sockets in the folder, sorted; none where the folder is missing.
func Sockets(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := Ours(dir); err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if pid, ok := strings.CutSuffix(e.Name(), suffix); ok && e.Type()&fs.ModeSocket != 0 {
			if _, err := strconv.Atoi(pid); err == nil {
				out = append(out, filepath.Join(dir, e.Name()))
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// dialTime is how long a socket on this machine may take to be connected to.
const dialTime = 2 * time.Second

// Dial connects to a host. The socket of one that died is removed.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTime}
	c, err := d.DialContext(ctx, "unix", path)
	if errors.Is(err, syscall.ECONNREFUSED) && !alive(path) {
		_ = os.Remove(path)
	}
	return c, err
}

// alive says whether the process that a socket is named after is there. A number that another process got by now keeps a
// dead socket a while longer, which costs a failed connection.
func alive(path string) bool {
	pid, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), suffix))
	return err == nil && pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
