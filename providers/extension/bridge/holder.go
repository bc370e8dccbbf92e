package bridge

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/plugins/singleton"
)

// holder is the role of the process that browsers connect to.
type holder struct {
	n    *Node
	addr net.Addr
	wg   sync.WaitGroup

	mu      sync.Mutex
	live    map[string]*live // the connection of each browser
	known   map[string]Browser
	seen    map[string]progress
	members map[*wire]map[string]int // with their leases
	own     map[string]int           // the leases of this process
	asked   map[string]*wire         // which member a command is of
}

// progress is how far the messages of a worker's life were taken in.
type progress struct {
	life string
	seq  int64
}

// live is one connection of a browser.
type live struct {
	target    string
	transport string
	out       chan []byte
	end       context.CancelCauseFunc
	done      <-chan struct{}
	bye       func()       // tells a browser that its token is good no more; nil where the end of the stream does
	resumes   bool         // it numbers its messages
	taken     atomic.Int64 // the number of the last one that was taken in
}

// queued is how many messages may wait for a connection that does not take them.
const queued = 256

// hold listens for browsers and members until ctx ends.
func (n *Node) hold(ctx context.Context, seat *singleton.Held) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", n.set.Listen)
	if err != nil {
		err = fmt.Errorf("listening for browsers: %w", err)
		n.fail(err)
		return err
	}
	h := &holder{
		n: n, addr: l.Addr(), live: map[string]*live{}, known: map[string]Browser{}, seen: map[string]progress{},
		members: map[*wire]map[string]int{}, own: map[string]int{}, asked: map[string]*wire{},
	}
	if all, err := n.store.List(); err == nil {
		for _, p := range all {
			if p.Used && !p.Revoked {
				h.known[p.Target] = Browser{Target: p.Target}
			}
		}
	}
	n.mu.Lock()
	for target, count := range n.leases {
		h.own[target] = count
	}
	n.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	_, port, _ := net.SplitHostPort(n.set.Listen)
	srv := &http.Server{
		Handler: guard(port, h.routes()), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	h.wg.Go(func() { _ = srv.Serve(l) })
	h.wg.Go(func() { h.welcome(ctx, seat) })
	n.take(h)
	h.changed()
	n.set.Log.Info("the listener for browsers is open", "address", n.set.Listen)
	<-ctx.Done()
	cancel()
	n.take(nil)
	_ = seat.Close()
	h.mu.Lock()
	for _, c := range h.live {
		c.end(errors.New("the process ends"))
	}
	for w := range h.members {
		w.conn.Close()
	}
	h.mu.Unlock()
	brief, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	if srv.Shutdown(brief) != nil {
		_ = srv.Close()
	}
	h.wg.Wait()
	return nil
}

// welcome serves the members.
func (h *holder) welcome(ctx context.Context, seat *singleton.Held) {
	for {
		c, err := seat.Accept()
		if err != nil {
			return
		}
		w := newWire(c)
		h.mu.Lock()
		h.members[w] = map[string]int{}
		h.mu.Unlock()
		h.wg.Go(func() {
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			h.changed()
			h.serve(w)
			h.mu.Lock()
			delete(h.members, w)
			for id, of := range h.asked {
				if of == w {
					delete(h.asked, id)
				}
			}
			h.mu.Unlock()
			c.Close()
			h.changed()
		})
	}
}

func (h *holder) serve(w *wire) {
	in := json.NewDecoder(bufio.NewReaderSize(w.conn, 64<<10))
	for {
		var got note
		if in.Decode(&got) != nil {
			return
		}
		switch got.Is {
		case "command":
			h.mu.Lock()
			h.asked[got.ID] = w
			h.mu.Unlock()
			if h.send(got.Browser, Command{ID: got.ID, Tool: got.Tool, Args: got.Args}) != nil {
				h.mu.Lock()
				delete(h.asked, got.ID)
				h.mu.Unlock()
				_ = w.put(note{Is: "failed", ID: got.ID})
			}
		case "lease":
			h.mu.Lock()
			h.members[w][got.Browser] = got.N
			h.mu.Unlock()
			h.changed()
		case "drop":
			h.drop(got.Browser)
		}
	}
}

// changed tells everyone the browsers as they are now.
func (h *holder) changed() {
	h.mu.Lock()
	list := make([]Browser, 0, len(h.known))
	for target, b := range h.known {
		b.Leases = h.own[target]
		for _, leases := range h.members {
			b.Leases += leases[target]
		}
		list = append(list, b)
	}
	members := make([]*wire, 0, len(h.members))
	for w := range h.members {
		members = append(members, w)
	}
	h.mu.Unlock()
	h.n.learn(list)
	for _, w := range members {
		_ = w.put(note{Is: "browsers", Browsers: list})
	}
}

func (h *holder) send(target string, c Command) error {
	h.mu.Lock()
	to := h.live[target]
	h.mu.Unlock()
	if to == nil {
		return errDown(false)
	}
	if to.transport == "websocket" {
		c.Type = "command"
	}
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return to.put(data)
}

func (c *live) put(data []byte) error {
	select {
	case c.out <- data:
		return nil
	case <-c.done:
		return errDown(false)
	default:
		return errCapacity()
	}
}

func (h *holder) lease(target string, n int) {
	h.mu.Lock()
	h.own[target] = n
	h.mu.Unlock()
	h.changed()
}

// errRevoked ends the connection of a browser whose pairing was revoked.
var errRevoked = errors.New("the pairing was revoked")

// drop ends a browser's connection for good.
func (h *holder) drop(target string) {
	h.mu.Lock()
	c := h.live[target]
	delete(h.known, target)
	h.mu.Unlock()
	if c != nil && c.bye != nil {
		h.wg.Go(func() { c.bye(); c.end(errRevoked) })
	} else if c != nil {
		c.end(errRevoked)
	}
	h.changed()
}

// arrive takes a new connection of a browser in, in place of its last one. The function that it gives is called when the
// connection ends.
func (h *holder) arrive(c *live, hello incoming) (leave func()) {
	c.resumes = hello.Life != ""
	h.mu.Lock()
	old := h.live[c.target]
	h.live[c.target] = c
	b := h.known[c.target]
	b.Target, b.Transport, b.Connected = c.target, c.transport, false
	h.known[c.target] = b
	members := make([]*wire, 0, len(h.members))
	for w := range h.members {
		members = append(members, w)
	}
	h.mu.Unlock()
	if old != nil {
		old.end(errors.New("the browser connected anew"))
	}
	h.n.set.Log.Info("a browser connected", "target", c.target, "transport", c.transport)
	if c.resumes {
		h.n.resumed(c.target, hello.Pending)
		for _, w := range members {
			_ = w.put(note{Is: "resumed", Browser: c.target, IDs: hello.Pending})
		}
	}
	h.wg.Go(func() { h.probe(c) })
	return func() {
		h.mu.Lock()
		mine := h.live[c.target] == c
		if mine {
			delete(h.live, c.target)
			if b, ok := h.known[c.target]; ok {
				b.Connected = false
				h.known[c.target] = b
			}
		}
		h.mu.Unlock()
		if mine {
			h.n.set.Log.Info("a browser went", "target", c.target)
			h.changed()
		}
	}
}

// probeTime is how long an extension may take to say what it can.
const probeTime = 5 * time.Second

// probe asks an extension what it can beyond the catalog. One that does not know the question can nothing beyond.
func (h *holder) probe(c *live) {
	type told struct {
		Product   string   `json:"product"`
		Browser   string   `json:"browser"`
		Additions []string `json:"additions"`
	}
	answer := make(chan told, 1)
	_, err := h.n.start(h, c.target, "capabilities", map[string]any{}, func(r *Result, err error) {
		var t told
		if err == nil && r.Value != nil {
			_ = json.Unmarshal(r.Value, &t)
		}
		answer <- t
	})
	var t told
	if err == nil {
		wait := time.NewTimer(probeTime)
		defer wait.Stop()
		select {
		case t = <-answer:
		case <-c.done:
			return
		case <-wait.C:
		}
	}
	h.mu.Lock()
	if h.live[c.target] == c {
		b := h.known[c.target]
		b.Connected, b.Product, b.Name, b.Additions = true, t.Product, t.Browser, t.Additions
		h.known[c.target] = b
	}
	h.mu.Unlock()
	h.changed()
}

// receive takes in a message of a browser. Messages that were taken in before are left out; it gives the number to
// acknowledge, or 0.
func (h *holder) receive(target string, m incoming) int64 {
	if m.Life != "" && m.Seq > 0 {
		h.mu.Lock()
		at := h.seen[target]
		fresh := at.life != m.Life || m.Seq > at.seq
		if fresh {
			h.seen[target] = progress{m.Life, m.Seq}
		}
		h.mu.Unlock()
		if !fresh {
			return m.Seq
		}
	}
	switch {
	case m.Type == "event" && m.Event != "":
		e := Event{Browser: target, Name: m.Event, Payload: m.Payload}
		h.n.tell(e)
		for _, w := range h.all() {
			_ = w.put(note{Is: "event", Event: &e})
		}
	case m.Type == "result" || m.Type == "":
		id, ok := m.CommandID.(string)
		if !ok || id == "" {
			break
		}
		h.mu.Lock()
		of := h.asked[id]
		delete(h.asked, id)
		h.mu.Unlock()
		if of != nil {
			_ = of.put(note{Is: "result", ID: id, Result: m.Result, Error: m.Error})
		} else if !h.n.settle(id, m.Result, m.Error) {
			// It may be of a member that was there before this process held the listener.
			for _, w := range h.all() {
				_ = w.put(note{Is: "result", ID: id, Result: m.Result, Error: m.Error})
			}
		}
	}
	return m.Seq
}

func (h *holder) all() []*wire {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]*wire, 0, len(h.members))
	for w := range h.members {
		out = append(out, w)
	}
	return slices.Clip(out)
}
