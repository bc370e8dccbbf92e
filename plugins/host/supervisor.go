package host

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/proto/fault"
)

const (
	// firstBackoff is how long the first start that failed keeps the next one waiting; each further one doubles it.
	firstBackoff = time.Second
	// lastBackoff is the longest wait between starts.
	lastBackoff = time.Minute
	// earlyDeath is how soon after its start the end of a process counts as early.
	earlyDeath = 5 * time.Second
	// forgivenDeaths is how many early ends in a row are followed by a start at once; what comes after counts as starts
	// that failed.
	forgivenDeaths = 3
)

// Options say how a supervisor looks after its provider. The zero value works, but for the Spec.
type Options struct {
	// Spec is the provider.
	Spec Spec
	// CacheDir is where descriptions of binaries are remembered; empty for nowhere, which means that the provider is
	// started at once to be asked.
	CacheDir string
	// LookAfter is how long a binary that was never seen waits before it is started to be asked what it is, so that a
	// broker with many new providers does not start them all at the moment when somebody waits for one. Acquire does not
	// wait for it.
	LookAfter time.Duration
	// Idle is how long a process that nothing needs is kept: no calls, no sessions, no holds. 0 keeps it for ever.
	Idle time.Duration
	// OnChange is told of every change of state, in order, by the supervisor's own goroutine. It must not wait, nor call
	// the supervisor other than for Status.
	OnChange func(Change)

	launch func(context.Context, Spec) (*Instance, error) // Launch, but in tests
}

// Supervisor keeps an instance of one provider when there is need for one. One goroutine owns all its state; the methods
// may be called from many goroutines at once.
type Supervisor struct {
	id       string
	commands chan func(*actor)
	status   atomic.Pointer[Status]
	end      context.CancelFunc
	done     chan struct{}
}

// Supervise starts to look after a provider. A binary that was never seen is started to be asked what it is; one that is
// known is started by the first Acquire. Close ends it.
func Supervise(opts Options) *Supervisor {
	opts.Spec = opts.Spec.complete()
	if opts.launch == nil {
		opts.launch = Launch
	}
	if opts.OnChange == nil {
		opts.OnChange = func(Change) {}
	}
	ctx, end := context.WithCancel(context.Background())
	s := &Supervisor{id: opts.Spec.ID, commands: make(chan func(*actor)), end: end, done: make(chan struct{})}
	a := newActor(opts, s)
	go func() {
		defer close(s.done)
		a.run(ctx)
	}()
	return s
}

// ID is the provider's name in this broker.
func (s *Supervisor) ID() string { return s.id }

// Status gives what is known of the provider now, without waiting.
func (s *Supervisor) Status() Status { return *s.status.Load() }

// Acquire gives a running instance and starts one if need be, waiting until it is ready or ctx ends. It does not judge
// whether the provider is able to take sessions: Status says so. In backoff it fails at once with not_ready, reason
// provider_backoff, and how long to wait; a provider that cannot be run fails with setup_required and the manual steps; one
// that is draining with not_ready, reason draining.
func (s *Supervisor) Acquire(ctx context.Context) (*Instance, error) {
	return s.ask(ctx, (*actor).acquire)
}

// Restart ends the process, if one runs, with the calls in it, and starts another. It overrides backoff and Drain.
func (s *Supervisor) Restart(ctx context.Context) (*Instance, error) {
	return s.ask(ctx, (*actor).restart)
}

// Drain takes no new Acquire, waits until nothing needs the process (no calls, no sessions, no holds) or ctx ends, and then
// ends it. The provider stays down until Restart. The error says that ctx ended first; the process is ended all the same.
func (s *Supervisor) Drain(ctx context.Context) error {
	_, err := s.ask(ctx, (*actor).drain)
	if err != nil && ctx.Err() == nil {
		return err
	}
	_, stopErr := s.ask(context.WithoutCancel(ctx), (*actor).stopDrained)
	if err == nil {
		err = stopErr
	}
	return err
}

// Close ends the process and the supervisor. Those who wait in Acquire get an error. It returns when everything is gone, a
// few seconds later at most.
func (s *Supervisor) Close() {
	s.end()
	<-s.done
}

// answer is what someone who waits gets.
type answer struct {
	instance *Instance
	err      error
}

// ask lets the actor run fn, which answers on the channel at once or later.
func (s *Supervisor) ask(ctx context.Context, fn func(*actor, waiter)) (*Instance, error) {
	w := waiter{ctx: ctx, reply: make(chan answer, 1)}
	select {
	case s.commands <- func(a *actor) { fn(a, w) }:
	case <-ctx.Done():
		return nil, s.ended(ctx)
	case <-s.done:
		return nil, s.closed()
	}
	select {
	case r := <-w.reply:
		return r.instance, r.err
	case <-ctx.Done():
		return nil, s.ended(ctx)
	case <-s.done:
		return nil, s.closed()
	}
}

func (s *Supervisor) closed() error {
	return fault.New(fault.NotReady, "the provider %s is not looked after any more", s.id).Reason("draining").Provider(s.id)
}

func (s *Supervisor) ended(ctx context.Context) error {
	return fault.From(context.Cause(ctx)).Clone().Provider(s.id).With("provider_state", string(s.Status().State))
}

// waiter is someone who waits for an answer of the actor.
type waiter struct {
	ctx   context.Context
	reply chan answer
}

func (w waiter) give(i *Instance, err error) { w.reply <- answer{i, err} }
