package bridge

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/droverhq/drover/plugins/singleton"
	"github.com/droverhq/drover/proto/fault"
)

// Settings are where a node listens and keeps its things. The zero value is right for a user's own.
type Settings struct {
	// Listen is the loopback address for browsers; DefaultListen when it is empty.
	Listen string
	// StateDir is where pairings are kept; the user's state folder when it is empty. All processes must use the same.
	StateDir string
	// SeatDir is where the processes of the user find each other; singleton.Dir when it is empty.
	SeatDir string
	// Log gets what happens; never a token, an argument or a result.
	Log hclog.Logger
}

// Browser is a browser that connects, or has connected since the holder began.
type Browser struct {
	// Target is its pairing's name.
	Target string `json:"target"`
	// Connected says that commands can be sent now.
	Connected bool `json:"connected"`
	// Transport is websocket or sse-http.
	Transport string `json:"transport"`
	// Product is how its extension calls itself, Name the browser's own name and version; both may be empty.
	Product string `json:"product"`
	Name    string `json:"name"`
	// Additions are what its extension can beyond the protocol's catalog, as it answered when it was asked; empty for an
	// extension that knows no such question.
	Additions []string `json:"additions"`
	// Leases is how many sessions use it, in all processes.
	Leases int `json:"leases"`
}

// Has says whether the browser's extension has an addition.
func (b Browser) Has(addition string) bool { return slices.Contains(b.Additions, addition) }

const (
	// downGrace is how long a browser whose connection is lost may take to come back before calls are told.
	downGrace = 1800 * time.Millisecond
	// mostPending is how many commands may wait for one browser.
	mostPending = 512
)

// Node is this process's part of the bridge. It is safe for concurrent use.
type Node struct {
	set    Settings
	store  *Store
	seat   singleton.Seat
	cancel context.CancelFunc
	wg     sync.WaitGroup

	// turn keeps what is told to callers in the order in which it came.
	turn sync.Mutex

	mu       sync.Mutex
	role     role // nil between two roles
	problem  error
	browsers map[string]Browser
	epochs   map[string]int // how often a browser came or went
	pending  map[string]*pending
	leases   map[string]int // of this process
	changed  chan struct{}
	hear     map[int]func(Event)
	heard    int
	closed   bool
}

// role is how a node reaches browsers: as the holder itself, or through it.
type role interface {
	send(target string, c Command) error
	lease(target string, n int)
	drop(target string)
}

type pending struct {
	target string
	then   func(*Result, error)
}

// Open starts a node. It holds the listener or joins the holder in the background, beyond ctx; Close ends that.
func Open(ctx context.Context, set Settings) (*Node, error) {
	set.Listen = cmp.Or(set.Listen, DefaultListen)
	set.StateDir = cmp.Or(set.StateDir, stateDir())
	set.SeatDir = cmp.Or(set.SeatDir, singleton.Dir())
	if set.Log == nil {
		set.Log = hclog.NewNullLogger()
	}
	host, port, err := net.SplitHostPort(set.Listen)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		return nil, fault.New(fault.InvalidRequest, "listen must be a loopback address with a port, not %q", set.Listen).Field("listen")
	}
	store, err := openStore(set.StateDir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n := &Node{
		set: set, store: store, seat: singleton.Seat{Dir: set.SeatDir, Name: "extension-" + port}, cancel: cancel,
		browsers: map[string]Browser{}, epochs: map[string]int{}, pending: map[string]*pending{}, leases: map[string]int{},
		changed: make(chan struct{}), hear: map[int]func(Event){},
	}
	n.wg.Go(func() {
		if err := n.seat.Run(ctx, n.hold, n.join); err != nil {
			n.fail(err)
		}
	})
	return n, nil
}

func stateDir() string {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			home = os.TempDir()
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "drover", "extension")
}

// Close leaves the bridge. Commands under way fail.
func (n *Node) Close() {
	n.cancel()
	n.wg.Wait()
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.failAll(func(*pending) bool { return true }, errDown(true))
}

// Store gives the pairings.
func (n *Node) Store() *Store { return n.store }

// URL is the listener's address for people.
func (n *Node) URL() string { return "http://" + n.set.Listen }

// Holds says whether this process holds the listener; false also while it is finding its role.
func (n *Node) Holds() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.role.(*holder)
	return ok
}

// Ready says whether the node has its role, and what keeps it from it.
func (n *Node) Ready() (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.role != nil, n.problem
}

// Changed is closed when the list of browsers, or the role, is another.
func (n *Node) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

// Browsers lists what is known, by target.
func (n *Node) Browsers() []Browser {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]Browser, 0, len(n.browsers))
	for _, b := range n.browsers {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b Browser) int { return cmp.Compare(a.Target, b.Target) })
	return out
}

// Lease notes that a session of this process begins (1) or ends (-1) to use a browser.
func (n *Node) Lease(target string, by int) {
	n.mu.Lock()
	n.leases[target] += by
	count, r := n.leases[target], n.role
	n.mu.Unlock()
	if r != nil {
		r.lease(target, count)
	}
}

// Revoke ends a browser's pairing and its connection.
func (n *Node) Revoke(target string) (bool, error) {
	ok, err := n.store.Revoke(target)
	n.mu.Lock()
	r := n.role
	n.mu.Unlock()
	if r != nil {
		r.drop(target)
	}
	return ok, err
}

// Hear has fn called with every event, in order, until the function that it gives is called. fn must not block.
func (n *Node) Hear(fn func(Event)) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heard++
	id := n.heard
	n.hear[id] = fn
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.hear, id)
	}
}

// Start sends a command and calls then, once, with what came of it, in the order in which results and events came. It
// fails at once, without calling then, when the browser is not connected. then must not block.
func (n *Node) Start(target, tool string, args any, then func(*Result, error)) (id string, err error) {
	n.mu.Lock()
	r, b := n.role, n.browsers[target]
	if n.closed || r == nil || !b.Connected {
		n.mu.Unlock()
		return "", errDown(false)
	}
	n.mu.Unlock()
	return n.start(r, target, tool, args, then)
}

func (n *Node) start(r role, target, tool string, args any, then func(*Result, error)) (string, error) {
	id := newID()
	n.mu.Lock()
	count := 0
	for _, p := range n.pending {
		if p.target == target {
			count++
		}
	}
	if count >= mostPending {
		n.mu.Unlock()
		return "", errCapacity()
	}
	n.pending[id] = &pending{target, then}
	n.mu.Unlock()
	if err := r.send(target, Command{ID: id, Tool: tool, Args: args}); err != nil {
		n.mu.Lock()
		_, open := n.pending[id]
		delete(n.pending, id)
		n.mu.Unlock()
		if open {
			return "", err
		}
	}
	return id, nil
}

// Command sends a command and waits for its result until ctx ends, whose cause it then gives. A browser that is not
// connected has two seconds to come back: then not_ready, browser_disconnected, which may be tried again. When the
// connection is lost on the way and does not come back, what the command did is not known, and it may not.
func (n *Node) Command(ctx context.Context, target, tool string, args any) (*Result, error) {
	if err := n.Wait(ctx, target, downGrace); err != nil {
		return nil, err
	}
	type outcome struct {
		r   *Result
		err error
	}
	done := make(chan outcome, 1)
	id, err := n.Start(target, tool, args, func(r *Result, err error) { done <- outcome{r, err} })
	if err != nil {
		return nil, err
	}
	select {
	case o := <-done:
		return o.r, o.err
	case <-ctx.Done():
		n.mu.Lock()
		delete(n.pending, id)
		n.mu.Unlock()
		return nil, context.Cause(ctx)
	}
}

// Wait waits, for d at the most, until a browser is connected.
func (n *Node) Wait(ctx context.Context, target string, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		n.mu.Lock()
		b, changed := n.browsers[target], n.changed
		n.mu.Unlock()
		if b.Connected {
			return nil
		}
		select {
		case <-changed:
		case <-t.C:
			return errDown(false)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func errDown(acted bool) *fault.Error {
	e := fault.New(fault.NotReady, "the browser's extension is not connected").Reason("browser_disconnected")
	if acted {
		return e.Hint("the command may have been carried out; look at the page before you send it again")
	}
	return e.Retry("same").Hint("see that the browser runs and that the extension's popup says Connected")
}

func errCapacity() *fault.Error {
	return fault.New(fault.NotReady, "too many commands wait for this browser").Reason("capacity").RetryAfter(1000)
}

func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // It never fails (crypto/rand, Go 1.24).
	return hex.EncodeToString(b[:])
}

// take gives the node a role, or none.
func (n *Node) take(r role) {
	n.mu.Lock()
	n.role = r
	if r != nil {
		n.problem = nil
	}
	n.notifyLocked()
	n.mu.Unlock()
	if r == nil {
		n.learn(nil)
	}
}

func (n *Node) fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.problem = err
	n.notifyLocked()
}

func (n *Node) notifyLocked() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// learn takes over a list of browsers. Those that are not in it any more, or not connected, get their grace.
func (n *Node) learn(list []Browser) {
	n.mu.Lock()
	next := map[string]Browser{}
	for _, b := range list {
		next[b.Target] = b
	}
	for target, was := range n.browsers {
		if is, ok := next[target]; ok && is.Connected == was.Connected {
			continue
		} else if !ok {
			was.Connected = false
			next[target] = was
		}
		n.epochs[target]++
		if epoch := n.epochs[target]; !next[target].Connected {
			time.AfterFunc(downGrace, func() { n.expire(target, epoch) })
		}
	}
	n.browsers = next
	n.notifyLocked()
	n.mu.Unlock()
}

// expire fails what waits for a browser that did not come back.
func (n *Node) expire(target string, epoch int) {
	n.mu.Lock()
	same := n.epochs[target] == epoch
	n.mu.Unlock()
	if same {
		n.failAll(func(p *pending) bool { return p.target == target }, errDown(true))
	}
}

// resumed fails what a browser's extension, after it came back, says nothing of: it was lost with its worker.
func (n *Node) resumed(target string, ids []string) {
	n.mu.Lock()
	gone := map[string]bool{}
	for id, p := range n.pending {
		gone[id] = p.target == target && !slices.Contains(ids, id)
	}
	n.mu.Unlock()
	n.failWhere(func(id string, _ *pending) bool { return gone[id] }, errDown(true))
}

func (n *Node) failAll(which func(*pending) bool, err error) {
	n.failWhere(func(_ string, p *pending) bool { return which(p) }, err)
}

func (n *Node) failWhere(which func(string, *pending) bool, err error) {
	n.mu.Lock()
	var lost []*pending
	for id, p := range n.pending {
		if which(id, p) {
			lost = append(lost, p)
			delete(n.pending, id)
		}
	}
	n.mu.Unlock()
	n.turn.Lock()
	defer n.turn.Unlock()
	for _, p := range lost {
		p.then(nil, err)
	}
}

// errTool is an error that the extension gave as one.
type errTool struct{ said string }

func (e *errTool) Error() string { return e.said }

// Refused gives what an extension said when it answered a command with an error.
func Refused(err error) (said string, ok bool) {
	var e *errTool
	if errors.As(err, &e) {
		return e.said, true
	}
	return "", false
}

// settle gives a result to its caller; false when this process has none for it.
func (n *Node) settle(id string, r *Result, said *string) bool {
	n.mu.Lock()
	p := n.pending[id]
	delete(n.pending, id)
	n.mu.Unlock()
	if p == nil {
		return false
	}
	n.turn.Lock()
	defer n.turn.Unlock()
	switch {
	case said != nil:
		p.then(nil, &errTool{*said})
	case r == nil:
		p.then(&Result{}, nil)
	default:
		p.then(r, nil)
	}
	return true
}

// tell gives an event to all who hear.
func (n *Node) tell(e Event) {
	n.mu.Lock()
	fns := make([]func(Event), 0, len(n.hear))
	for _, fn := range n.hear {
		fns = append(fns, fn)
	}
	n.mu.Unlock()
	n.turn.Lock()
	defer n.turn.Unlock()
	for _, fn := range fns {
		fn(e)
	}
}
