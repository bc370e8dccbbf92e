package host

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/droverhq/drover/proto/fault"
)

// EnvRun names the environment variable that marks everything a broker's providers start. A provider passes its environment
// on to its browsers, so they bear the mark too.
const EnvRun = "DROVER_RUN"

const (
	ownerFile = "owner.json"
	lockFile  = ".lock"
	newPrefix = ".new-"

	lockWait = 10 * time.Second // more than a sweep takes
)

// Run is the folder of one broker's life: sockets, temporary profiles, downloads. It says whose it is, so that what a killed
// broker leaves can be told from what a living one uses.
type Run struct {
	dir   string
	mark  string
	close sync.Once

	mu sync.Mutex
	n  int
}

// owner is what owner.json holds.
type owner struct {
	PID       int    `json:"pid"`
	StartTime uint64 `json:"start_time"` // of the process, in clock ticks since boot
	Boot      string `json:"boot"`       // the boot that pid and start time belong to
	Mark      string `json:"mark"`
}

// OpenRun makes the run folder of this process below root, which is made with mode 0700 and must belong to this user. Keep
// root short: a unix socket's path has at most 107 bytes.
func OpenRun(root string) (*Run, error) {
	unlock, err := lockRoot(root)
	if err != nil {
		return nil, err
	}
	defer unlock()
	me, err := identify(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	tmp, err := os.MkdirTemp(root, newPrefix)
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	mark := rand.Text()[:16]
	data, err := json.Marshal(owner{PID: me.pid, StartTime: me.start, Boot: bootID(), Mark: mark})
	if err == nil {
		err = os.WriteFile(filepath.Join(tmp, ownerFile), data, 0o600)
	}
	dir := filepath.Join(root, strconv.Itoa(me.pid)+"-"+mark[:4])
	if err == nil {
		err = os.Rename(tmp, dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("run folder: %w", err), os.RemoveAll(tmp))
	}
	return &Run{dir: dir, mark: mark}, nil
}

// Dir is the folder.
func (r *Run) Dir() string { return r.dir }

// Mark is what every process of this run has in its environment as DROVER_RUN.
func (r *Run) Mark() string { return r.mark }

// Close removes the folder. Nothing of the run may be running any more.
func (r *Run) Close() error {
	var err error
	r.close.Do(func() { err = removeAll(r.dir) })
	return err
}

// sub makes a folder for one life of a provider.
func (r *Run) sub(id string) (string, error) {
	r.mu.Lock()
	r.n++
	n := r.n
	r.mu.Unlock()
	dir := filepath.Join(r.dir, id+"-"+strconv.Itoa(n))
	return dir, os.Mkdir(dir, 0o700)
}

// lockRoot makes the root and holds its lock, so that nobody sweeps a folder that is being made.
func lockRoot(root string) (unlock func(), err error) {
	if !filepath.IsAbs(root) {
		return nil, fault.New(fault.InternalError, "the run folder's root %q is not absolute", root)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	if err := private(root); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(root, lockFile), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(lockWait); ; <-again.C {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("run folder: lock: %w", err), f.Close())
		}
	}
	return func() { _ = f.Close() }, nil
}

// private refuses a folder that is not this user's alone.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fault.New(fault.PermissionDenied, "the folder %s is not this user's alone", dir).
			Hint("give it to this user with mode 0700, or remove it")
	}
	return nil
}
