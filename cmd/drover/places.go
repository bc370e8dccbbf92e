package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/droverhq/drover/proto/fault"
)

// places are the folders of one user's Drover (XDG Base Directory Specification 0.8). None is made before it is used.
type places struct {
	config string // the config file
	state  string // what outlives the machine's run: tokens, logs, profiles that persist
	cache  string // what can be made again
	run    string // sockets, locks, temporary profiles; 0700 and ours
}

// findPlaces follows the environment. Relative XDG paths are ignored, as the specification asks.
func findPlaces() places {
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		home = temporary()
	}
	run := filepath.Join(xdg("XDG_RUNTIME_DIR", ""), "drover")
	if !filepath.IsAbs(run) {
		run = temporary()
	}
	return places{
		config: filepath.Join(xdg("XDG_CONFIG_HOME", filepath.Join(home, ".config")), "drover", "config.hcl"),
		state:  filepath.Join(xdg("XDG_STATE_HOME", filepath.Join(home, ".local", "state")), "drover"),
		cache:  filepath.Join(xdg("XDG_CACHE_HOME", filepath.Join(home, ".cache")), "drover"),
		run:    run,
	}
}

func xdg(name, fallback string) string {
	if dir := os.Getenv(name); filepath.IsAbs(dir) {
		return dir
	}
	return fallback
}

// temporary is the runtime folder where the system gives none.
func temporary() string {
	return filepath.Join(os.TempDir(), "drover-"+strconv.Itoa(os.Getuid()))
}

// socket is where the daemon listens unless it is told otherwise.
func (p places) socket() string { return filepath.Join(p.run, "drover.sock") }

// tokens is the file of named tokens.
func (p places) tokens() string { return filepath.Join(p.state, "tokens.json") }

// log is the file of a daemon that a command started.
func (p places) log() string { return filepath.Join(p.state, "drover.log") }

// private makes a folder that only its owner can enter, and refuses one that belongs to someone else, is open to others
// or is not a folder: under a shared temp folder anyone could have made it before us.
func private(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // the parents are shared, the folder itself is not
		return fault.New(fault.InternalError, "the folder %s cannot be made: %v", dir, err).Cause(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fault.New(fault.InternalError, "the folder %s cannot be made: %v", dir, err).Cause(err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fault.New(fault.InternalError, "the folder %s cannot be read: %v", dir, err).Cause(err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || ok && int(st.Uid) != os.Getuid() {
		return fault.New(fault.PermissionDenied, "%s is not a folder of this user", dir).Reason("path_refused").
			Hint("remove it, or set XDG_RUNTIME_DIR to a folder of your own")
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder needs its x bit
			return fault.New(fault.PermissionDenied, "%s is open to others and cannot be closed", dir).Reason("path_refused").Cause(err)
		}
	}
	return nil
}

// absolute gives a path as seen from the folder the command was started in.
func absolute(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("the working folder: %w", err)
	}
	return abs, nil
}

// describe is where what providers said of themselves is remembered.
func (p places) describe() string { return filepath.Join(p.cache, "describe") }
