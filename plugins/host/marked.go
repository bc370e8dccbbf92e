package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Marked lists the processes that bear the run's mark, which is everything that its providers started and what that started,
// as "pid name". While a provider runs it is among them; afterwards it is what was left behind.
func (r *Run) Marked() []string {
	var out []string
	for _, p := range processes() {
		if p.pid == os.Getpid() || p.state == 'Z' || !p.marked(r.mark, r.dir) {
			continue
		}
		name := "?"
		if args := p.read("cmdline"); len(args) > 0 {
			name = filepath.Base(args[0])
		}
		out = append(out, strconv.Itoa(p.pid)+" "+strings.ToValidUTF8(name, "\uFFFD"))
	}
	return out
}

// KillMarked kills every process that bears the run's mark, as Sweep would when this broker is gone, and gives their pids. No
// provider of the run may be needed any more.
func (r *Run) KillMarked() []int {
	o, ok := readOwner(r.dir)
	if !ok {
		return nil
	}
	return o.killMarked(r.dir)
}
