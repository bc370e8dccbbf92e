// Package singleton lets one process of a user hold something that can exist only once, such as a listener on a fixed
// port, while the others join it over a private unix socket, and another takes over when the holder dies.
//
// The seat is a lock on a file (flock(2)), which the kernel lets go of with the process, however it ends. The holder listens
// on a socket beside it; both lie in a folder that only its owner can enter, and the peer's user is checked besides.
package singleton

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/droverhq/drover/plugins/internal/peer"
)

// ErrHeld is returned by Take when another process has the seat.
var ErrHeld = errors.New("another process of this user holds the seat")

// Seat names what there is one of for a user.
type Seat struct {
	// Dir is the folder of the lock and the socket, absolute. It is made, mode 0700, when it is missing, and must belong to
	// this user. A socket's path holds 107 bytes at the most.
	Dir string
	// Name begins the names of the files: NAME.lock and NAME.sock.
	Name string
}

// Dir gives the folder where every process of this user looks for seats, whichever broker started it:
// $XDG_RUNTIME_DIR/drover, or drover-UID in the temporary folder.
func Dir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "drover")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("drover-%d", os.Getuid()))
}

// Held is a seat that this process holds until Close.
type Held struct {
	lock     *os.File
	listener net.Listener
	path     string
}

// Take takes the seat and listens on its socket, or gives ErrHeld at once.
func (s Seat) Take() (*Held, error) {
	if err := private(s.Dir); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(s.Dir, s.Name+".lock"), os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("singleton: opening the lock: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrHeld
		}
		return nil, fmt.Errorf("singleton: locking: %w", err)
	}
	path := s.socket()
	// Whoever held the seat before is gone; only its socket may be left.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		lock.Close()
		return nil, fmt.Errorf("singleton: removing the old socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("singleton: listening: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		lock.Close()
		return nil, fmt.Errorf("singleton: closing the socket to others: %w", err)
	}
	return &Held{lock: lock, listener: l, path: path}, nil
}

func (s Seat) socket() string { return filepath.Join(s.Dir, s.Name+".sock") }

// Accept gives the next process of this user that joins. Others are turned away. It fails when the seat is closed.
func (h *Held) Accept() (net.Conn, error) {
	for {
		c, err := h.listener.Accept()
		if err != nil {
			return nil, err
		}
		if _, _, err := peer.SameUser().ServerHandshake(c); err != nil {
			c.Close()
			continue
		}
		return c, nil
	}
}

// Close gives the seat up: the socket is removed first, then the lock is let go of. Connections that were accepted stay.
func (h *Held) Close() error {
	err := h.listener.Close() // it removes the socket
	return errors.Join(err, h.lock.Close())
}

// Join connects to the holder. It fails when nobody holds the seat, or the holder is just beginning or ending.
func (s Seat) Join(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", s.socket())
	if err != nil {
		return nil, fmt.Errorf("singleton: joining the holder: %w", err)
	}
	if _, _, err := peer.SameUser().ClientHandshake(ctx, "", c); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Run keeps the process in one of the two roles until ctx ends, which is when it returns nil. hold is called with the seat
// and closes nothing; join with a connection to the holder, which Run closes. When either returns, for the holder died or
// cannot go on, the roles are found anew: the first process to see it takes over, within a tenth of a second. An error of
// hold gives the seat up for a second, so that another process may try; an error of Take ends Run.
func (s Seat) Run(ctx context.Context, hold func(context.Context, *Held) error, join func(context.Context, net.Conn) error) error {
	for ctx.Err() == nil {
		held, err := s.Take()
		switch {
		case err == nil:
			err = hold(ctx, held)
			_ = held.Close()
			if err != nil {
				pause(ctx, time.Second)
			}
			continue
		case !errors.Is(err, ErrHeld):
			return err
		}
		if c, err := s.Join(ctx); err == nil {
			_ = join(ctx, c) // The roles are found anew, whatever it was.
			c.Close()
		}
		pause(ctx, time.Duration(20+rand.IntN(60))*time.Millisecond)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// private makes a folder that only its owner can enter, and refuses one of someone else's: under a shared temporary folder
// anyone could have made it before us.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("singleton: making the folder: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("singleton: reading the folder: %w", err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || ok && int(st.Uid) != os.Getuid() {
		return fmt.Errorf("singleton: %s is not a folder of this user; remove it, or set XDG_RUNTIME_DIR to a folder of your own", dir)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder needs its x bit
			return fmt.Errorf("singleton: %s is open to others: %w", dir, err)
		}
	}
	return nil
}
