package door

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/droverhq/drover/broker"
)

// maxSocketPath is the longest path of a unix socket on Linux, less the closing zero.
const maxSocketPath = 107

// ErrInUse is a socket that another broker listens on.
var ErrInUse = errors.New("another broker listens on the socket")

// Listen opens a unix socket that only this user can reach: the folder has mode 0700, the socket 0600. What a broker left
// that was killed is removed; a socket that somebody answers is ErrInUse.
func Listen(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("listen on %s: the path has %d bytes, a unix socket takes %d; choose a shorter one", path, len(path), maxSocketPath)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := private(dir); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	lock, err := hold(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := sweep(path); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close(), lock.Close())
	}
	return &listener{Listener: l, lock: lock}, nil
}

// listener gives the lock back when it is closed.
type listener struct {
	net.Listener
	lock *os.File
}

func (l *listener) Close() error { return errors.Join(l.Listener.Close(), l.lock.Close()) }

// hold locks a file for as long as it is open, so that two brokers that start at once do not sweep each other's socket.
func hold(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(ErrInUse, f.Close())
	}
	return f, nil
}

// private refuses a folder that others can look into.
func private(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("the folder %s belongs to user %d", dir, owner.Uid)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("the folder %s is open to others (mode %#o); chmod 700 it or choose another", dir, info.Mode().Perm())
	}
	return nil
}

// sweep removes a socket that nobody answers.
func sweep(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("listen on %s: something that is no socket is in the way", path)
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		return errors.Join(fmt.Errorf("listen on %s: %w", path, ErrInUse), c.Close())
	}
	return os.Remove(path)
}

// Peer gives who is at the other end of a unix socket; only this user, and root, may be.
func Peer(c net.Conn) (broker.Principal, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return broker.Principal{}, fmt.Errorf("not a unix socket: %T", c)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return broker.Principal{}, fmt.Errorf("peer of the socket: %w", err)
	}
	var cred *unix.Ucred
	var cerr error
	err = raw.Control(func(fd uintptr) { cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, cerr); err != nil {
		return broker.Principal{}, fmt.Errorf("peer of the socket: %w", err)
	}
	if int(cred.Uid) != os.Geteuid() && cred.Uid != 0 {
		return broker.Principal{}, fmt.Errorf("user %d may not use the broker of user %d", cred.Uid, os.Geteuid())
	}
	name := "uid:" + strconv.FormatUint(uint64(cred.Uid), 10)
	return broker.Principal{ID: name, Name: userName(name, cred.Uid)}, nil
}

// userName is what the policy calls a local user: the user's name, or the number where there is none.
func userName(otherwise string, uid uint32) string {
	if u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10)); err == nil && u.Username != "" {
		return u.Username
	}
	return otherwise
}

// AcceptAll hands every connection to serve, side by side, until ctx ends or the listener fails; then it waits for all of
// them. serve closes what it serves when its context ends.
func AcceptAll(ctx context.Context, l net.Listener, serve func(context.Context, net.Conn)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ECONNABORTED):
			pause(ctx) // too many files are open; some will be closed
			continue
		case err != nil:
			cancel()
			return fmt.Errorf("accept: %w", err)
		}
		all.Go(func() {
			defer c.Close()
			serve(ctx, c)
		})
	}
}

func pause(ctx context.Context) {
	t := time.NewTimer(50 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
