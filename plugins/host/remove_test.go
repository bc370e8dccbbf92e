package host

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// Guards the folder of a killed provider against the browser that outlives it by a moment and goes on writing there.
func TestRemoveAllOutlastsAWriter(t *testing.T) {
	top := filepath.Join(t.TempDir(), "files")
	synctest.Test(t, func(t *testing.T) {
		const writes = 300 * time.Millisecond
		start := time.Now()
		write := func() {
			dir := filepath.Join(top, "profile")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Error(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "Preferences"), []byte("{}"), 0o600); err != nil {
				t.Error(err)
			}
		}
		write()
		go func() {
			for range writes / (10 * time.Millisecond) {
				<-time.After(10 * time.Millisecond)
				write()
			}
		}()
		if err := removeAll(top); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < writes {
			t.Errorf("it gave up after %s, while the writer went on until %s", took, writes)
		}
	})
	if _, err := os.Stat(top); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}
