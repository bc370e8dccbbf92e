package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

const (
	// mostBytes is the largest message of a browser: 64 MiB.
	mostBytes = 64 << 20
	// beat is how often a browser is told that this side lives; a worker of an extension sleeps after 30 s of silence.
	beat = 15 * time.Second
	// ackEvery is how often a browser is told which of its messages were taken in; it keeps the others to say them again.
	ackEvery = 50 * time.Millisecond
	// authTime is how long a WebSocket may stay without its token.
	authTime = 5 * time.Second
	// closeBadToken is the code that the protocol has for a token that is refused.
	closeBadToken = websocket.StatusCode(4001)
)

// routes serves both transports and the pairing page. A server URL that ends in a slash makes paths that begin with two.
func (h *holder) routes() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := "/" + strings.TrimLeft(r.URL.Path, "/")
		switch {
		case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
			h.socket(w, r)
		case path == commandPath || strings.HasPrefix(path, commandPath+"/"):
			h.stream(w, r, strings.Trim(path[len(commandPath):], "/"))
		case path == resultPath || strings.HasPrefix(path, resultPath+"/"):
			h.results(w, r)
		case path == pairPath || strings.HasPrefix(path, pairPath+"/"):
			h.pair(w, r, path)
		default:
			http.NotFound(w, r)
		}
	})
}

// socket serves the WebSocket transport.
func (h *holder) socket(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, pairPath) {
		http.NotFound(w, r)
		return
	}
	// The guard has looked at the origin: an extension's is another one than this host's.
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(mostBytes)
	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	hello, target, err := h.admit(ctx, ws)
	if err != nil {
		_ = ws.Close(closeBadToken, "the token is refused")
		return
	}
	c := &live{target: target, transport: "websocket", out: make(chan []byte, queued), end: end, done: ctx.Done()}
	c.bye = func() { _ = ws.Close(closeBadToken, "the pairing was revoked") }
	if ws.Write(ctx, websocket.MessageText, []byte(`{"type":"auth_ok"}`)) != nil {
		return
	}
	leave := h.arrive(c, hello)
	defer leave()
	writer := make(chan struct{})
	h.wg.Go(func() {
		defer close(writer)
		h.write(ctx, ws, c)
	})
	// A read that is cancelled breaks the connection off; so it is closed instead.
	shut := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(shut)
		_ = ws.CloseNow()
	})
	for {
		_, data, err := ws.Read(r.Context())
		if err != nil {
			break
		}
		var m incoming
		if json.Unmarshal(data, &m) != nil || m.Type == "ping" {
			continue
		}
		if seq := h.receive(target, m); seq > 0 && c.resumes {
			c.taken.Store(seq)
		}
	}
	end(nil)
	<-writer
	<-shut
}

// admit reads the first frame and looks at its token.
func (h *holder) admit(ctx context.Context, ws *websocket.Conn) (incoming, string, error) {
	ctx, cancel := context.WithTimeout(ctx, authTime)
	defer cancel()
	var m incoming
	_, data, err := ws.Read(ctx)
	if err != nil {
		return m, "", err
	}
	if json.Unmarshal(data, &m) != nil || m.Type != "auth" {
		return m, "", errToken
	}
	p, err := h.n.store.Use(strings.TrimSpace(m.Token), m.Target)
	return m, p.Target, err
}

// write sends what waits for a browser, and pings it, until ctx ends or it does not answer. Frames of the protocol wake a
// worker, pings of the WebSocket find out that the other side is gone.
func (h *holder) write(ctx context.Context, ws *websocket.Conn, c *live) {
	tick, acks := time.NewTicker(beat), time.NewTicker(ackEvery)
	defer tick.Stop()
	defer acks.Stop()
	acked := int64(0)
	for {
		var err error
		select {
		case <-acks.C:
			seq := c.taken.Load()
			if seq == acked {
				continue
			}
			acked = seq
			err = ws.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"type":"ack","seq":%d}`, seq))
		case data := <-c.out:
			brief, cancel := context.WithTimeout(ctx, beat)
			err = ws.Write(brief, websocket.MessageText, data)
			cancel()
		case <-tick.C:
			if c.resumes {
				err = ws.Write(ctx, websocket.MessageText, []byte(`{"type":"ping"}`))
			}
			brief, cancel := context.WithTimeout(ctx, beat)
			err = errors.Join(err, ws.Ping(brief))
			cancel()
			if err == nil && !h.good(c.target) {
				c.bye()
				err = errRevoked
			}
		case <-ctx.Done():
			return
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

// good says whether a browser's pairing is still good; another process may have revoked it.
func (h *holder) good(target string) bool {
	all, err := h.n.store.List()
	if err != nil {
		return true
	}
	for _, p := range all {
		if p.Target == target {
			return !p.Revoked
		}
	}
	return false
}

func bearer(r *http.Request) string {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return strings.TrimSpace(token)
}

// stream serves the commands of the SSE transport.
func (h *holder) stream(w http.ResponseWriter, r *http.Request, target string) {
	if r.Method != http.MethodGet {
		http.Error(w, "the commands are read with GET", http.StatusMethodNotAllowed)
		return
	}
	p, err := h.n.store.Use(bearer(r), target)
	if err != nil {
		http.Error(w, "the token is refused", http.StatusUnauthorized)
		return
	}
	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	c := &live{target: p.Target, transport: "sse-http", out: make(chan []byte, queued), end: end, done: ctx.Done()}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	write := func(text string) error {
		_ = out.SetWriteDeadline(time.Now().Add(beat))
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
		return out.Flush()
	}
	if write(": ready\n\n") != nil {
		return
	}
	hello := incoming{Life: r.Header.Get("X-Operator-Life")}
	if ids := r.Header.Get("X-Operator-Pending"); ids != "" {
		hello.Pending = strings.Split(ids, ",")
	}
	leave := h.arrive(c, hello)
	defer leave()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		var err error
		select {
		case data := <-c.out:
			err = write("data: " + string(data) + "\n\n")
		case <-tick.C:
			if err = write(": beat\n\n"); err == nil && !h.good(c.target) {
				c.end(errRevoked)
			}
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errRevoked) {
				_ = write("event: disconnect\ndata: revoked\n\n")
				return
			}
			// A stream that ends cleanly is opened again at once, by an extension that does not wait; one that breaks off is not.
			panic(http.ErrAbortHandler)
		}
		if err != nil {
			return
		}
	}
}

// results serves the results of the SSE transport.
func (h *holder) results(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "results are sent with POST", http.StatusMethodNotAllowed)
		return
	}
	p, err := h.n.store.Find(bearer(r))
	if err != nil {
		http.Error(w, "the token is refused", http.StatusUnauthorized)
		return
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		http.Error(w, "a result is JSON", http.StatusUnsupportedMediaType)
		return
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	var m incoming
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		http.Error(w, "the result cannot be read", http.StatusBadRequest)
		return
	}
	list := m.Messages
	if list == nil {
		list = []incoming{m}
	}
	for _, one := range list {
		h.receive(p.Target, one)
	}
	w.WriteHeader(http.StatusNoContent)
}
