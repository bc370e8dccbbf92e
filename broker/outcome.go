package broker

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/proto/fault"
)

// fail makes the fault that the caller gets: the cause of an end that was forced, the protocol's word for a deadline, and
// who had a part in it.
func (c *call) fail(ctx context.Context, err error) error {
	var forced, known *fault.Error
	e := fault.From(err)
	switch late := errors.Is(ctx.Err(), context.DeadlineExceeded); {
	case errors.As(context.Cause(ctx), &forced):
		e = forced
	case late, errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &known):
		e = c.late()
	case ctx.Err() != nil:
		e = fault.From(ctx.Err())
	}
	return e.Clone().Provider(c.provider).Method(c.method.Name)
}

// late is the fault of a call that ran out of time on the way.
func (c *call) late() *fault.Error {
	code, acted := fault.NotReady, c.sent && !c.method.Spec.GetReadOnly() && !c.method.Spec.GetIdempotent()
	if c.method.Spec.GetNavigates() {
		code = fault.NavigationTimeout
	}
	e := fault.New(code, "%s ran out of time", c.method.Name).Reason("deadline_exceeded")
	switch {
	case !c.sent:
		e.Hint("it was still waiting for earlier calls")
	case acted && code == fault.NotReady:
		e.Retry("").Hint("it may have had an effect; look with page.snapshot first")
	}
	return e
}

// record logs and counts a call that ended.
func (b *Broker) record(ctx context.Context, c *call, err error, took time.Duration) {
	word := wordOf(err)
	b.meter.call(ctx, c, err, took)
	if c.sent && err == nil {
		b.health.took(c.provider, took)
	}
	if b.audit != nil {
		b.audit(c.entry(word, err, took))
	}
	if !b.log.IsInfo() {
		return
	}
	args := []any{"method", c.method.Name, "provider", c.provider, "caller", c.who.Principal.Name, "code", word, "ms", took.Milliseconds()}
	if r := fault.ReasonOf(err); r != "" {
		args = append(args, "reason", r)
	}
	b.log.Info("call", args...)
}
