package plugins

import (
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// EnvLifeline names the environment variable that says "stdin" when the host holds the other end of the provider's stdin
// for as long as it lives, and the provider's process group is its own.
const EnvLifeline = "DROVER_LIFELINE"

// parentEvery is how often the provider looks whether its parent is still the one that started it. The lifeline tells
// sooner; this is for hosts that have none.
const parentEvery = time.Second

// watcher knows why the provider is to end.
type watcher struct {
	orphaned atomic.Bool // the lifeline or the parent is gone
	parent   int
	lifeline bool // the process group is ours
}

// repeatWait is how long after the first SIGTERM further ones are taken for the same.
const repeatWait = time.Second

// watch calls stop, once, when the host hangs up or is gone, or SIGTERM comes. A second SIGTERM, at least a second later,
// ends the process at once. SIGPIPE is ignored: the log of a provider whose host is gone goes nowhere, and that is no reason
// to leave its browser's things behind.
// Its goroutines live as long as the process.
func watch(stop func()) *watcher {
	w := &watcher{parent: os.Getppid(), lifeline: os.Getenv(EnvLifeline) == "stdin"}
	reasons := make(chan bool, 3) // true: the host is gone
	terminate := make(chan os.Signal, 2)
	signal.Notify(terminate, syscall.SIGTERM)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE) // not for us: the lifeline tells of the host
	go func() {
		<-terminate
		reasons <- false
		for began := time.Now(); time.Since(began) < repeatWait; { // the kernel says it for every thread of a dying host
			<-terminate
		}
		os.Exit(1)
	}()
	if w.lifeline {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			reasons <- true
		}()
	}
	go func() {
		for range time.Tick(parentEvery) {
			if os.Getppid() != w.parent {
				reasons <- true
				return
			}
		}
	}()
	go func() {
		w.orphaned.Store(<-reasons)
		stop()
	}()
	return w
}

// leave kills what is left of the process group when there is no host any more to do it. It takes the provider along.
func (w *watcher) leave() {
	if w.lifeline && (w.orphaned.Load() || os.Getppid() != w.parent) {
		_ = syscall.Kill(0, syscall.SIGKILL)
	}
}
