package relay

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/droverhq/drover/providers/firefox/endpoint"
	"github.com/droverhq/drover/providers/firefox/native"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// addon is the other end of a relay's stdin and stdout.
type addon struct {
	t    *testing.T
	in   *io.PipeReader // what the relay writes
	out  *io.PipeWriter // what the relay reads
	dir  string
	done chan error
}

func start(t *testing.T, public bool, limit int) *addon {
	t.Helper()
	dir := t.TempDir()
	if err := endpoint.Private(dir + "/s"); err != nil {
		t.Fatal(err)
	}
	l, err := endpoint.Listen(t.Context(), dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	fromAddon, toRelay := io.Pipe()
	fromRelay, toAddon := io.Pipe()
	a := &addon{t: t, in: fromRelay, out: toRelay, dir: dir + "/s", done: make(chan error, 1)}
	go func() {
		a.done <- Run(context.Background(), Options{In: fromAddon, Out: toAddon, Listener: l, Public: public, MaxToBrowser: limit})
		toAddon.Close()
	}()
	t.Cleanup(func() {
		toRelay.Close()
		go io.Copy(io.Discard, fromRelay)
		select {
		case err := <-a.done:
			if err != nil {
				t.Errorf("the relay ended with %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the relay does not end with its add-on")
		}
	})
	return a
}

func (a *addon) say(v string) {
	a.t.Helper()
	if err := native.Write(a.out, []byte(v), native.MaxMessage); err != nil {
		a.t.Fatal(err)
	}
}

// hear reads one frame from the relay.
func (a *addon) hear() map[string]any { a.t.Helper(); return hear(a.t, a.in) }

func hear(t *testing.T, r io.Reader) map[string]any {
	t.Helper()
	data, err := native.Read(r, native.MaxMessage)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func (a *addon) dial() net.Conn {
	a.t.Helper()
	list, err := endpoint.Sockets(a.dir)
	if err != nil || len(list) != 1 {
		a.t.Fatalf("the sockets are %v (%v)", list, err)
	}
	c, err := endpoint.Dial(a.t.Context(), list[0])
	if err != nil {
		a.t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	a.t.Cleanup(func() { c.Close() })
	return c
}

func ask(t *testing.T, c net.Conn, v string) {
	t.Helper()
	if err := native.Write(c, []byte(v), native.MaxMessage); err != nil {
		t.Fatal(err)
	}
}

// Two providers use the same ids, and each gets its own answers, in whatever order they come; an answer for one that is gone, and
// an event of its, reach nobody.
func TestAnswersGoToTheAsker(t *testing.T) {
	a := start(t, false, 0)
	one, two := a.dial(), a.dial()
	a.say(`{"type":"hello","params":{"protocol":1,"kind":"drover"}}`)
	for _, c := range []net.Conn{one, two} {
		if m := hear(t, c); m["event"] != "hello" {
			t.Fatalf("first came %v", m)
		}
	}
	ask(t, one, `{"id":7,"method":"m","params":{"who":"one"}}`)
	first := a.hear()
	ask(t, two, `{"id":7,"method":"m","params":{"who":"two"}}`)
	second := a.hear()
	if first["client"] == second["client"] {
		t.Fatalf("both are client %v", first["client"])
	}
	number := func(m map[string]any) string { return strings.TrimSuffix(jsonText(t, m["client"]), ".0") }
	a.say(`{"client":` + number(second) + `,"id":7,"result":"for two"}`)
	a.say(`{"client":` + number(first) + `,"id":7,"result":"for one"}`)
	if m := hear(t, one); m["result"] != "for one" {
		t.Errorf("one got %v", m)
	}
	if m := hear(t, two); m["result"] != "for two" {
		t.Errorf("two got %v", m)
	}
	one.Close()
	if m := a.hear(); m["type"] != "gone" || m["client"] != first["client"] {
		t.Errorf("the add-on was told %v", m)
	}
	a.say(`{"client":` + number(first) + `,"id":8,"result":"late"}`)
	a.say(`{"client":` + number(first) + `,"event":"tab.opened","params":{}}`)
	a.say(`{"client":` + number(second) + `,"id":9,"result":"next"}`)
	if m := hear(t, two); m["result"] != "next" {
		t.Errorf("two got %v", m)
	}
}

func jsonText(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// What is too long for one frame goes in pieces that fit, also when every character needs an escape, and joins to the same.
func TestPieces(t *testing.T) {
	const limit = 2000
	a := start(t, false, limit)
	c := a.dial()
	a.say(`{"type":"hello","params":{"protocol":1}}`)
	hear(t, c)
	text := strings.Repeat(`"\😀`, 3000)
	var wg sync.WaitGroup
	wg.Go(func() {
		ask(t, c, `{"id":1,"method":"m","params":`+jsonText(t, text)+`}`)
	})
	var joined strings.Builder
	for i := 0; ; i++ {
		data, err := native.Read(a.in, native.MaxMessage)
		if err != nil {
			t.Fatal(err)
		}
		var p piece
		if err := json.Unmarshal(data, &p); err != nil || p.Type != "piece" || p.Index != i || len(data) > limit {
			t.Fatalf("piece %d has %d bytes: %v", i, len(data), err)
		}
		joined.WriteString(p.Data)
		if p.Index == p.Total-1 {
			break
		}
	}
	wg.Wait()
	var m message
	if err := json.Unmarshal([]byte(joined.String()), &m); err != nil || string(m.Params) != jsonText(t, text) {
		t.Errorf("the message became another (%v)", err)
	}
}

// A frame that is no message, and one that is no request, end nothing.
func TestNoise(t *testing.T) {
	a := start(t, false, 0)
	c := a.dial()
	for _, text := range []string{"null", "[]", "5", `"x"`, "not json", `{"type":"hello","params":{"protocol":1}}`, `{"client":99,"id":1,"result":1}`} {
		a.say(text)
	}
	hear(t, c)
	for _, text := range []string{"null", "not json", `{"id":1}`, `{"method":"m"}`, `{"id":2,"method":"m"}`} {
		ask(t, c, text)
	}
	if m := a.hear(); m["method"] != "m" || jsonText(t, m["id"]) != "2" {
		t.Errorf("the add-on got %v", m)
	}
}

// A provider that stops reading is let go of, and delays nobody.
func TestStalledProvider(t *testing.T) {
	a := start(t, false, 0)
	stalled := a.dial()
	a.say(`{"type":"hello","params":{"protocol":1}}`)
	hear(t, stalled)
	ask(t, stalled, `{"id":1,"method":"m"}`)
	number := jsonText(t, a.hear()["client"])
	other := a.dial()
	hear(t, other)
	ask(t, other, `{"id":1,"method":"m"}`)
	second := jsonText(t, a.hear()["client"])
	heard := make(chan map[string]any, 1)
	go func() { heard <- hear(t, a.in) }()
	for range queueLength + 2000 {
		a.say(`{"client":` + number + `,"event":"e","params":"` + strings.Repeat("x", 500) + `"}`)
	}
	a.say(`{"client":` + second + `,"id":1,"result":1}`)
	if m := hear(t, other); jsonText(t, m["result"]) != "1" {
		t.Errorf("the other got %v", m)
	}
	if m := <-heard; m["type"] != "gone" || jsonText(t, m["client"]) != number {
		t.Errorf("the add-on was told %v", m)
	}
	for {
		if _, err := native.Read(stalled, native.MaxMessage); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !strings.Contains(err.Error(), "reset") {
				t.Errorf("the stalled one's connection ended with %v", err)
			}
			return
		}
	}
}

// The public bridge's ids are one space for all its clients, and it answers late: no two requests have one id, and what nobody waits
// for any more is dropped.
func TestPublicIDs(t *testing.T) {
	a := start(t, true, 3000)
	one, two := a.dial(), a.dial()
	a.say(`{"type":"hello","version":"0.2.0"}`)
	for _, c := range []net.Conn{one, two} {
		if m := hear(t, c); m["event"] != "hello" || m["params"].(map[string]any)["version"] != "0.2.0" {
			t.Fatalf("first came %v", m)
		}
	}
	ask(t, one, `{"id":1,"method":"getContent","params":{"frameId":0}}`)
	first := a.hear()
	ask(t, two, `{"id":1,"method":"waitFor","params":{}}`)
	second := a.hear()
	if first["action"] != "getContent" || first["id"] == second["id"] || first["params"].(map[string]any)["frameId"] != 0.0 {
		t.Fatalf("the add-on got %v and %v", first, second)
	}
	a.say(`{"id":` + jsonText(t, second["id"]) + `,"ok":false,"error":"Timeout waiting for: #nope"}`)
	a.say(`{"id":` + jsonText(t, first["id"]) + `,"ok":true,"result":{"text":"one's own"}}`)
	if m := hear(t, two); m["error"].(map[string]any)["message"] != "Timeout waiting for: #nope" {
		t.Errorf("two got %v", m)
	}
	if m := hear(t, one); m["result"].(map[string]any)["text"] != "one's own" {
		t.Errorf("one got %v", m)
	}
	a.say(`{"id":` + jsonText(t, first["id"]) + `,"ok":true,"result":"again"}`)
	ask(t, one, `{"id":2,"method":"type","params":{"text":"`+strings.Repeat("x", 4000)+`"}}`)
	if m := hear(t, one); m["error"].(map[string]any)["code"] != "too_large" {
		t.Errorf("a request beyond Firefox's limit gave %v", m)
	}
}
