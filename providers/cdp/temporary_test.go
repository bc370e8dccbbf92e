package cdp

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Guards the user's folders from a browser that is killed: nothing of it is left in the temporary folder, nor in the home.
func TestLeavings(t *testing.T) {
	tmp, home := t.TempDir(), t.TempDir()
	r := newRig(t, nil)
	t.Setenv("TMPDIR", tmp)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	u := r.session("killed")
	u.open("about:blank")
	if made, err := filepath.Glob(r.run + "/t*/org.chromium.*"); err != nil || len(made) == 0 {
		t.Errorf("the browser does not use the run folder: %v, %v", made, err)
	}
	for _, pid := range processesOf(r.run) {
		if line, err := os.ReadFile("/proc/" + itoa(pid) + "/cmdline"); err == nil && !strings.Contains(string(line), "--type=") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if _, err := try[*browserv1.SnapshotResponse](r, &browserv1.SnapshotRequest{SessionId: u.id}); fault.CodeOf(err) == 0 {
		t.Error("the session outlived its browser")
	}
	for _, left := range []string{tmp + "/*", home + "/.config/*", home + "/.config/*/*"} {
		if found, err := filepath.Glob(left); err != nil || len(found) > 0 {
			t.Errorf("left behind: %v, %v", found, err)
		}
	}
}

// Guards browsers from a temporary folder that they cannot use.
func TestTemporaryFolderTooDeep(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("x", 60))
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := makeTemporary(deep); got != "" {
		t.Errorf("it is %s", got)
	}
	if env := inTemporary([]string{"A=b"}, ""); len(env) != 1 {
		t.Errorf("the environment is %v", env)
	}
}
