package envelope

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/face/door"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// beatEvery is how long a stream of events stays silent before a comment says that it is alive.
const beatEvery = 15 * time.Second

// events streams what happens in the caller's sessions as server-sent events (HTML, section 9.2): GET
// /v1/events?types=TYPE,TYPE&session_ids=ID,ID, all types and all of the caller's sessions when they are left out. Each
// event's data is the envelope that the other connections carry. A client that reads too slowly misses events, and
// events.lagged tells it how many. Nothing is kept for one that comes back. The stream ends with its client, and before the
// server does.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	who, _ := door.Principal(r.Context())
	query := r.URL.Query()
	sub, err := s.Broker.Connect(who, broker.Unbound).Subscribe(listOf(query["types"]), listOf(query["session_ids"]))
	if err != nil {
		writeError(w, statusOf(err), err)
		return
	}
	defer sub.Close()
	s.sockets.Add(1)
	defer s.sockets.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.life, cancel)() //nolint:contextcheck // the server's own life ends the stream too

	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }() // a recorder in a test has none
	send := func(text []byte) bool {
		_ = out.SetWriteDeadline(time.Now().Add(writeWait))
		if _, err := w.Write(text); err != nil {
			return false
		}
		return out.Flush() == nil
	}
	alive := []byte(": events are heard\n\n")
	for send(alive) && r.Method != http.MethodHead {
		if text := s.next(ctx, sub); text != nil {
			alive = text
			continue
		}
		if ctx.Err() != nil {
			return
		}
		alive = []byte(": alive\n\n")
	}
}

// next gives the next event as it is sent, and nil when there is none for a while or the stream ends.
func (s *Server) next(ctx context.Context, sub *broker.Subscription) []byte {
	beat := s.beat
	if beat == 0 {
		beat = beatEvery
	}
	ctx, cancel := context.WithTimeout(ctx, beat)
	defer cancel()
	for {
		ev, err := sub.Next(ctx)
		if err != nil {
			return nil
		}
		if text := served(ev); text != nil {
			return text
		}
	}
}

// served writes an event for a stream; nil for one that cannot be written. JSON has no line breaks, so the data is one line.
func served(ev *browserv1.Event) []byte {
	msg := announce(ev)
	if msg == nil || strings.ContainsAny(ev.GetType(), "\r\n") || bytes.ContainsAny(msg, "\r\n") {
		return nil
	}
	b := make([]byte, 0, len(msg)+len(ev.GetType())+20)
	b = append(append(b, "event: "...), ev.GetType()...)
	b = append(append(b, "\ndata: "...), msg...)
	return append(b, "\n\n"...)
}

// listOf reads a list from a query: commas, repetition, or both.
func listOf(values []string) []string {
	var out []string
	for _, v := range values {
		for word := range strings.SplitSeq(v, ",") {
			if word = strings.TrimSpace(word); word != "" {
				out = append(out, word)
			}
		}
	}
	return out
}
