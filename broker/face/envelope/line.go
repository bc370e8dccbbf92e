package envelope

import (
	"bufio"
	"errors"
	"io"

	"github.com/droverhq/drover/proto/fault"
)

// lines reads messages that end with a newline. The last one may lack it. Blank lines are no messages.
type lines struct {
	r     *bufio.Reader
	limit int
	buf   []byte
}

func newLines(r io.Reader, limit int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// errTooLarge is a message over the limit; it was skipped, and the next one can be read.
var errTooLarge = errors.New("the message is too large")

// next gives the next message, which is valid until the next call. A message over the limit is skipped without being
// kept, and gives errTooLarge. At the end of the input the error is io.EOF.
func (l *lines) next() ([]byte, error) {
	for {
		msg, err := l.line()
		if err != nil {
			return nil, err
		}
		if msg = trim(msg); len(msg) > 0 {
			return msg, nil
		}
	}
}

func (l *lines) line() ([]byte, error) {
	if cap(l.buf) > 1<<20 { // a large message does not hold its memory for ever
		l.buf = nil
	}
	l.buf = l.buf[:0]
	tooLarge := false
	for {
		part, err := l.r.ReadSlice('\n')
		switch {
		case tooLarge:
		case len(l.buf)+len(part) > l.limit+1: // the newline does not count
			tooLarge, l.buf = true, nil
		case err == nil && len(l.buf) == 0:
			return part, nil // the whole line lies in the reader's buffer
		default:
			l.buf = append(l.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && tooLarge:
			return nil, errTooLarge // whatever ended the input is told by the next call
		case err != nil && (len(l.buf) == 0 || !errors.Is(err, io.EOF)):
			return nil, err
		case tooLarge:
			return nil, errTooLarge
		}
		return l.buf, nil
	}
}

// trim drops the blanks that JSON allows around a value.
func trim(msg []byte) []byte {
	for len(msg) > 0 && blank(msg[len(msg)-1]) {
		msg = msg[:len(msg)-1]
	}
	for len(msg) > 0 && blank(msg[0]) {
		msg = msg[1:]
	}
	return msg
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// tooLarge is what a message over the limit is answered with.
func tooLarge(limit int) error {
	return fault.New(fault.InvalidRequest, "the message is longer than %d bytes", limit).Reason("payload_too_large").
		With("limit_bytes", limit).Hint("send less at once")
}
