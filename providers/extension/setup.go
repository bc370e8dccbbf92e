package extension

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/droverhq/drover/providers/extension/bridge"
	"github.com/droverhq/drover/providers/extension/webext"
)

// Setup is what the provider's program does when a person runs it as `drover-provider-extension setup`: it writes the
// extension to a folder, prints the steps, opens the pairing page, and waits until a browser is connected.
// `drover-provider-extension zip FILE` packs the extension instead.
func Setup(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 2 && args[0] == "zip" {
		return pack(args[1])
	}
	set := flag.NewFlagSet("setup", flag.ContinueOnError)
	set.SetOutput(out)
	listen := set.String("listen", bridge.DefaultListen, "the loopback address that browsers connect to, as in the config")
	dir := set.String("dir", dataDir(), "the folder that the extension is written to")
	wait := set.Duration("wait", 10*time.Minute, "how long to wait for the browser")
	quiet := set.Bool("no-open", false, "do not open the pairing page")
	if len(args) == 0 || args[0] != "setup" {
		return errors.New("say setup, or zip FILE")
	}
	if err := set.Parse(args[1:]); err != nil {
		return err
	}
	if err := webext.Write(*dir); err != nil {
		return err
	}
	n, err := bridge.Open(ctx, bridge.Settings{Listen: *listen})
	if err != nil {
		return err
	}
	defer n.Close()
	await(ctx, n, readyTime, func() bool { ready, err := n.Ready(); return ready || err != nil })
	if _, problem := n.Ready(); problem != nil {
		return errListener(n, problem)
	}
	page := n.URL() + "/pair"
	fmt.Fprintf(out, `The extension is in %s
  1. In the browser, open chrome://extensions and switch on Developer mode.
  2. Press Load unpacked and choose that folder.
  3. Open %s, press Connect this browser, and press Connect in the extension's popup.
Waiting for the browser…
`, *dir, page)
	if !*quiet {
		show(ctx, page)
	}
	ctx, cancel := context.WithTimeout(ctx, *wait)
	defer cancel()
	for {
		changed := n.Changed()
		for _, b := range n.Browsers() {
			if b.Connected {
				fmt.Fprintf(out, "Connected: %s as %s, over %s.\n", nameOf(b), b.Target, b.Transport)
				return nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errors.New("no browser connected in time; the pairing page can be opened again at any time while Drover runs")
		}
	}
}

func nameOf(b bridge.Browser) string {
	if b.Name == "" {
		return "a Chromium"
	}
	return b.Name
}

// show opens a page in the desktop's browser, where there is a desktop.
func show(ctx context.Context, page string) {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return
	}
	if path, err := exec.LookPath("xdg-open"); err == nil {
		_ = exec.CommandContext(ctx, path, page).Run() // the address is printed as well
	}
}

func dataDir() string {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "drover", "chrome-extension")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(home, ".local", "share", "drover", "chrome-extension")
}

func pack(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("packing the extension: %w", err)
	}
	return errors.Join(webext.Zip(f), f.Close())
}
