package firefox

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/droverhq/drover/providers/firefox/native"
	"github.com/droverhq/drover/providers/firefox/relay"
)

// dialBridge connects to the WebSocket of the public Firefox Agent Bridge and speaks to the link as a native host would. The
// bridge's clients share one space of ids and hear each other's late answers, so ids are made unique, and what nobody here asked
// for is dropped.
func dialBridge(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	ws, resp, err := websocket.Dial(ctx, address, nil)
	if resp != nil && resp.Body != nil {
		resp.Body.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("the public bridge: %w", err)
	}
	ws.SetReadLimit(native.MaxMessage)
	near, far := net.Pipe()
	b := &bridgeConn{ws: ws, far: far, prefix: "drover-" + newToken() + "-"}
	go b.run() //nolint:contextcheck // ends when either end does; closing near ends it
	return near, nil
}

// bridgeConn carries messages between a link and a WebSocket.
type bridgeConn struct {
	ws     *websocket.Conn
	far    net.Conn
	prefix string
	out    sync.Mutex // over writing to far
}

func (b *bridgeConn) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { // requests, down
		defer cancel()
		b.requests(ctx)
	})
	b.answers(ctx)
	cancel()
	b.far.Close()
	_ = b.ws.CloseNow()
	wg.Wait()
}

// requests takes the link's requests to the bridge.
func (b *bridgeConn) requests(ctx context.Context) {
	for {
		data, err := native.Read(b.far, native.MaxMessage)
		if err != nil {
			return
		}
		var r struct {
			ID     int64           `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if json.Unmarshal(data, &r) != nil {
			continue
		}
		text, err := json.Marshal(map[string]any{"id": fmt.Sprint(b.prefix, r.ID), "action": r.Method, "params": r.Params})
		if err != nil || b.ws.Write(ctx, websocket.MessageText, text) != nil {
			return
		}
	}
}

// answers takes the bridge's answers to the link.
func (b *bridgeConn) answers(ctx context.Context) {
	for {
		_, data, err := b.ws.Read(ctx)
		if err != nil {
			return
		}
		var m struct {
			Type   string          `json:"type"`
			ID     json.RawMessage `json:"id"`
			OK     *bool           `json:"ok"`
			Result json.RawMessage `json:"result"`
			Error  string          `json:"error"`
		}
		if json.Unmarshal(data, &m) != nil {
			continue
		}
		if m.Type == "ready" {
			b.send(map[string]any{"event": "hello", "params": hello{Kind: "public", Protocol: relay.Protocol, Browser: "Firefox"}})
			continue
		}
		var id string
		if json.Unmarshal(m.ID, &id) != nil || m.OK == nil {
			continue
		}
		own, ok := strings.CutPrefix(id, b.prefix)
		if !ok {
			continue // another client's
		}
		out := map[string]any{"id": json.RawMessage(own), "result": m.Result}
		if !*m.OK {
			out = map[string]any{"id": json.RawMessage(own), "error": refusal{Code: "bridge_error", Message: m.Error}}
		}
		b.send(out)
	}
}

func (b *bridgeConn) send(m map[string]any) {
	data, err := json.Marshal(m)
	if err != nil {
		return
	}
	b.out.Lock()
	defer b.out.Unlock()
	_ = b.far.SetWriteDeadline(time.Now().Add(writeTime))
	if native.Write(b.far, data, native.MaxMessage) != nil {
		b.far.Close()
	}
}
