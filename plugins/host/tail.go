package host

import (
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// tailSize is how much of a provider's stderr is kept for the error of a start that fails, in bytes.
const tailSize = 4 << 10

// tail keeps the last bytes that were written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// String gives what is kept, as valid UTF-8 without space around it.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.buf), "\uFFFD"))
}

// lineSize is the longest line of a provider's output that is logged in one piece, in bytes.
const lineSize = 8 << 10

// lines logs what a provider prints beside its log, a line at a time.
type lines struct {
	log    hclog.Logger
	stream string
	mu     sync.Mutex
	part   []byte
}

// Write never fails.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range p {
		if b != '\n' {
			l.part = append(l.part, b)
		}
		if b == '\n' || len(l.part) >= lineSize {
			l.flush()
		}
	}
	return len(p), nil
}

func (l *lines) flush() {
	if text := strings.TrimSpace(strings.ToValidUTF8(string(l.part), "\uFFFD")); text != "" {
		l.log.Debug("provider output", "stream", l.stream, "line", text)
	}
	l.part = l.part[:0]
}
