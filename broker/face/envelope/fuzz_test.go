package envelope

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/droverhq/drover/broker"
)

// FuzzEnvelope guards that whatever bytes come in, every line but a blank one is answered exactly once, in whole lines of
// valid JSON in the envelope's shape, with the id as it came or null.
func FuzzEnvelope(f *testing.F) {
	for _, s := range []string{
		ensureBody, ensureBody + "\n" + ensureBody, "null", "{}", "[", "\xff", `{"protocol_version":"0.1","id":1e400,"method":"provider.status"}`,
		`{"protocol_version":"0.1","id":"\ud800","method":"session.list","params":{}}`, `{"protocol_version":"9","id":-0}`, "\n \r\n\t\n", `{"id":"\u0000"}`,
		`{"protocol_version":"0.1","id":1,"method":"call.cancel","params":{"id":1}}`, `{"protocol_version":"0.1","id":1,"method":"events.subscribe","params":{"types":["x"]}}`,
		`{"protocol_version":"0.1","id":3,"method":"page.click","params":{"session_id":"s","selector":"a","modifiers":["alt"]}}`, `{"a":1,"a":2}`,
		`{"protocol_version":"0.1","id":3,"method":"session.ensure","params":{"client_session_id":"b","metadata":{"x":[1,null,{"y":"z"}]},"viewport":{"width":1,"height":2}}}`,
	} {
		f.Add([]byte(s))
	}
	b := newBroker(f, "", newFake())
	f.Fuzz(func(t *testing.T, in []byte) {
		want := 0
		for _, line := range bytes.Split(in, []byte("\n")) {
			if len(trim(line)) > 0 {
				want++
			}
		}
		var out lockedBuffer
		caller := b.Connect(broker.Principal{ID: "fuzz"}, broker.Bound)
		if err := serveLines(t.Context(), caller, io.Reader(bytes.NewReader(in)), &out, 1<<16); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if text != "" && !strings.HasSuffix(text, "\n") {
			t.Fatalf("half a line: %q", text)
		}
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if text == "" {
			lines = nil
		}
		answers := 0
		for _, line := range lines {
			var m struct {
				Version  string          `json:"protocol_version"`
				ID       json.RawMessage `json:"id"`
				OK       *bool           `json:"ok"`
				Event    string          `json:"event"`
				Error    json.RawMessage `json:"error"`
				Result   json.RawMessage `json:"result"`
				Warnings json.RawMessage `json:"warnings"`
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil || !utf8.ValidString(line) || m.Version != "0.1" {
				t.Fatalf("%q is no message: %v", line, err)
			}
			if m.Event != "" {
				continue
			}
			answers++
			if m.OK == nil || *m.OK != (m.Error == nil) || *m.OK != (m.Result != nil && m.Warnings != nil) {
				t.Fatalf("%s is no answer", line)
			}
			if m.ID != nil && string(m.ID) != "null" && !bytes.Contains(in, m.ID) {
				t.Fatalf("the id of %s did not come", line)
			}
		}
		if answers != want {
			t.Fatalf("%d answers to %d lines: %q", answers, want, text)
		}
	})
}

// BenchmarkEnvelope is a call of a kilobyte over a line connection, on a provider that answers at once.
func BenchmarkEnvelope(b *testing.B) {
	f := newFake()
	f.Deaf = true
	br := newBroker(b, "", f)
	k := start(b, br.Connect(broker.Principal{ID: "bench"}, broker.Bound), MaxMessage)
	k.send(ensureA)
	k.expect(`{"id":"e","result":{"session_id":"$s"}}`)
	line := k.expand(ask("1", "page.type", `"text":"`+strings.Repeat("x", 900)+`"`))
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		k.send(line)
		k.receive()
	}
}
