package lane

import (
	"context"
	"testing"
	"testing/synctest"
)

// Callers go through in the order in which they came, and one that gives up does not stop those behind it.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lane
		first, err := l.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tired, give := context.WithCancel(t.Context())
		order := make(chan int, 3)
		for i, ctx := range []context.Context{t.Context(), tired, t.Context()} {
			go func() {
				release, err := l.Take(ctx)
				if err != nil {
					order <- -i
					return
				}
				order <- i
				release()
				release()
			}()
			synctest.Wait()
		}
		give()
		if got := <-order; got != -1 {
			t.Errorf("%d came first, want the one that gave up", got)
		}
		first()
		if a, b := <-order, <-order; a != 0 || b != 2 {
			t.Errorf("the order was %d, %d", a, b)
		}
	})
}
