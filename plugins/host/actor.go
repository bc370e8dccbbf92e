package host

import (
	"context"
	"sync"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// actor is a supervisor's state and the goroutine that owns it. Starting and stopping take time, so each runs in a
// goroutine of its own whose result comes back on a channel; the actor waits for both before it ends.
type actor struct {
	opts  Options
	super *Supervisor
	cache descriptions
	work  sync.WaitGroup

	now      Status
	instance *Instance // the one that answers calls; nil when there is none
	readyAt  time.Time
	starting bool
	stopping bool
	again    bool // start when the stopping is over
	waiting  []waiter

	fails   int // starts that failed in a row
	deaths  int // processes that ended early in a row
	timer   *time.Timer
	started chan outcome
	stopped chan error
	stages  chan State
	heard   chan *browserv1.StatusResponse
}

// outcome is how a start went.
type outcome struct {
	instance *Instance
	status   *browserv1.StatusResponse
	err      error
}

func newActor(opts Options, s *Supervisor) *actor {
	a := &actor{
		opts: opts, super: s, cache: descriptions{opts.CacheDir}, timer: time.NewTimer(time.Hour),
		started: make(chan outcome), stopped: make(chan error), stages: make(chan State), heard: make(chan *browserv1.StatusResponse, 8),
	}
	a.timer.Stop()
	a.now = Status{ID: opts.Spec.ID, Path: opts.Spec.Path, State: StateStopped, Since: time.Now()}
	if err := opts.Spec.binary(); err != nil {
		a.missing(err)
	} else if digest, err := opts.Spec.Digests.Of(opts.Spec.Path); err == nil {
		a.now.Digest = digest
		a.now.Describe = a.cache.load(digest, opts.Spec)
	}
	a.publish()
	return a
}

func (a *actor) run(ctx context.Context) {
	if a.unseen() {
		if a.opts.LookAfter > 0 {
			a.timer.Reset(a.opts.LookAfter)
		} else {
			a.start(ctx)
		}
	}
	for {
		var gone <-chan struct{}
		if a.instance != nil && !a.stopping {
			gone = a.instance.Done()
		}
		select {
		case <-ctx.Done():
			a.shutdown() //nolint:contextcheck // a process is ended though its supervisor is done
			return
		case command := <-a.super.commands:
			command(a)
		case r := <-a.started:
			a.onStarted(r) //nolint:contextcheck // a process is ended though its supervisor is done
		case err := <-a.stopped:
			a.onStopped(err)
		case st := <-a.stages:
			a.to(st, nil)
		case st := <-a.heard:
			a.onStatus(st)
		case <-gone:
			a.onGone() //nolint:contextcheck // a process is ended though its supervisor is done
		case <-a.timer.C:
			a.onTimer() //nolint:contextcheck // a process is ended though its supervisor is done
		}
		if a.again && !a.starting && !a.stopping {
			a.again = false
			a.start(ctx)
		}
	}
}

// unseen says that nobody knows what the provider is, and nothing is under way that will tell.
func (a *actor) unseen() bool {
	return a.now.State == StateStopped && a.now.Describe == nil && !a.now.Drained
}

// start begins a start; onStarted hears how it went.
func (a *actor) start(ctx context.Context) {
	a.starting = true
	a.timer.Stop()
	a.now.Starts++
	a.now.RetryAt = time.Time{}
	a.to(StateStarting, nil)
	spec := a.opts.Spec
	spec.stage = func(s State) {
		select {
		case a.stages <- s:
		case <-ctx.Done():
		}
	}
	a.work.Go(func() {
		i, err := a.opts.launch(ctx, spec)
		if err != nil {
			a.started <- outcome{err: err}
			return
		}
		st, err := a.look(ctx, i)
		i.onStatus = a.hear
		a.started <- outcome{i, st, err}
	})
}

// look asks a new instance how it is. A provider without that method is ready; one that runs but does not say is degraded.
func (a *actor) look(ctx context.Context, i *Instance) (*browserv1.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, a.opts.Spec.StartTimeout)
	defer cancel()
	st, err := Ask[*browserv1.StatusResponse](ctx, i, &browserv1.StatusRequest{})
	switch {
	case err == nil:
		return st, nil
	case i.Err() != nil:
		return nil, err
	case fault.CodeOf(err) == fault.UnsupportedMethod:
		return &browserv1.StatusResponse{ProviderId: i.ID(), Pid: int32(i.PID()), Availability: browserv1.Availability_AVAILABILITY_READY}, nil
	}
	return &browserv1.StatusResponse{
		ProviderId: i.ID(), Pid: int32(i.PID()), Availability: browserv1.Availability_AVAILABILITY_DEGRADED,
		Diagnostics: []*browserv1.Diagnostic{{Level: browserv1.Level_LEVEL_WARNING, Code: "status_failed", Message: err.Error()}},
	}, nil
}

// hear passes a status on to the actor; it is dropped when the actor has more of them than it can take.
func (a *actor) hear(st *browserv1.StatusResponse) {
	select {
	case a.heard <- st:
	default:
	}
}

// stop begins a stop; onStopped hears of its end.
func (a *actor) stop() {
	if a.instance == nil || a.stopping {
		return
	}
	a.stopping = true
	a.timer.Stop()
	i := a.instance
	a.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
		defer cancel()
		a.stopped <- i.Stop(ctx)
	})
}

// shutdown ends everything and waits for it.
func (a *actor) shutdown() {
	a.timer.Stop()
	a.stop()
	for a.starting || a.stopping {
		select {
		case r := <-a.started:
			a.starting, a.instance = false, r.instance
			a.stop()
		case err := <-a.stopped:
			a.tell(err)
			a.stopping, a.instance = false, nil
		case <-a.stages:
		}
	}
	a.work.Wait()
	a.to(StateStopped, nil)
	a.answer(nil, a.super.closed())
}

// answer gives everyone who waits the same.
func (a *actor) answer(i *Instance, err error) {
	for _, w := range a.waiting {
		w.give(i, err)
	}
	a.waiting = nil
}

// to goes to a state and tells of it.
func (a *actor) to(s State, err error) {
	from := a.now.State
	a.now.State, a.now.Err = s, err
	a.now.PID = 0
	if a.instance != nil {
		a.now.PID = a.instance.PID()
	}
	if s != from {
		a.now.Since = time.Now()
	}
	a.publish()
	if s != from {
		a.opts.Spec.Logger.Info("provider state changed", "provider_id", a.now.ID, "from", string(from), "to", string(s), "pid", a.now.PID)
		a.opts.OnChange(Change{From: from, To: s, Status: a.now})
	}
}

func (a *actor) publish() {
	now := a.now
	a.super.status.Store(&now)
}
