package cdp

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
)

// temporaries counts the folders that makeTemporary made.
var temporaries atomic.Uint64

// A browser needs so much of a temporary folder: a socket whose path has at most 107 bytes (unix(7)), and room for what its
// processes share.
const (
	socketName    = "/org.chromium.Chromium.XXXXXX/SingletonSocket"
	maxSocketPath = 107
	sharedRoom    = 512 << 20
)

// makeTemporary makes a folder for what a browser leaves in the temporary folder and in its user's home when it is killed or
// crashes, so that it goes with the browser, and with the run at the latest. It is empty where the run folder will not do:
// the path is too long, or the file system too small. Then the user's own are used.
func makeTemporary(runDir string) string {
	if runDir == "" {
		return ""
	}
	dir := filepath.Join(runDir, "t"+strconv.FormatUint(temporaries.Add(1), 36))
	var fs syscall.Statfs_t
	if len(dir)+len(socketName) > maxSocketPath || syscall.Statfs(runDir, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < sharedRoom { //nolint:gosec // a size is not negative
		return ""
	}
	if os.Mkdir(dir, 0o700) != nil {
		return ""
	}
	return dir
}

// inTemporary gives the environment of a browser that uses such a folder.
func inTemporary(env []string, dir string) []string {
	if dir == "" {
		return env
	}
	return append(env, "TMPDIR="+dir, "BREAKPAD_DUMP_LOCATION="+filepath.Join(dir, "crashes"))
}
