package envelope

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// bodyWait is how long the body of a request may take, whatever its path.
const bodyWait = 30 * time.Second

// bounded cuts off a client that sends its body a byte a minute: what it holds is freed after wait. The time ends with the
// body: an answer, and a connection that was upgraded, has all the time it needs.
func bounded(wait time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			rc := http.NewResponseController(w)
			if rc.SetReadDeadline(time.Now().Add(wait)) == nil { // a recorder in a test has none
				r.Body = &timedBody{ReadCloser: r.Body, over: func() { _ = rc.SetReadDeadline(time.Time{}) }}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody is a body that calls over at its end.
type timedBody struct {
	io.ReadCloser
	over func()
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.over()
	}
	return n, err
}

// brokeOff is the status for a body that did not come whole.
func brokeOff(err error) int {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return http.StatusRequestTimeout
	}
	return http.StatusBadRequest
}
