package broker

import (
	"context"
	"sync"

	"github.com/droverhq/drover/proto/fault"
)

// halt counts the calls under way, and ends them when the broker is about to go.
type halt struct {
	now    context.Context // ends when calls under way have to
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	under  int
	empty  chan struct{} // closed when nothing is under way and nothing may come
}

func newHalt() *halt {
	h := &halt{empty: make(chan struct{})}
	h.now, h.cancel = context.WithCancelCause(context.Background())
	return h
}

// ShuttingDown is what calls are answered that are under way when a broker or a connection ends, and those after it.
func ShuttingDown() *fault.Error {
	return fault.New(fault.NotReady, "the broker is shutting down").Reason("shutting_down").Hint("call again when the next one runs")
}

// enter counts a call. Its context ends with the reason when the broker cannot wait for it any longer.
func (h *halt) enter(ctx context.Context) (context.Context, func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ctx, func() {}, ShuttingDown()
	}
	h.under++
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.now, func() { cancel(context.Cause(h.now)) })
	return ctx, func() {
		stop()
		cancel(nil)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.under--; h.under == 0 && h.closed {
			close(h.empty)
		}
	}, nil
}

// close lets no call in any more.
func (h *halt) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed && h.under == 0 {
		close(h.empty)
	}
	h.closed = true
}

// Drain refuses new calls and waits for those under way until ctx ends; those that are left are then answered with
// not_ready, reason shutting_down. It returns when the last one is.
func (b *Broker) Drain(ctx context.Context) {
	b.halt.close()
	select {
	case <-b.halt.empty:
		return
	case <-ctx.Done():
	}
	b.halt.cancel(ShuttingDown())
	<-b.halt.empty
}
