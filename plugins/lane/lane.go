// Package lane lets the calls on one page through one at a time, in the order in which they came.
package lane

import (
	"context"
	"slices"
	"sync"
)

// Lane is a queue of callers. The zero value is free.
type Lane struct {
	mu    sync.Mutex
	held  bool
	queue []chan struct{}
}

// Take waits for the turn; release passes it on, once however often it is called. It ends with the cause of ctx.
func (l *Lane) Take(ctx context.Context) (release func(), err error) {
	release = sync.OnceFunc(l.pass)
	l.mu.Lock()
	if !l.held {
		l.held = true
		l.mu.Unlock()
		return release, nil
	}
	turn := make(chan struct{})
	l.queue = append(l.queue, turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return release, nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	i := slices.Index(l.queue, turn)
	if i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
	l.mu.Unlock()
	if i < 0 { // The turn came at the same moment.
		release()
	}
	return nil, context.Cause(ctx)
}

func (l *Lane) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.held = false
		return
	}
	close(l.queue[0])
	l.queue = l.queue[1:]
}
