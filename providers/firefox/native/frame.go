// Package native frames messages the way native messaging does (MDN, "Native messaging"): four bytes of length in the
// machine's order, which is little-endian wherever Firefox runs, and then UTF-8 JSON. Drover's own sockets to the host use
// the same frames.
package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

const (
	// MaxToBrowser is the longest message that Firefox takes from a host; it ends the connection at a longer one. The real
	// limit is 1 MiB, of which some is left for Firefox's own use.
	MaxToBrowser = 1<<20 - 1024
	// MaxMessage is the longest message that is taken from a browser or over a socket, and the longest whole message that is
	// sent in pieces.
	MaxMessage = 256 << 20
)

// ErrTooLarge is an incoming message beyond the limit. What follows in the stream cannot be read any more.
var ErrTooLarge = errors.New("native: the message is too large")

// ErrNotText is an incoming message that is no UTF-8. The stream is still in order.
var ErrNotText = errors.New("native: the message is no UTF-8")

// Read reads one message of at most limit bytes. io.EOF between two messages is the end of the stream; inside one it is
// io.ErrUnexpectedEOF.
func Read(r io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if uint64(n) > uint64(limit) {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, n)
	}
	// The length is only somebody's word, so memory is taken as bytes arrive.
	data, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return nil, err
	}
	if len(data) < int(n) {
		return nil, io.ErrUnexpectedEOF
	}
	if !utf8.Valid(data) {
		return nil, ErrNotText
	}
	return data, nil
}

// Write writes one message of at most limit bytes in one piece, so that two writers only have to take turns.
func Write(w io.Writer, data []byte, limit int) error {
	if len(data) > limit {
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, len(data))
	}
	frame := make([]byte, 4, 4+len(data))
	binary.LittleEndian.PutUint32(frame, uint32(len(data))) //nolint:gosec // it is within the limit
	_, err := w.Write(append(frame, data...))
	return err
}

// Split cuts a text into pieces of at most size bytes, between characters.
func Split(text []byte, size int) [][]byte {
	var out [][]byte
	for len(text) > size {
		n := size
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		if n == 0 { // No character is that long; it is no UTF-8.
			n = size
		}
		out = append(out, text[:n])
		text = text[n:]
	}
	return append(out, text)
}
