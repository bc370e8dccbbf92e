package cdp

import (
	"fmt"
	"os"
	"path/filepath"
)

// handlerScript stands for the desktop's programs that know which application an address like tel: or mailto: belongs to.
// It says that the browser itself is that application, so the browser drops such a navigation. Otherwise it would open a
// window of its own that asks, which no page sees and which swallows every click, or start another program.
const handlerScript = "#!/bin/sh\necho yes\n"

// withoutHandlers gives the environment for a browser that hands no address to other programs. The scripts lie in the
// profile's folder and go with it.
func withoutHandlers(env []string, profile string) ([]string, error) {
	dir := filepath.Join(profile, "drover-handlers")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of handlers: %w", err)
	}
	for _, name := range []string{"xdg-settings", "xdg-mime", "xdg-open"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(handlerScript), 0o700); err != nil {
			return nil, fmt.Errorf("writing a handler: %w", err)
		}
	}
	out := make([]string, 0, len(env)+1)
	path := os.Getenv("PATH")
	for _, v := range env {
		if len(v) < 5 || v[:5] != "PATH=" {
			out = append(out, v)
		}
	}
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	return append(out, "PATH="+dir+string(os.PathListSeparator)+path), nil
}
