package host

import (
	"context"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// acquire answers at once when there is an instance, or lets the waiter wait for one.
func (a *actor) acquire(w waiter) {
	if a.instance != nil && !a.stopping && a.instance.Err() != nil {
		a.onGone() // it has ended, and the loop has not come to hear of it
	}
	switch {
	case a.now.Drained:
		w.give(nil, a.drained())
	case a.instance != nil && !a.stopping:
		a.instance.use.touch()
		w.give(a.instance, nil)
	case a.now.State == StateBackoff:
		wait := max(time.Until(a.now.RetryAt), time.Millisecond)
		e := fault.From(a.now.Err).Clone()
		e.Code, e.Message = fault.NotReady, "the provider "+a.now.ID+" is not started again yet: "+e.Message
		w.give(nil, e.Reason("provider_backoff").RetryAfter(int(wait.Milliseconds())))
	default:
		a.waiting = append(a.waiting, w)
		if err := a.opts.Spec.binary(); err != nil && a.instance == nil && !a.starting {
			a.missing(err)
			a.answer(nil, err)
			return
		}
		a.again = a.again || !a.starting
	}
}

func (a *actor) drained() error {
	return fault.New(fault.NotReady, "the provider %s is drained", a.now.ID).Reason("draining").
		Hint("drover provider restart %s brings it back", a.now.ID).Provider(a.now.ID)
}

// restart ends what runs and starts anew, whatever state that was.
func (a *actor) restart(w waiter) {
	a.now.Drained = false
	a.fails, a.deaths = 0, 0
	a.waiting = append(a.waiting, w)
	if err := a.opts.Spec.binary(); err != nil && !a.starting {
		a.missing(err)
		a.answer(nil, err)
		return
	}
	a.stop()
	a.again = a.again || !a.starting
}

// drain marks the provider and lets the waiter wait until nothing needs its process.
func (a *actor) drain(w waiter) {
	a.now.Drained = true
	a.answer(nil, a.drained())
	a.again = false
	i := a.instance
	if i == nil || a.stopping {
		a.publish()
		w.give(nil, nil)
		return
	}
	a.timer.Stop()
	a.to(StateDraining, nil)
	a.work.Go(func() {
		ctx, cancel := context.WithCancelCause(w.ctx)
		defer cancel(nil)
		defer i.untilGone(cancel)()
		err := i.use.wait(ctx)
		if i.Err() != nil {
			err = nil // gone is as good as idle
		}
		w.give(nil, err)
	})
}

// stopDrained ends the process of a drained provider.
func (a *actor) stopDrained(w waiter) {
	if a.instance == nil && !a.starting {
		w.give(nil, nil)
		return
	}
	a.waiting = append(a.waiting, w)
	a.stop()
}

// onStarted hears how a start went.
func (a *actor) onStarted(r outcome) {
	a.starting = false
	if r.err != nil {
		if r.instance != nil { // it came up and ended before it said how it is
			a.work.Go(func() { _ = r.instance.Stop(context.Background()) })
		}
		a.failed(r.err)
		return
	}
	a.instance, a.readyAt = r.instance, time.Now()
	a.fails = 0
	a.now.Describe, a.now.Digest = r.instance.Describe(), r.instance.Digest()
	a.now.ManualSteps = nil
	a.cache.store(r.instance.Digest(), a.opts.Spec, r.instance.Describe())
	a.now.Last = r.status
	if a.now.Drained {
		a.stop()
		return
	}
	a.to(stateOf(r.status), nil)
	a.armIdle()
	a.answer(a.instance, nil)
}

// failed waits before the next start, longer each time, unless only a person can help, and tells those who wait why.
func (a *actor) failed(err error) {
	a.now.LastExit = err
	if needsPerson(err) {
		a.missing(err)
	} else {
		a.fails++
		a.backoff(err, a.fails)
	}
	a.answer(nil, err)
}

// needsPerson says that starting again is of no use before someone has done something.
func needsPerson(err error) bool {
	return fault.CodeOf(err) == fault.SetupRequired || fault.ReasonOf(err) == "config_invalid"
}

func (a *actor) backoff(err error, n int) {
	wait := lastBackoff
	if n < 7 {
		wait = min(firstBackoff<<(n-1), lastBackoff)
	}
	a.now.RetryAt = time.Now().Add(wait)
	a.timer.Reset(wait)
	a.to(StateBackoff, err)
}

// missing notes that the provider cannot be run, and what a person does about it.
func (a *actor) missing(err error) {
	e := fault.From(err)
	a.now.ManualSteps = []string{e.Message}
	if steps, ok := e.Details["manual_steps"].([]string); ok {
		a.now.ManualSteps = steps
	}
	if a.super.status.Load() == nil { // before the first publish there is nobody to tell
		a.now.State, a.now.Err = StateUnavailable, err
		return
	}
	a.to(StateUnavailable, err)
}

// onGone hears that the process ended without having been asked to.
func (a *actor) onGone() {
	i, lived := a.instance, time.Since(a.readyAt)
	a.instance = nil
	a.now.LastExit = i.Err()
	a.work.Go(func() { _ = i.Stop(context.Background()) }) // frees what is left
	if lived >= earlyDeath {
		a.deaths = 0
	} else {
		a.deaths++
	}
	if a.deaths > forgivenDeaths {
		a.backoff(i.Err(), a.deaths-forgivenDeaths)
		return
	}
	a.timer.Stop()
	a.to(StateStopped, nil)
}

// onStopped hears that a stop is over.
func (a *actor) onStopped(err error) {
	a.stopping = false
	a.instance = nil
	a.deaths = 0
	a.to(StateStopped, nil)
	a.tell(err)
	if !a.again {
		a.answer(nil, nil)
	}
}

// tell logs that a process would not end.
func (a *actor) tell(err error) {
	if err != nil {
		a.opts.Spec.Logger.Error("a provider process does not end", "provider_id", a.now.ID, "error", err)
	}
}

// onStatus follows what the provider says of itself.
func (a *actor) onStatus(st *browserv1.StatusResponse) {
	a.now.Last = st
	a.publish()
	if a.instance != nil && !a.stopping && a.now.State != StateDraining {
		a.to(stateOf(st), nil)
	}
}

// onTimer ends a backoff or looks whether the process is idle.
func (a *actor) onTimer() {
	switch {
	case a.now.State == StateBackoff:
		if a.now.Describe == nil && !a.now.Drained {
			a.again = true // nobody can need what nobody knows, so it is asked again
			return
		}
		a.to(StateStopped, nil)
	case a.unseen():
		a.again = true
	case a.instance != nil && !a.stopping:
		if a.instance.use.idle() >= a.opts.Idle {
			a.to(StateDraining, nil)
			a.stop()
			return
		}
		a.armIdle()
	}
}

// armIdle looks again when the process could have been idle for long enough.
func (a *actor) armIdle() {
	if a.opts.Idle > 0 && a.instance != nil {
		a.timer.Reset(max(a.opts.Idle-a.instance.use.idle(), time.Millisecond))
	}
}

// stateOf gives the state of a running process by what it says of itself.
func stateOf(st *browserv1.StatusResponse) State {
	switch st.GetAvailability() {
	case browserv1.Availability_AVAILABILITY_DEGRADED:
		return StateDegraded
	case browserv1.Availability_AVAILABILITY_UNAVAILABLE:
		return StateUnavailable
	default:
		return StateReady
	}
}
