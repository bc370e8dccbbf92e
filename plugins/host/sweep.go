package host

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// sweepWait is how long Sweep waits for the processes that it killed to be gone.
const sweepWait = 2 * time.Second

// Swept says what Sweep removed.
type Swept struct {
	// Dirs are the run folders that were removed.
	Dirs []string
	// PIDs are the processes that were killed.
	PIDs []int
}

// Sweep removes what brokers left below root that are not running any more: first the processes that bear the mark of such
// a run in their environment, or its folder in their command line, then the folder. A process is killed only while it is
// provably the one that was looked at, and never one without a mark; a folder only when it is a run folder directly below
// root. Call it at the start, before OpenRun or after.
func Sweep(root string) (Swept, error) {
	var swept Swept
	if _, err := os.Lstat(root); errors.Is(err, os.ErrNotExist) {
		return swept, nil
	}
	unlock, err := lockRoot(root)
	if err != nil {
		return swept, err
	}
	defer unlock()
	entries, err := os.ReadDir(root)
	if err != nil {
		return swept, err
	}
	var errs []error
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		if !e.IsDir() {
			continue
		}
		if strings.HasPrefix(e.Name(), newPrefix) { // made under the lock by one who died over it
			errs = append(errs, os.RemoveAll(dir))
			continue
		}
		o, ok := readOwner(dir)
		if !ok || o.alive() {
			continue
		}
		swept.PIDs = append(swept.PIDs, o.killMarked(dir)...)
		if err := os.RemoveAll(dir); err != nil {
			errs = append(errs, err)
			continue
		}
		swept.Dirs = append(swept.Dirs, dir)
	}
	return swept, errors.Join(errs...)
}

func readOwner(dir string) (owner, bool) {
	var o owner
	data, err := os.ReadFile(filepath.Join(dir, ownerFile))
	if err != nil || json.Unmarshal(data, &o) != nil {
		return o, false
	}
	return o, o.PID > 0 && len(o.Mark) >= 16
}

// alive says whether the broker still runs: the same process, not another one with its pid.
func (o owner) alive() bool {
	if o.Boot != bootID() {
		return false
	}
	p, err := identify(o.PID)
	return err == nil && p.start == o.StartTime && p.state != 'Z'
}

// killMarked kills every process of this user that bears the run's mark and started in its boot after its broker, and waits
// for their end. It looks again until there is none, because a process may have started another meanwhile.
func (o owner) killMarked(dir string) []int {
	if o.Boot != bootID() {
		return nil // nothing outlives a boot
	}
	var killed []int
	deadline := time.Now().Add(sweepWait)
	for found := true; found && time.Now().Before(deadline); {
		found = false
		for _, p := range processes() {
			if p.pid == os.Getpid() || p.state == 'Z' || p.start < o.StartTime || !p.marked(o.Mark, dir) {
				continue
			}
			if p.kill(deadline, func(now proc) bool { return now.start == p.start && now.marked(o.Mark, dir) }) {
				killed, found = append(killed, p.pid), true
			}
		}
	}
	return killed
}

// marked says whether the process bears the mark in its environment, or has the run folder in its command line. A mark in
// the command line alone is not enough: a person may have typed it.
func (p proc) marked(mark, dir string) bool {
	if p.uid != os.Geteuid() {
		return false
	}
	for _, kv := range p.read("environ") {
		if kv == EnvRun+"="+mark {
			return true
		}
	}
	for _, arg := range p.read("cmdline") {
		if strings.HasPrefix(arg, "--") && strings.Contains(arg, "="+dir+"/") {
			return true
		}
	}
	return false
}
