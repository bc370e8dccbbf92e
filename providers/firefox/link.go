package firefox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/droverhq/drover/providers/firefox/endpoint"
	"github.com/droverhq/drover/providers/firefox/native"
	"github.com/droverhq/drover/providers/firefox/relay"
)

// hello is what an add-on says of itself.
type hello struct {
	Kind     string `json:"kind"` // drover or public
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
	Engine   string `json:"engine"`   // the digest of the engine that it brought along
	Instance string `json:"instance"` // stays with the profile
	Browser  string `json:"browser"`
	Release  string `json:"browser_version"`
	Hosts    bool   `json:"hosts"` // it may act on all addresses
}

// refusal is an answer that says no.
type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r *refusal) Error() string { return r.Code + ": " + r.Message }

// refused says whether an error is a refusal with one of the codes.
func refused(err error, codes ...string) bool {
	var r *refusal
	if !errors.As(err, &r) {
		return false
	}
	for _, c := range codes {
		if r.Code == c {
			return true
		}
	}
	return false
}

// errLinkDown is a connection to a host that ended.
var errLinkDown = errors.New("the connection to the native host is down")

// frame is everything that a host sends.
type frame struct {
	ID     *int64          `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *refusal        `json:"error"`
	Event  string          `json:"event"`
	Params json.RawMessage `json:"params"`
}

// link is a connection to one native host, which is one Firefox profile's. It is safe for concurrent use.
type link struct {
	conn  net.Conn
	path  string
	hello hello
	event func(name string, params json.RawMessage)

	out sync.Mutex
	mu  sync.Mutex
	// waiting are the requests under way; nil when the link is down.
	waiting map[int64]chan frame
	last    int64
	gone    chan struct{} // closed when the connection has ended
	wg      sync.WaitGroup
}

// helloTime is how long a host may take to say what its add-on is.
const helloTime = 2 * time.Second

// connect connects to the host at a socket. event is called on the reader's goroutine, in order, and must not block.
func connect(ctx context.Context, path string, event func(string, json.RawMessage)) (*link, error) {
	dial := endpoint.Dial
	if strings.Contains(path, "://") {
		dial = dialBridge
	}
	conn, err := dial(ctx, path)
	if err != nil {
		return nil, err
	}
	l := &link{conn: conn, path: path, event: event, waiting: map[int64]chan frame{}, gone: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.SetReadDeadline(time.Now().Add(helloTime)); err != nil {
		conn.Close()
		return nil, err
	}
	data, err := native.Read(conn, native.MaxMessage)
	var first frame
	if err == nil {
		err = json.Unmarshal(data, &first)
	}
	if err == nil && first.Event != "hello" {
		err = errors.New("it did not say what it is")
	}
	if err == nil {
		err = json.Unmarshal(first.Params, &l.hello)
	}
	if err == nil && l.hello.Protocol != relay.Protocol {
		err = fmt.Errorf("it speaks version %d of the protocol, not %d", l.hello.Protocol, relay.Protocol)
	}
	if err == nil {
		err = conn.SetReadDeadline(time.Time{})
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("the native host at %s: %w", path, err)
	}
	l.wg.Go(l.read)
	return l, nil
}

// read takes what the host sends until it is gone.
func (l *link) read() {
	defer close(l.gone)
	for {
		data, err := native.Read(l.conn, native.MaxMessage)
		if errors.Is(err, native.ErrNotText) {
			continue
		}
		if err != nil {
			break
		}
		var f frame
		if json.Unmarshal(data, &f) != nil {
			continue
		}
		if f.ID == nil {
			if l.event != nil && f.Event != "" {
				l.event(f.Event, f.Params)
			}
			continue
		}
		l.mu.Lock()
		ch := l.waiting[*f.ID]
		delete(l.waiting, *f.ID)
		l.mu.Unlock()
		if ch != nil {
			ch <- f // It has room for the one answer.
		}
	}
	l.conn.Close()
	l.mu.Lock()
	l.waiting = nil
	l.mu.Unlock()
}

// down says whether the connection has ended.
func (l *link) down() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// close ends the connection, and with it what the add-on has open for it.
func (l *link) close() {
	l.conn.Close()
	l.wg.Wait()
}

// request asks the add-on and reads its answer into result, which may be nil. It ends with the cause of ctx, with a *refusal,
// or with errLinkDown.
func (l *link) request(ctx context.Context, method string, params, result any) error {
	ch := make(chan frame, 1)
	l.mu.Lock()
	if l.waiting == nil {
		l.mu.Unlock()
		return errLinkDown
	}
	l.last++
	id := l.last
	l.waiting[id] = ch
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.waiting, id)
		l.mu.Unlock()
	}()
	data, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	if err != nil {
		return fmt.Errorf("writing %s: %w", method, err)
	}
	if err := l.write(ctx, data); err != nil {
		return err
	}
	select {
	case f := <-ch:
		return f.into(method, result)
	case <-l.gone:
		select { // The answer may have been the last thing that came.
		case f := <-ch:
			return f.into(method, result)
		default:
			return errLinkDown
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f frame) into(method string, result any) error {
	if f.Error != nil {
		return f.Error
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(f.Result, result); err != nil {
		return fmt.Errorf("the answer to %s: %w", method, err)
	}
	return nil
}

// writeTime is how long a host may take to read what it is sent.
const writeTime = 10 * time.Second

func (l *link) write(ctx context.Context, data []byte) error {
	if len(data) > native.MaxMessage {
		return &refusal{Code: "too_large", Message: "the request is too large"}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l.out.Lock()
	defer l.out.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return errLinkDown
	}
	if err := native.Write(l.conn, data, native.MaxMessage); err != nil {
		l.conn.Close() // Half a frame may be out, so nothing can follow.
		return errLinkDown
	}
	return nil
}
