package shelf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"
)

// maxName is how long the name of a file may be, in bytes, with room for a number beside it.
const maxName = 200

// reserved are names that Windows keeps for devices.
var reserved = map[string]bool{
	"CON": true, "PRN": true, "AUX": true, "NUL": true, "COM1": true, "COM2": true, "COM3": true, "COM4": true,
	"COM5": true, "COM6": true, "COM7": true, "COM8": true, "COM9": true, "LPT1": true, "LPT2": true, "LPT3": true,
	"LPT4": true, "LPT5": true, "LPT6": true, "LPT7": true, "LPT8": true, "LPT9": true,
}

// SafeName makes a file name of what a server suggested: no folder, no hidden file, no device, no control character.
func SafeName(suggested string) string {
	name := strings.ToValidUTF8(suggested, "_")
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || strings.ContainsRune(`<>:"|?*`, r) {
			return '_'
		}
		return r
	}, name)
	name = strings.TrimLeft(strings.TrimRight(strings.TrimSpace(name), ". "), ".")
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	switch {
	case name == "":
		return "download"
	case reserved[stem]:
		name = "_" + name
	}
	if len(name) > maxName {
		ext := filepath.Ext(name)
		if len(ext) > 32 {
			ext = ""
		}
		name = clip(strings.TrimSuffix(name, ext), maxName-len(ext)) + ext
	}
	return name
}

// clip cuts a text to at most n bytes, between runes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Take moves a finished file into the folder for downloads under the safe form of a name, beside those that are there, and
// gives its new path.
func (s *Shelf) Take(path, suggested string) (string, error) {
	dir, err := s.downloads()
	if err != nil {
		return "", err
	}
	name := SafeName(suggested)
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for i := 1; i < 10000; i++ {
		to := filepath.Join(dir, name)
		if i > 1 {
			to = filepath.Join(dir, stem+" ("+strconv.Itoa(i)+")"+ext)
		}
		if to == path {
			return path, nil
		}
		f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // Nothing is overwritten.
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("naming a download: %w", err)
		}
		if err := errors.Join(f.Close(), move(path, to)); err != nil {
			return "", fmt.Errorf("naming a download: %w", err)
		}
		return to, nil
	}
	return "", fmt.Errorf("naming a download: %s is taken too often", name)
}

// downloads gives the folder for downloads, which is made where it is not there.
func (s *Shelf) downloads() (string, error) {
	if s.Downloads == "" {
		return s.Folder()
	}
	if err := os.MkdirAll(s.Downloads, 0o700); err != nil {
		return "", fmt.Errorf("making the folder for downloads: %w", err)
	}
	return s.Downloads, nil
}

// move moves a file over another, also to another file system.
func move(from, to string) error {
	err := os.Rename(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return os.Remove(from)
}
