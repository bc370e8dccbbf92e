package host

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

const (
	// callGrace is how long after a call's own deadline the host still waits for the provider's answer.
	callGrace = 2 * time.Second
	// exitWait is how long the host waits for the end of a process whose connection broke, to say what happened.
	exitWait = 250 * time.Millisecond
	// stopGrace is how long a provider may take to shut down before its process group is killed.
	stopGrace = 2 * time.Second
	// killWait is how long a killed process may take to be gone.
	killWait = 3 * time.Second
)

// Instance is one life of a provider's process. It never comes back: a restarted provider is another instance. All methods
// may be called from many goroutines at once.
type Instance struct {
	spec     Spec
	conn     *grpc.ClientConn
	service  browserv1.PluginServiceClient
	digest   string
	dir      string // its part of the run folder; empty for an in-process connection
	describe *browserv1.DescribeResponse
	process  *process // nil for an in-process connection
	use      *use
	onStatus func(*browserv1.StatusResponse)

	life     context.Context // ends, with a fault as its cause, when the process is gone
	end      context.CancelCauseFunc
	hangUp   func() // asks the provider to shut down
	kill     func() // ends it at once
	letGo    func() // closes the provider's lifeline; nil for an in-process connection
	forced   atomic.Bool
	released chan struct{}
}

func newInstance(spec Spec, conn *grpc.ClientConn) *Instance {
	life, end := context.WithCancelCause(context.Background())
	return &Instance{
		spec: spec, conn: conn, service: browserv1.NewPluginServiceClient(conn), use: newUse(),
		life: life, end: end, released: make(chan struct{}),
	}
}

// own ties the instance to its process: when that ends, calls in flight fail at once and everything is freed.
func (i *Instance) own(l *launch) {
	i.hangUp, i.kill = l.process.terminate, l.process.kill
	i.letGo = func() { _ = l.process.lifeline.Close() }
	go func() {
		defer close(i.released)
		<-l.process.exited
		<-l.process.reaped
		i.end(fault.New(fault.BrowserNotRunning, "the provider %s has exited (%s)", i.spec.ID, l.process.how()).
			Reason("provider_exited").Provider(i.spec.ID))
		l.release()
	}()
}

// ID is the provider's name in this broker.
func (i *Instance) ID() string { return i.spec.ID }

// Digest is the SHA-256 of the binary in hexadecimal digits; empty for an in-process connection.
func (i *Instance) Digest() string { return i.digest }

// PID is the process id; 0 for an in-process connection.
func (i *Instance) PID() int {
	if i.process == nil {
		return 0
	}
	pid, _ := strconv.Atoi(i.process.ID())
	return pid
}

// Describe gives what the provider said of itself at its start, under its name in this broker. Do not change it.
func (i *Instance) Describe() *browserv1.DescribeResponse { return i.describe }

// Done is closed when the process is gone.
func (i *Instance) Done() <-chan struct{} { return i.life.Done() }

// Err says why the process is gone, as a fault; nil while it runs.
func (i *Instance) Err() error { return context.Cause(i.life) }

// Call calls a normalized method. The provider ends it at its deadline (timeout_ms, or the method's default); should it not
// answer, frozen as it may be, the call ends two seconds later. Errors are faults with provider_id and method: those of the
// provider, deadline_exceeded, and browser_not_running, provider_exited when the process ends, at once.
func (i *Instance) Call(ctx context.Context, m *catalog.Method, req proto.Message) (proto.Message, error) {
	if _, looks := req.(*browserv1.StatusRequest); !looks { // who looks how it is does not keep it from being idle
		defer i.use.enter()()
	}
	timeout := catalog.Timeout(m, req)
	began := time.Now()
	resp := m.NewResponse()
	err := i.invoke(ctx, timeout, func(ctx context.Context) error { return i.conn.Invoke(ctx, m.Path, req, resp) })
	if err != nil {
		if errors.Is(err, errNoAnswer) || errors.Is(err, context.DeadlineExceeded) {
			err = plugins.TimedOut(m, min(timeout, time.Since(began))).Cause(err)
		}
		i.use.failed(req, err)
		return nil, i.label(err, m.Name)
	}
	i.use.done(req, resp)
	if st, ok := resp.(*browserv1.StatusResponse); ok {
		i.stamp(st)
	}
	if d, ok := resp.(*browserv1.DescribeResponse); ok {
		i.name(d)
	}
	return resp, nil
}

// Custom calls one of the provider's own methods. Its deadline is the context's, or the default of methods.
func (i *Instance) Custom(ctx context.Context, req *browserv1.CustomRequest) (*browserv1.CustomResponse, error) {
	defer i.use.enter()()
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, catalog.DefaultTimeout)
		defer cancel()
	}
	var resp *browserv1.CustomResponse
	err := i.invoke(ctx, 0, func(ctx context.Context) (err error) {
		resp, err = i.service.Custom(ctx, req)
		return err
	})
	if err != nil {
		return nil, i.label(err, req.GetMethod())
	}
	return resp, nil
}

// errNoAnswer is why a call ends that the provider did not end itself.
var errNoAnswer = errors.New("the provider did not answer in time")

// invoke runs one rpc within the caller's context, the life of the process and, when timeout is set, the deadline.
func (i *Instance) invoke(ctx context.Context, timeout time.Duration, rpc func(context.Context) error) error {
	if err := i.Err(); err != nil {
		return err
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer i.untilGone(cancel)()
	if timeout > 0 {
		defer time.AfterFunc(timeout+callGrace, func() { cancel(errNoAnswer) }).Stop()
	}
	err := rpc(inner)
	if err == nil {
		return nil
	}
	if carriesFault(err) {
		return fault.FromStatus(err)
	}
	if i.Err() == nil && ctx.Err() == nil && status.Code(err) == codes.Unavailable {
		i.awaitEnd(ctx)
	}
	switch {
	case i.Err() != nil:
		return i.Err()
	case ctx.Err() != nil:
		return fault.From(context.Cause(ctx))
	case context.Cause(inner) != nil:
		return context.Cause(inner)
	}
	e := fault.FromStatus(err)
	if e.ReasonWord() == "payload_too_large" {
		return e.With("limit_bytes", plugins.MaxMessageBytes).Hint("the limit is %d bytes", plugins.MaxMessageBytes)
	}
	return e
}

// untilGone cancels with the fault when the process is gone, until the function that it gives is called.
func (i *Instance) untilGone(cancel context.CancelCauseFunc) (stop func() bool) {
	return context.AfterFunc(i.life, func() { cancel(i.Err()) })
}

// awaitEnd waits a moment for the end of a process whose connection broke.
func (i *Instance) awaitEnd(ctx context.Context) {
	t := time.NewTimer(exitWait)
	defer t.Stop()
	select {
	case <-i.life.Done():
	case <-ctx.Done():
	case <-t.C:
	}
}

// carriesFault says that an error is the provider's own answer.
func carriesFault(err error) bool {
	st, ok := status.FromError(err)
	if !ok {
		return false
	}
	for _, d := range st.Details() {
		if _, ok := d.(*browserv1.Error); ok {
			return true
		}
	}
	return false
}

// label says in an error which provider and method it is about.
func (i *Instance) label(err error, method string) error {
	return fault.From(err).Clone().With(fault.KeyProvider, i.spec.ID).Method(method)
}

// Stop ends the process: it is asked to shut down, has two seconds (or until ctx ends) for it, and is killed with its
// process group. Stop returns when the process is gone and everything is freed, and in a few seconds at most, frozen process
// or not; the error says that it would not go. Calls in flight end with provider_exited.
func (i *Instance) Stop(ctx context.Context) error {
	i.hangUp()
	t := time.NewTimer(stopGrace)
	defer t.Stop()
	select {
	case <-i.released:
		return nil
	case <-ctx.Done():
	case <-t.C:
	}
	i.forced.Store(true)
	i.kill()
	last := time.NewTimer(killWait)
	defer last.Stop()
	select {
	case <-i.released:
		return nil
	case <-last.C:
		return fault.New(fault.InternalError, "the process of provider %s does not end", i.spec.ID).Provider(i.spec.ID)
	}
}

// Forced says that Stop had to kill the process, because it did not end when it was asked to.
func (i *Instance) Forced() bool { return i.forced.Load() }

// LetGo closes the provider's lifeline, as the end of the host would, without any other word. The provider is to end by
// itself then. It does nothing for an in-process connection.
func (i *Instance) LetGo() {
	if i.letGo != nil {
		i.letGo()
	}
}
