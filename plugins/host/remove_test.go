package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Guards the folder of a killed provider against the browser that outlives it by a moment and goes on writing there.
func TestRemoveAllOutlastsAWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "files", "profile")
	stop, done := make(chan struct{}), make(chan struct{})
	started := make(chan struct{})
	go func() {
		defer close(done)
		for first := true; ; first = false {
			_ = os.MkdirAll(dir, 0o700)
			_ = os.WriteFile(filepath.Join(dir, "Preferences"), []byte("{}"), 0o600)
			if first {
				close(started)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	<-started
	timer := time.AfterFunc(300*time.Millisecond, func() { close(stop) })
	defer timer.Stop()
	top := filepath.Dir(dir)
	if err := removeAll(top); err != nil {
		t.Fatal(err)
	}
	<-done
	if _, err := os.Stat(top); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}
