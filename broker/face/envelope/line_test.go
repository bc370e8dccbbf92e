package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/droverhq/drover/broker"
)

// Lines of every length come out whole, blank ones not at all, and those over the limit are skipped without being kept.
func TestLines(t *testing.T) {
	const limit = 200 << 10
	big := strings.Repeat("x", 100<<10)
	for name, tt := range map[string]struct {
		in   string
		want []string // "!" is a line over the limit
	}{
		"nothing":              {"", nil},
		"one":                  {"a\n", []string{"a"}},
		"no newline":           {"a\nb", []string{"a", "b"}},
		"carriage returns":     {"a\r\n b \r\n", []string{"a", "b"}},
		"blank":                {"\n \n\t\r\na\n\n", []string{"a"}},
		"longer than a buffer": {big + "\nb\n", []string{big, "b"}},
		"at the limit":         {strings.Repeat("y", limit) + "\nb\n", []string{strings.Repeat("y", limit), "b"}},
		"over the limit":       {strings.Repeat("y", limit+1) + "\nb\n", []string{"!", "b"}},
		"far over the limit":   {"a\n" + strings.Repeat("y", 1<<20) + "\nb\n", []string{"a", "!", "b"}},
		"over, and the end":    {"a\n" + strings.Repeat("y", 1<<20), []string{"a", "!"}},
	} {
		for _, how := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.HalfReader, iotest.DataErrReader} {
			l := newLines(how(strings.NewReader(tt.in)), limit)
			var got []string
			for {
				msg, err := l.next()
				if errors.Is(err, io.EOF) {
					break
				}
				if errors.Is(err, errTooLarge) {
					msg = []byte("!")
				} else if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				got = append(got, string(msg))
			}
			if strings.Join(got, "|") != strings.Join(tt.want, "|") {
				t.Errorf("%s: got %d lines %.40q", name, len(got), got)
			}
		}
	}
	l := newLines(iotest.ErrReader(io.ErrClosedPipe), 100)
	if _, err := l.next(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a broken reader gives %v", err)
	}
}

var filler = strings.Repeat("x", 64<<10)

// stream makes a long line without holding it.
type stream struct {
	head string
	left int
	tail string
}

func (s *stream) Read(p []byte) (int, error) {
	switch {
	case s.head != "":
		n := copy(p, s.head)
		s.head = s.head[n:]
		return n, nil
	case s.left > 0:
		n := copy(p[:min(len(p), s.left)], filler)
		s.left -= n
		return n, nil
	case s.tail != "":
		s.head, s.tail = s.tail, ""
		return s.Read(p)
	}
	return 0, io.EOF
}

// A message of 30 MB is read and answered, one of 70 MB is skipped and answered payload_too_large, and nothing of one of
// 300 MB is kept; the connection goes on after each.
func TestHugeMessages(t *testing.T) {
	const ask = `{"protocol_version":"0.1","id":"after","method":"provider.status"}` + "\n"
	const head = `{"protocol_version":"0.1","id":"big","method":"page.click","params":{`
	for name, tt := range map[string]struct {
		in     *stream
		id     string
		reason string
		field  string
		most   uint64 // bytes allocated in all
	}{
		"30 MB of no JSON":          {&stream{left: 30 << 20, tail: "\n" + ask}, "null", "", "", 400 << 20},
		"30 MB in an unknown field": {&stream{head + `"slector":"`, 30 << 20, "\"}}\n" + ask}, `"big"`, "", "slector", 600 << 20},
		"70 MB":                     {&stream{head + `"selector":"`, 70 << 20, "\"}}\n" + ask}, "null", "payload_too_large", "", 500 << 20},
		"300 MB":                    {&stream{left: 300 << 20, tail: "\n" + ask}, "null", "payload_too_large", "", 500 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBroker(t, "", newFake())
			var out bytes.Buffer
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := Serve(t.Context(), b.Connect(broker.Principal{ID: "stdio"}, broker.Bound), tt.in, &out); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if len(lines) != 2 {
				t.Fatalf("%d answers: %.300s", len(lines), out.String())
			}
			type told struct {
				ID    json.RawMessage
				OK    bool
				Error struct {
					Code    string
					Details struct{ Reason, Field string }
				}
			}
			var first, second told
			if err := errors.Join(json.Unmarshal([]byte(lines[0]), &first), json.Unmarshal([]byte(lines[1]), &second)); err != nil {
				t.Fatal(err)
			}
			if e := first.Error; string(first.ID) != tt.id || e.Code != "invalid_request" || e.Details.Reason != tt.reason || e.Details.Field != tt.field {
				t.Errorf("the first answer is %.300s", lines[0])
			}
			if string(second.ID) != `"after"` || !second.OK {
				t.Errorf("the second answer is %.300s", lines[1])
			}
			if len(lines[0]) > 2000 {
				t.Errorf("the error has %d bytes", len(lines[0]))
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > tt.most {
				t.Errorf("%d MiB were allocated", got>>20)
			}
		})
	}
}
