package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// grace is how much longer than the call's own deadline an answer is waited for: the broker answers a deadline by itself.
const grace = 10 * time.Second

// link is a connection to a daemon over its unix socket: one call after another, an envelope a line.
type link struct {
	conn net.Conn
	read *bufio.Reader
	next int
}

// answer is what a call gave: the result and the warnings as they came.
type answer struct {
	Result   json.RawMessage
	Warnings []*browserv1.Warning
}

type request struct {
	Version string         `json:"protocol_version"`
	ID      int            `json:"id"`
	Method  string         `json:"method"`
	Params  map[string]any `json:"params"`
}

type response struct {
	ID       json.RawMessage   `json:"id"`
	OK       bool              `json:"ok"`
	Result   json.RawMessage   `json:"result"`
	Warnings []json.RawMessage `json:"warnings"`
	Error    json.RawMessage   `json:"error"`
}

func newLink(conn net.Conn) *link {
	return &link{conn: conn, read: bufio.NewReaderSize(conn, 64<<10)}
}

func (l *link) close() { _ = l.conn.Close() }

// call calls one method and waits for its answer. When ctx ends the connection is closed, which cancels the call. An error
// is a fault.
func (l *link) call(ctx context.Context, m *catalog.Method, params map[string]any) (answer, error) {
	l.next++
	line, err := json.Marshal(request{Version: catalog.Version, ID: l.next, Method: m.Name, Params: params})
	if err != nil {
		return answer{}, fault.New(fault.InvalidRequest, "the params cannot be written as JSON: %v", err).Cause(err)
	}
	stop := context.AfterFunc(ctx, l.close)
	defer stop()
	if err := l.conn.SetDeadline(time.Now().Add(timeoutOf(m, params) + grace)); err != nil {
		return answer{}, l.lost(ctx, err)
	}
	if _, err := l.conn.Write(append(line, '\n')); err != nil {
		return answer{}, l.lost(ctx, err)
	}
	for {
		data, err := l.read.ReadBytes('\n')
		if err != nil {
			return answer{}, l.lost(ctx, err)
		}
		var r response
		if err := json.Unmarshal(data, &r); err != nil {
			return answer{}, fault.New(fault.InternalError, "the daemon sent what is no envelope: %v", err).Cause(err)
		}
		if string(bytes.TrimSpace(r.ID)) == fmt.Sprint(l.next) {
			return r.answer()
		}
	}
}

func (l *link) lost(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fault.New(fault.NotReady, "the call was cancelled: %v", cause).Reason("cancelled").Cause(cause)
	}
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return fault.New(fault.NotReady, "the daemon did not answer in time").Reason("deadline_exceeded").Cause(err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return fault.New(fault.BrowserNotRunning, "the daemon ended during the call").Reason("provider_exited").
			Hint("try again; its log says why").Cause(err)
	}
	return fault.New(fault.InternalError, "the connection to the daemon: %v", err).Cause(err)
}

func (r *response) answer() (answer, error) {
	if !r.OK {
		var p browserv1.Error
		if err := wire.Unmarshal(r.Error, &p); err != nil {
			return answer{}, fault.New(fault.InternalError, "the daemon sent an error that cannot be read: %s", r.Error).Cause(err)
		}
		return answer{}, fault.FromProto(&p)
	}
	out := answer{Result: r.Result}
	for _, data := range r.Warnings {
		var w browserv1.Warning
		if err := wire.Unmarshal(data, &w); err != nil {
			return answer{}, fault.New(fault.InternalError, "the daemon sent a warning that cannot be read: %v", err).Cause(err)
		}
		out.Warnings = append(out.Warnings, &w)
	}
	return out, nil
}

// timeoutOf gives the deadline of a call: its timeout_ms, or the method's default.
func timeoutOf(m *catalog.Method, params map[string]any) time.Duration {
	switch ms := params["timeout_ms"].(type) {
	case int64:
		return time.Duration(ms) * time.Millisecond
	case json.Number:
		if n, err := ms.Int64(); err == nil {
			return time.Duration(n) * time.Millisecond
		}
	}
	return catalog.Timeout(m, m.NewRequest())
}

// must looks a method up that this program names itself.
func must(name string) *catalog.Method {
	m, ok := catalog.Lookup(name)
	if !ok {
		panic("no method " + name)
	}
	return m
}

// call calls a method that this program names itself and reads its result.
func call[T interface {
	*M
	proto.Message
}, M any](ctx context.Context, l *link, name string, params map[string]any) (T, error) {
	ans, err := l.call(ctx, must(name), params)
	if err != nil {
		return nil, err
	}
	out := T(new(M))
	if err := wire.Unmarshal(ans.Result, out); err != nil {
		return nil, fault.New(fault.InternalError, "the result of %s cannot be read: %v", name, err).Cause(err)
	}
	return out, nil
}
