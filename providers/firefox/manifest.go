package firefox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/droverhq/drover/proto/fault"
)

// The native apps that add-ons ask for: ours, and the public Firefox Agent Bridge's.
const (
	appName       = "drover_firefox"
	publicAppName = "firefox_agent_bridge"
)

// publicIDs are the ids of the public bridge's add-on, of its older and its later line.
var publicIDs = []string{"firefox-agent-bridge@local", "browser-agent-bridge@1jehuang.github.io"}

// nativeManifest is a native messaging manifest (MDN, "Native manifests").
type nativeManifest struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Path        string   `json:"path"`
	Type        string   `json:"type"`
	Extensions  []string `json:"allowed_extensions"`
}

// manifestPath is where this user's Firefox looks for the manifest of an app.
func manifestPath(app string) (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("the home folder: %w", err)
	}
	dir := filepath.Join(home, ".mozilla", "native-messaging-hosts")
	if runtime.GOOS == "darwin" {
		dir = filepath.Join(home, "Library", "Application Support", "Mozilla", "NativeMessagingHosts")
	}
	return filepath.Join(dir, app+".json"), nil
}

// hostBinary finds drover-firefox-host: beside this program, else on the PATH.
func hostBinary() (string, bool) {
	const name = "drover-firefox-host"
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		if path := filepath.Join(filepath.Dir(exe), name); executable(path) {
			return path, true
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", false
	}
	path, err = filepath.Abs(path)
	return path, err == nil
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// readManifest reads the manifest of an app; nil where there is none.
func readManifest(app string) (*nativeManifest, error) {
	path, err := manifestPath(app)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &nativeManifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%s is no JSON: %w", path, err)
	}
	return m, nil
}

// ours says whether a manifest starts Drover's host.
func (m *nativeManifest) ours() bool {
	return m != nil && filepath.Base(m.Path) == "drover-firefox-host"
}

// serves says whether a manifest starts a host that is there, for an add-on.
func (m *nativeManifest) serves(id string) bool {
	return m != nil && m.Type == "stdio" && slices.Contains(m.Extensions, id) && executable(m.Path)
}

// writeManifest writes the manifest of an app into this user's folder, and nowhere else. A manifest of another program's under
// that name is not overwritten unless replace says so.
func writeManifest(app, description, binary string, extensions []string, replace bool) (path string, err error) {
	if path, err = manifestPath(app); err != nil {
		return "", err
	}
	have, err := readManifest(app)
	if (err != nil || have != nil && !have.ours()) && !replace {
		return path, fault.New(fault.PermissionDenied, "%s belongs to another program", path).Reason("path_refused").
			Hint("move it away, or say replace")
	}
	data, err := json.MarshalIndent(nativeManifest{Name: app, Description: description, Path: binary, Type: "stdio", Extensions: extensions}, "", "  ")
	if err != nil {
		return path, err
	}
	data = append(data, '\n')
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return path, fmt.Errorf("the folder of native manifests: %w", err)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".drover-*")
	if err != nil {
		return path, fmt.Errorf("writing the native manifest: %w", err)
	}
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return path, fmt.Errorf("writing the native manifest: %w", err)
	}
	return path, nil
}
