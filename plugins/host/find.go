package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Prefix is what the name of every provider binary begins with.
const Prefix = "drover-provider-"

// Place is a kind of folder in which provider binaries are looked for.
type Place struct {
	// Name says which kind it is: "beside", "libexec", "plugins" or "path".
	Name string
	// Dirs are absolute folders, the first one first.
	Dirs []string
}

// Found is a provider binary.
type Found struct {
	// Name is what follows the prefix in its file name, such as cdp.
	Name string
	// Path is absolute.
	Path string
	// Place is the name of the place that it was found in.
	Place string
}

// Places gives where binaries are looked for, in this order: beside the running executable, in ../libexec/drover from
// there, in drover/plugins under XDG_DATA_HOME, and on PATH.
func Places() []Place {
	var places []Place
	if exe, err := os.Executable(); err == nil {
		if target, err := filepath.EvalSymlinks(exe); err == nil {
			exe = target
		}
		dir := filepath.Dir(exe)
		places = append(places,
			Place{Name: "beside", Dirs: []string{dir}},
			Place{Name: "libexec", Dirs: []string{filepath.Join(filepath.Dir(dir), "libexec", "drover")}})
	}
	places = append(places, Place{Name: "plugins", Dirs: []string{PluginDir()}})
	return append(places, Place{Name: "path", Dirs: filepath.SplitList(os.Getenv("PATH"))})
}

// PluginDir is the folder into which a person puts provider binaries: drover/plugins under XDG_DATA_HOME, or under
// ~/.local/share.
func PluginDir() string {
	data := os.Getenv("XDG_DATA_HOME")
	if data == "" || !filepath.IsAbs(data) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "drover", "plugins")
}

// Find lists the provider binaries in some places, or in Places without arguments. Of two with one name the first counts.
// Only regular files that this user may execute are found; relative folders, such as "." on PATH, are passed over.
func Find(places ...Place) []Found {
	if len(places) == 0 {
		places = Places()
	}
	var all []Found
	seen := map[string]bool{}
	for _, place := range places {
		for _, dir := range place.Dirs {
			if !filepath.IsAbs(dir) {
				continue
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				continue // a folder that is not there holds nothing
			}
			for _, e := range entries {
				name, ok := nameOf(e.Name())
				path := filepath.Join(dir, e.Name())
				if !ok || seen[name] || !executable(path) {
					continue
				}
				seen[name] = true
				all = append(all, Found{Name: name, Path: path, Place: place.Name})
			}
		}
	}
	return all
}

// FindOne gives the binary of one name; false when there is none.
func FindOne(name string, places ...Place) (Found, bool) {
	for _, f := range Find(places...) {
		if f.Name == name {
			return f, true
		}
	}
	return Found{}, false
}

// nameOf takes the provider's name out of a file name: lower-case letters, digits, dashes and underscores.
func nameOf(file string) (string, bool) {
	name, ok := strings.CutPrefix(file, Prefix)
	if !ok || name == "" {
		return "", false
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return "", false
		}
	}
	return name, true
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&fs.FileMode(0o111) != 0
}
