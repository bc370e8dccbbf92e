package envelope

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

const ensureA = `{"protocol_version":"0.1","id":"e","method":"session.ensure","params":{"client_session_id":"a"}}`

func stdioCaller(b *broker.Broker) *broker.Caller {
	return b.Connect(broker.Principal{ID: "stdio", Name: "stdio"}, broker.Bound)
}

// session starts a conversation that has a session, $s.
func session(t *testing.T, b *broker.Broker) *talk {
	t.Helper()
	k := start(t, stdioCaller(b), MaxMessage)
	k.send(ensureA)
	k.expect(`{"id":"e","ok":true,"result":{"session_id":"$s"}}`)
	return k
}

// ask writes a request on the session.
func ask(id, method, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"protocol_version":"0.1","id":%q,"method":%q,"params":{"session_id":"$s"%s}}`, id, method, more)
}

// When its context ends, the connection ends at once, though a call is stuck and the input open, and its sessions are closed.
func TestEndsAtOnce(t *testing.T) {
	f := newFake()
	k := session(t, newBroker(t, "", f))
	k.send(k.expand(ask("1", "page.click", `"selector":"stuck"`)))
	k.send(k.expand(ask("2", "tab.list", "")))
	k.expect(`{"id":"2","ok":true}`)
	begin := time.Now()
	k.stop()
	k.expect(`{"id":"1","ok":false,"error":{"code":"not_ready","details":{"reason":"shutting_down"}}}`)
	if err := k.ended(); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	if len(f.Calls("session.close")) != 1 {
		t.Error("the session was not closed")
	}
}

// At the end of the input a call that does not end is waited for 15 s and no longer; it is answered.
func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, "", newFake())
		in, w := io.Pipe()
		var out lockedBuffer
		done := make(chan error, 1)
		go func() { done <- Serve(t.Context(), stdioCaller(b), in, &out) }()
		write(t, w, ensureA)
		_, id, _ := strings.Cut(out.String(), `"session_id":"`)
		id, _, _ = strings.Cut(id, `"`)
		write(t, w, strings.ReplaceAll(ask("1", "page.click", `"selector":"stuck","timeout_ms":60000`), "$s", id))
		begin := time.Now()
		w.Close()
		if err := <-done; err != nil {
			t.Errorf("it ended with %v", err)
		}
		if took := time.Since(begin); took != drainWait {
			t.Errorf("it took %v", took)
		}
		if !strings.Contains(out.String(), `"id":"1","ok":false`) || !strings.Contains(out.String(), `"reason":"shutting_down"`) {
			t.Errorf("the call was not answered: %s", out.String())
		}
	})
}

func write(t *testing.T, w io.Writer, line string) {
	t.Helper()
	if _, err := io.WriteString(w, line+"\n"); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A client that takes no answers any more ends the connection.
func TestWriteFails(t *testing.T) {
	b := newBroker(t, "", newFake())
	in, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Serve(t.Context(), stdioCaller(b), in, brokenWriter{}) }()
	if _, err := io.WriteString(w, ensureA+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("it ended with %v", err)
	}
	w.Close()
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Calls on one page run in the order they were read, however many are sent at once.
func TestOrderOfArrival(t *testing.T) {
	f := newFake()
	var mu sync.Mutex
	var got, want []string
	f.On("page.type", func(_ context.Context, req proto.Message) (proto.Message, error) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, req.(*browserv1.TypeRequest).GetText())
		return &browserv1.TypeResponse{}, nil
	})
	k := session(t, newBroker(t, "", f))
	var all strings.Builder
	for i := range 200 {
		id := fmt.Sprint(i)
		want = append(want, id)
		all.WriteString(k.expand(ask(id, "page.type", fmt.Sprintf(`"text":%q`, id))) + "\n")
	}
	k.sendAside(all.String())
	for range want {
		k.receive()
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(got, want) {
		t.Errorf("they ran as %v", got)
	}
}

// More calls than the limit wait unread, and are answered all the same.
func TestRoomForCalls(t *testing.T) {
	k := session(t, newBroker(t, "limits { calls = 2 }", newFake()))
	var all strings.Builder
	for i := range 20 {
		all.WriteString(k.expand(ask(fmt.Sprint(i), "tab.list", "")) + "\n")
	}
	k.sendAside(all.String())
	for range 20 {
		if line := k.receive(); !strings.Contains(line, `"ok":true`) {
			t.Errorf("got %s", line)
		}
	}
}

// A call.cancel is heard behind calls that there is no room for, and reaches those too.
func TestCancelBehindAFullRoom(t *testing.T) {
	f := newFake()
	f.On("page.wait", func(ctx context.Context, _ proto.Message) (proto.Message, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	k := session(t, newBroker(t, "limits { calls = 1 }", f))
	for _, id := range []string{"runs", "waits", "stays"} {
		k.send(k.expand(ask(id, "page.wait", `"text_present":"x"`)))
	}
	for _, id := range []string{"waits", "runs"} {
		k.send(`{"protocol_version":"0.1","id":"c","method":"call.cancel","params":{"id":"` + id + `"}}`)
		both := k.receive() + k.receive()
		if !strings.Contains(both, `"cancelled":true`) || !strings.Contains(both, `"id":"`+id+`"`) || !strings.Contains(both, `"reason":"cancelled"`) {
			t.Errorf("%s: got %s", id, both)
		}
	}
	for _, id := range []string{`{}`, `null`, `[1]`, `true`} {
		k.send(`{"protocol_version":"0.1","id":"c","method":"call.cancel","params":{"id":` + id + `}}`)
		if line := k.receive(); !strings.Contains(line, `"invalid_request"`) || !strings.Contains(line, `"field":"id"`) {
			t.Errorf("%s: got %s", id, line)
		}
	}
	k.send(`{"protocol_version":"0.1","id":"c","method":"call.cancel","params":{"id":"stays"}}`)
	k.receive()
	k.receive()
}
