package envelope

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/face/door"
	"github.com/droverhq/drover/broker/trace"
	"github.com/droverhq/drover/proto/fault"
)

// How a WebSocket is kept alive, and how long a client may take to take a message.
const (
	pingEvery = 20 * time.Second
	pongWait  = 10 * time.Second
	writeWait = 30 * time.Second
)

// socket speaks envelopes over a WebSocket, one a text frame. Host, Origin and token were checked before the upgrade.
func (s *Server) socket(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the door checked the Origin, more strictly
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return // it has answered
	}
	s.sockets.Add(1)
	defer s.sockets.Done()
	defer ws.CloseNow() //nolint:errcheck // it is over either way
	ws.SetReadLimit(-1) // next has a limit that does not end the connection
	who, _ := door.Principal(r.Context())
	// All calls of the connection belong to the trace that its first request names.
	ctx, cancel := context.WithCancel(trace.FromHeader(r.Context(), r.Header))
	defer cancel()
	c := newConn(ctx, s.Broker.Connect(who, broker.Lingering), func(msg []byte) error {
		ctx, cancel := context.WithTimeout(ctx, writeWait)
		defer cancel()
		return ws.Write(ctx, websocket.MessageText, msg)
	})
	c.limit = s.limit
	defer s.open.enter(c)()
	c.events.Go(func() { keepAlive(c.ctx, ws, func() bool { return s.Door.Still(r) }, cancel) })
	err = c.serve(func() ([]byte, error) { //nolint:contextcheck // the connection's context ends with ctx
		msg, err := nextFrame(c.ctx, ws, s.limit)
		if err == nil && !s.Door.Still(r) {
			_ = ws.Close(websocket.StatusPolicyViolation, "the token was revoked")
			return nil, errGone
		}
		return msg, err
	})
	if err != nil && !errors.Is(err, errGone) {
		s.Logger.Debug("websocket ended", "error", err)
	}
	_ = ws.Close(websocket.StatusNormalClosure, "")
}

// connections are the WebSockets that are open.
type connections struct {
	mu  sync.Mutex
	all map[*conn]struct{}
}

func (s *connections) enter(c *conn) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*conn]struct{}{}
	}
	s.all[c] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, c)
	}
}

// Settle waits until every call that came over a WebSocket is answered, or ctx ends. The broker has to take no more calls.
func (s *Server) Settle(ctx context.Context) {
	s.open.mu.Lock()
	all := slices.Collect(maps.Keys(s.open.all))
	s.open.mu.Unlock()
	for _, c := range all {
		select {
		case <-c.calls.Idle():
		case <-ctx.Done():
			return
		}
	}
}

// nextFrame reads the next message. One over the limit is skipped without being kept.
func nextFrame(ctx context.Context, ws *websocket.Conn, limit int) ([]byte, error) {
	kind, r, err := ws.Reader(ctx)
	if err != nil {
		if websocket.CloseStatus(err) == websocket.StatusNormalClosure || websocket.CloseStatus(err) == websocket.StatusGoingAway {
			return nil, errGone
		}
		return nil, fmt.Errorf("read: %w", err)
	}
	msg, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if len(msg) > limit {
		if _, err := io.Copy(io.Discard, r); err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		return nil, errTooLarge
	}
	if kind != websocket.MessageText {
		return nil, errBinary
	}
	return trim(msg), nil
}

// errGone is a client that closed the connection; there is nobody to finish its calls for.
var errGone = errors.New("the client is gone")

// errBinary is a frame that is no text; the connection goes on.
var errBinary = errors.New("messages are text frames")

// notText is what a binary frame is answered with.
func notText() error {
	return fault.New(fault.InvalidRequest, "%s", errBinary.Error())
}

// keepAlive ends the connection when the client does not answer pings any more, or may not be here any more.
func keepAlive(ctx context.Context, ws *websocket.Conn, still func() bool, end func()) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		wait, cancel := context.WithTimeout(ctx, pongWait)
		err := ws.Ping(wait)
		cancel()
		if err != nil || !still() {
			end()
			return
		}
	}
}
