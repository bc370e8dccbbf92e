package bridge

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"sync"
	"time"
)

// note is a message between a member and the holder, one JSON line each.
type note struct {
	Is       string    `json:"is"` // from the member: command, lease, drop; from the holder: browsers, result, failed, event, resumed
	Browser  string    `json:"browser,omitempty"`
	ID       string    `json:"id,omitempty"`
	IDs      []string  `json:"ids,omitempty"`
	Tool     string    `json:"tool,omitempty"`
	Args     any       `json:"args,omitempty"`
	N        int       `json:"n,omitempty"`
	Browsers []Browser `json:"browsers,omitempty"`
	Result   *Result   `json:"result,omitempty"`
	Error    *string   `json:"error,omitempty"`
	Event    *Event    `json:"event,omitempty"`
}

// wire writes notes to a connection, whole and in order.
type wire struct {
	mu   sync.Mutex
	conn net.Conn
	enc  *json.Encoder
}

func newWire(c net.Conn) *wire {
	enc := json.NewEncoder(c)
	enc.SetEscapeHTML(false)
	return &wire{conn: c, enc: enc}
}

// put writes a note. A peer that does not read for ten seconds loses the connection.
func (w *wire) put(n note) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
	err := w.enc.Encode(n)
	if err != nil {
		w.conn.Close()
	}
	return err
}

// member reaches browsers through the holder.
type member struct{ w *wire }

func (m *member) send(target string, c Command) error {
	if err := m.w.put(note{Is: "command", Browser: target, ID: c.ID, Tool: c.Tool, Args: c.Args}); err != nil {
		return errDown(false).Cause(err)
	}
	return nil
}

func (m *member) lease(target string, n int) {
	_ = m.w.put(note{Is: "lease", Browser: target, N: n}) // A holder that died has nothing to count.
}

func (m *member) drop(target string) { _ = m.w.put(note{Is: "drop", Browser: target}) }

// join is the role of a member: it ends when the holder does.
func (n *Node) join(ctx context.Context, c net.Conn) error {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	m := &member{newWire(c)}
	n.mu.Lock()
	leases := map[string]int{}
	for target, count := range n.leases {
		leases[target] = count
	}
	n.mu.Unlock()
	n.take(m)
	defer n.take(nil)
	for target, count := range leases {
		m.lease(target, count)
	}
	in := json.NewDecoder(bufio.NewReaderSize(c, 64<<10))
	for {
		var got note
		if err := in.Decode(&got); err != nil {
			return err
		}
		switch got.Is {
		case "browsers":
			n.learn(got.Browsers)
		case "result":
			n.settle(got.ID, got.Result, got.Error)
		case "failed":
			n.failWhere(func(id string, _ *pending) bool { return id == got.ID }, errDown(false))
		case "resumed":
			n.resumed(got.Browser, got.IDs)
		case "event":
			if got.Event != nil {
				n.tell(*got.Event)
			}
		}
	}
}
