package plugins

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/proto/fault"
)

// closeTime is how long the OnClose functions may take together.
const closeTime = 5 * time.Second

// errClosing is why calls end when the provider shuts down.
var errClosing = errors.New("the provider is shutting down")

// OnClose registers what is done when the provider shuts down, whatever the reason: its calls are cancelled, then the
// functions run, the last registered first, with a context that ends 5 seconds later. Browsers that the provider started
// are to be gone when fn returns; what is left of its process group is killed after it.
func (s *Server) OnClose(fn func(context.Context)) {
	s.mustBeOpen("OnClose")
	s.closing = append(s.closing, fn)
}

// Close ends all calls and event streams and runs the OnClose functions, once. It returns when they are done, or when ctx
// or their 5 seconds have ended. Serve calls it.
func (s *Server) Close(ctx context.Context) {
	s.close.Do(func() { //nolint:contextcheck // closing has its own time: who asked for it may not wait
		s.end(fault.New(fault.BrowserNotRunning, "the provider %s is shutting down", s.info.ID).
			Reason("provider_exited").Cause(errClosing))
		go s.runClosing()
	})
	select {
	case <-s.gone:
	case <-ctx.Done():
	case <-time.After(closeTime):
		s.logger.Warn("the provider's functions for closing did not finish in time")
	}
}

func (s *Server) runClosing() {
	defer close(s.gone)
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	for i := len(s.closing) - 1; i >= 0; i-- {
		if err := s.guard("close", func() error { s.closing[i](ctx); return nil }); err != nil {
			s.logger.Warn("a function for closing failed", "error", err)
		}
	}
}
