package envelope

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/droverhq/drover/broker"
)

// Serve speaks envelopes, one a line, until the input ends, ctx ends, or nothing can be written any more. At the end of
// the input the calls that were read are finished first (at most 15 s); when ctx ends, everything ends at once. The
// caller is closed. Where the input cannot be interrupted (a pipe that is the standard input), one blocked read is left
// behind; the process is about to end.
func Serve(ctx context.Context, caller *broker.Caller, r io.Reader, w io.Writer) error {
	return serveLines(ctx, caller, r, w, MaxMessage)
}

func serveLines(ctx context.Context, caller *broker.Caller, r io.Reader, w io.Writer, limit int) error {
	c := newConn(ctx, caller, func(msg []byte) error {
		_, err := w.Write(append(msg, '\n'))
		return err
	})
	c.limit = limit
	type read struct {
		msg []byte
		err error
	}
	in, took := make(chan read), make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		l := newLines(r, limit)
		for {
			msg, err := l.next()
			select {
			case in <- read{msg, err}:
			case <-c.ctx.Done():
				return
			}
			if err != nil && !errors.Is(err, errTooLarge) {
				return
			}
			select {
			case <-took: // the message lies in the reader's buffer
			case <-c.ctx.Done():
				return
			}
		}
	})
	defer func() {
		if interrupt(r) {
			reading.Wait()
		}
	}()
	stop := context.AfterFunc(c.ctx, func() { interrupt(r) }) //nolint:contextcheck // the connection's context ends with ctx
	defer stop()
	first := true
	return c.serve(func() ([]byte, error) { //nolint:contextcheck // the connection's context ends with ctx
		if !first {
			select {
			case took <- struct{}{}:
			case <-c.ctx.Done():
			}
		}
		first = false
		select {
		case m := <-in:
			return m.msg, m.err
		case <-c.ctx.Done():
			return nil, context.Cause(c.ctx)
		}
	})
}

// interrupt ends a read that is blocked, and says whether that was possible; a pipe that takes no deadline is left to the end
// of the process.
func interrupt(r io.Reader) bool {
	d, ok := r.(interface{ SetReadDeadline(time.Time) error })
	return ok && d.SetReadDeadline(time.Now()) == nil
}
