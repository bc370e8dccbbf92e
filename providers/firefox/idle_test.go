package firefox

import (
	"os"
	"testing"
	"time"

	"github.com/droverhq/drover/providers/firefox/firefoxtest"
)

// Firefox ends the background page of an add-on that idles; one with a native host it leaves alone, so a session outlives its silence.
func TestIdleAddon(t *testing.T) {
	dir, err := os.MkdirTemp("", "drover-fxi-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	o := options(dir)
	o.Prefs = map[string]any{"extensions.background.idle.timeout": 300} // milliseconds
	f, err := firefoxtest.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	if err := awaitSockets(1); err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	u := r.session("idle")
	u.open(site(t, map[string]string{"/": formPage}))
	host := hosts(t)[0]
	// Ten times the timeout passes; nothing but time can show that nothing ends.
	timer := time.NewTimer(3 * time.Second)
	<-timer.C
	if got := u.eval("document.title"); got != `"Form"` || hosts(t)[0] != host {
		t.Errorf("after the silence the page is %s", got)
	}
}
