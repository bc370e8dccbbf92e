package native

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

// Messages come out as they went in, and a limit holds on both ways.
func TestFrames(t *testing.T) {
	var buf bytes.Buffer
	for _, text := range []string{`{"a":1}`, `"é 漢 😀"`, ``} {
		if err := Write(&buf, []byte(text), 100); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{`{"a":1}`, `"é 漢 😀"`, ``} {
		if got, err := Read(&buf, 100); err != nil || string(got) != want {
			t.Fatalf("read %q (%v), want %q", got, err, want)
		}
	}
	if _, err := Read(&buf, 100); !errors.Is(err, io.EOF) {
		t.Errorf("the end is %v", err)
	}
	if err := Write(&buf, make([]byte, 101), 100); !errors.Is(err, ErrTooLarge) || buf.Len() > 0 {
		t.Errorf("writing too much gave %v and %d bytes", err, buf.Len())
	}
	if _, err := Read(strings.NewReader("\xff\xff\xff\xffx"), 100); !errors.Is(err, ErrTooLarge) {
		t.Errorf("reading too much gave %v", err)
	}
	if _, err := Read(strings.NewReader("\x05\x00\x00\x00abc"), 100); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut message gave %v", err)
	}
	if _, err := Read(strings.NewReader("\x02\x00\x00\x00\xff\xfe"), 100); !errors.Is(err, ErrNotText) {
		t.Errorf("no text gave %v", err)
	}
}

// Pieces never cut a character in two, and joined they are the text.
func TestSplit(t *testing.T) {
	text := []byte(strings.Repeat("a😀漢é", 50))
	for size := 4; size < 40; size++ {
		parts := Split(text, size)
		if !bytes.Equal(bytes.Join(parts, nil), text) {
			t.Fatalf("size %d: the pieces are another text", size)
		}
		for _, p := range parts {
			if len(p) > size || !utf8.Valid(p) {
				t.Fatalf("size %d: a piece is %q", size, p)
			}
		}
	}
}

// Whatever bytes come, reading ends, and takes no more memory than there are bytes.
func FuzzRead(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00{}"))
	f.Add([]byte("\xff\xff\xff\x7f"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		for {
			data, err := Read(r, 1<<30)
			if err != nil && !errors.Is(err, ErrNotText) {
				return
			}
			if len(data) > len(in) {
				t.Fatalf("%d bytes out of %d", len(data), len(in))
			}
		}
	})
}
