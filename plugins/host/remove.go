package host

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// How long removeAll tries, and how often.
const (
	removeWait  = 3 * time.Second
	removeEvery = 25 * time.Millisecond
)

// removeAll removes a folder that a dying process may still be writing to: a browser whose provider was killed takes a
// moment to notice, and what it writes meanwhile makes a single removal fail halfway or be undone. It is done when the
// folder has stayed away for a moment, and tries for three seconds at most; then it gives the last error.
func removeAll(dir string) error {
	for deadline := time.Now().Add(removeWait); ; {
		err := os.RemoveAll(dir)
		<-time.After(removeEvery)
		if _, there := os.Lstat(dir); errors.Is(there, fs.ErrNotExist) || !time.Now().Before(deadline) {
			return err
		}
	}
}
