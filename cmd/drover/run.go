package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/face/door"
	"github.com/droverhq/drover/broker/face/envelope"
	"github.com/droverhq/drover/policy"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// errIdle and errRetired are ends that are no failures.
var (
	errIdle    = errors.New("nobody has used it")
	errRetired = errors.New("it was asked to make room")
)

// use knows whether anybody uses the daemon.
type use struct {
	conns atomic.Int64
	last  atomic.Int64 // in Unix nanoseconds
}

func (u *use) touch() { u.last.Store(time.Now().UnixNano()) }

// enter counts a connection until the function that it gives is called.
func (u *use) enter() func() {
	u.conns.Add(1)
	u.touch()
	return func() {
		u.touch()
		u.conns.Add(-1)
	}
}

// idle is how long nobody was connected.
func (u *use) idle() time.Duration {
	if u.conns.Load() > 0 {
		return 0
	}
	return time.Since(time.Unix(0, u.last.Load()))
}

// run serves until ctx ends, the daemon has been idle for long enough, or it is asked to make room. Then nobody new gets
// in, the calls under way are finished, and everything ends.
func (d *daemon) run(ctx context.Context) error {
	d.use.touch()
	ctx, d.end = context.WithCancelCause(ctx)
	hard, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()

	var work sync.WaitGroup
	conns := newConnections()
	work.Go(func() { (&controller{listener: d.control, carry: d.carry}).serve(hard) })
	work.Go(func() {
		err := door.AcceptAll(hard, d.socket, func(ctx context.Context, c net.Conn) { d.serveConn(ctx, conns, c) })
		if err != nil && ctx.Err() == nil {
			d.end(err)
		}
	})
	if d.http != nil {
		work.Go(func() {
			if err := d.http.serve(hard); err != nil && ctx.Err() == nil {
				d.end(err)
			}
		})
	}
	work.Go(func() { d.faces.serve(hard, d, d.end) })
	work.Go(func() { d.watch(ctx) })
	<-ctx.Done()

	why := context.Cause(ctx)
	d.log.Info("ending", "reason", why.Error())
	d.drain(conns)
	cut()
	_ = d.control.Close()
	work.Wait()
	var broken *net.OpError
	if errors.As(why, &broken) {
		return fault.New(fault.InternalError, "%v", why).Cause(why)
	}
	return nil
}

// drain lets nobody in any more and waits for the calls under way, at most for drainWait, or until a second signal. Calls
// that take longer are answered with that, for which there is answerWait.
func (d *daemon) drain(conns *connections) {
	ctx, cancel := context.WithTimeout(context.Background(), drainWait+answerWait)
	defer cancel()
	patience, release := context.WithTimeout(ctx, drainWait)
	defer release()
	patience, stop := signal.NotifyContext(patience, os.Interrupt, syscall.SIGTERM)
	defer stop()
	_ = d.control.Close() // who looks for a daemon finds none, and starts the next
	var work sync.WaitGroup
	work.Go(func() {
		d.engine.broker.Drain(patience)
		d.http.settle(ctx)
		d.faces.close(ctx)
	})
	if d.http != nil {
		work.Go(func() { d.http.drain(ctx) })
	}
	work.Go(func() { d.faces.conns.drain(ctx) })
	conns.drain(ctx)
	work.Wait()
}

// serveConn serves one connection to the socket.
func (d *daemon) serveConn(ctx context.Context, conns *connections, c net.Conn) {
	defer d.use.enter()()
	who, err := door.Peer(c)
	if err != nil {
		d.log.Warn("connection refused", "error", err)
		return
	}
	leave, ok := conns.enter(c)
	if !ok {
		return
	}
	defer leave()
	if err := envelope.Serve(ctx, d.engine.broker.Connect(who, broker.Unbound), c, c); err != nil && ctx.Err() == nil {
		d.log.Debug("connection ended", "error", err)
	}
}

// connections are those to the socket. When they are drained their reading side is closed: calls that were read are
// finished, and then the connection ends as if its peer had left.
type connections struct {
	mu       sync.Mutex
	open     map[*net.UnixConn]struct{}
	draining bool
	empty    chan struct{}
}

func newConnections() *connections { return &connections{open: map[*net.UnixConn]struct{}{}} }

func (s *connections) enter(c net.Conn) (leave func(), ok bool) {
	u, is := c.(*net.UnixConn)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining || !is {
		return nil, false
	}
	s.open[u] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, u)
		if s.draining && len(s.open) == 0 {
			close(s.empty)
		}
	}, true
}

func (s *connections) drain(ctx context.Context) {
	s.mu.Lock()
	s.draining, s.empty = true, make(chan struct{})
	if len(s.open) == 0 {
		close(s.empty)
	}
	for c := range s.open {
		_ = c.CloseRead()
	}
	s.mu.Unlock()
	select {
	case <-s.empty:
	case <-ctx.Done():
	}
}

// watch reads the config again on SIGHUP, and ends a daemon that a command started when nobody has used it for a while.
func (d *daemon) watch(ctx context.Context) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		d.mu.Lock()
		exit := d.conf.Sessions.Exit
		d.mu.Unlock()
		tick := time.NewTimer(min(max(exit/20, 10*time.Millisecond), 5*time.Second))
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-hup:
			tick.Stop()
			if err := d.reload(); err != nil {
				d.log.Error("config refused, the old one stays in force", "error", fault.From(err).Message)
			}
		case <-tick.C:
			if d.opts.auto && d.use.idle() >= exit && d.engine.sessions(ctx) == 0 {
				d.end(errIdle)
				return
			}
		}
	}
}

// reload reads the config again. A wrong one is refused, and the old one stays in force.
func (d *daemon) reload() error {
	d.reloads.Lock()
	defer d.reloads.Unlock()
	cfg, err := d.app.loadConfig()
	if err != nil {
		return err
	}
	d.mu.Lock()
	old := d.conf
	d.conf = cfg
	d.mu.Unlock()
	d.engine.apply(cfg)
	d.faces.mcp.Refresh()
	if old.Listen.HTTP != cfg.Listen.HTTP || old.Listen.Socket != cfg.Listen.Socket {
		d.log.Warn("addresses change with the next start only")
	}
	d.log.Info("config reloaded", "file", cfg.File, "sha256", cfg.Hash)
	return nil
}

// carry answers a control request.
func (d *daemon) carry(ctx context.Context, o order) (reply, error) {
	d.use.touch()
	if o.TimeoutMS > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(o.TimeoutMS)*time.Millisecond)
		defer cancel()
	}
	switch o.Do {
	case doInfo:
		return reply{Info: d.info(ctx)}, nil
	case doRetire:
		if n := d.engine.sessions(ctx); n > 0 {
			return reply{}, fault.New(fault.NotReady, "the daemon has %d sessions", n).Reason("in_use")
		}
		d.end(errRetired)
		return reply{}, nil
	case doExplain:
		m, ok := catalog.Lookup(o.Method)
		if !ok {
			return reply{}, fault.New(fault.UnsupportedMethod, "there is no method %q", o.Method)
		}
		x, err := o.explain(ctx, d.engine.broker, m, o.Params)
		return reply{Route: x}, err
	case doReload:
		if err := d.reload(); err != nil {
			return reply{}, err
		}
		return reply{Info: d.info(ctx)}, nil
	case doDiff:
		cfg, err := d.app.loadConfig()
		if err != nil {
			return reply{}, err
		}
		return reply{Diff: d.engine.broker.Diff(policy.New(cfg)), Info: d.info(ctx)}, nil
	case doDrain, doRestart:
		s, err := d.engine.supervisor(o.Provider)
		if err != nil {
			return reply{}, err
		}
		defer d.use.enter()()
		if o.Do == doDrain {
			return reply{}, s.Drain(ctx)
		}
		_, err = s.Restart(ctx)
		return reply{}, err
	}
	return reply{}, fault.New(fault.UnsupportedMethod, "there is no control request %q", o.Do)
}

// close frees what was opened, and gives the error that led to it or its own.
func (d *daemon) close(err error) error {
	if d.opts.readyFile != "" && d.control != nil {
		_ = os.Remove(d.opts.readyFile)
	}
	for _, l := range []net.Listener{d.control, d.socket} {
		if l != nil {
			_ = l.Close()
		}
	}
	d.http.close()
	late, cancel := context.WithTimeout(context.Background(), endWait)
	defer cancel()
	d.faces.close(late)
	if d.engine != nil {
		err = d.engine.closeAfter(err)
	}
	return err
}
