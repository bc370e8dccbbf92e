package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/droverhq/drover/broker"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// controlWait is how long a control request may take; drain and restart say their own.
const controlWait = 5 * time.Second

// Control requests. They are about the daemon itself and its processes, so they are no methods of the protocol: they go
// over a second socket beside the first, one JSON line there and one back.
const (
	doInfo    = "info"
	doRetire  = "retire"  // end, unless there are sessions
	doDrain   = "drain"   // a provider
	doRestart = "restart" // a provider
	doExplain = "explain" // where a call would go
	doReload  = "reload"  // the config file
	doDiff    = "diff"    // what a reload would change
)

// order is a control request.
type order struct {
	Do        string `json:"do"`
	Provider  string `json:"provider_id,omitempty"`
	TimeoutMS int64  `json:"timeout_ms,omitempty"`
	// Of explain.
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	// Client is who would call, with labels; Without are providers that are taken for unavailable.
	Client  string   `json:"client,omitempty"`
	Labels  []string `json:"labels,omitempty"`
	Without []string `json:"without,omitempty"`

	named bool // the question is about a session that the command line names
}

// reply is the answer to a control request.
type reply struct {
	Info  *daemonInfo         `json:"info,omitempty"`
	Route *broker.Explanation `json:"route,omitempty"`
	Diff  []broker.Difference `json:"diff,omitempty"`
	Error json.RawMessage     `json:"error,omitempty"`
}

// daemonInfo is what a daemon says of itself.
type daemonInfo struct {
	PID        int       `json:"pid"`
	Version    string    `json:"version"`
	Binary     binary    `json:"binary"`
	Config     string    `json:"config"`
	ConfigHash string    `json:"config_hash"`
	HTTP       string    `json:"http"`
	Socket     string    `json:"socket"`
	TokenFile  string    `json:"token_file"`
	Sessions   int       `json:"sessions"`
	Uploads    string    `json:"uploads"`     // where a command puts what is uploaded
	UploadDirs []string  `json:"upload_dirs"` // where the config says that files may come from
	Started    time.Time `json:"started_at"`
	Auto       bool      `json:"auto"`
}

// binary tells one build of a program from another.
type binary struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified_at"`
}

func ownBinary() binary {
	exe, err := os.Executable()
	if err != nil {
		return binary{}
	}
	info, err := os.Stat(exe)
	if err != nil {
		return binary{Path: exe}
	}
	return binary{Path: exe, Size: info.Size(), Modified: info.ModTime()}
}

// differs says that the file at the same path has been replaced since.
func (b binary) differs(other binary) bool {
	return b.Path == other.Path && b.Path != "" && (b.Size != other.Size || !b.Modified.Equal(other.Modified))
}

func controlPath(socket string) string { return socket + ".ctl" }

// command sends one control request; errNoDaemon when nobody listens.
func command(ctx context.Context, socket string, o order) (reply, error) {
	wait := controlWait
	if o.TimeoutMS > 0 {
		wait += time.Duration(o.TimeoutMS) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	conn, err := dial(ctx, controlPath(socket))
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	line, err := json.Marshal(o)
	if err != nil {
		return reply{}, err
	}
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return reply{}, noAnswer(ctx, err)
	}
	var r reply
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		return reply{}, noAnswer(ctx, err)
	}
	if len(r.Error) > 0 {
		var p browserv1.Error
		if err := wire.Unmarshal(r.Error, &p); err != nil {
			return reply{}, fault.New(fault.InternalError, "the daemon's answer cannot be read: %s", r.Error).Cause(err)
		}
		return reply{}, fault.FromProto(&p)
	}
	return r, nil
}

// errNoDaemon says that no daemon listens at the socket.
var errNoDaemon = errors.New("no daemon is running")

func dial(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, errNoDaemon
	default:
		return nil, fault.New(fault.NotReady, "the socket %s cannot be reached: %v", path, err).Cause(err)
	}
}

// noAnswer is a daemon that went while it was asked, or that does not answer.
func noAnswer(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fault.New(fault.NotReady, "the daemon does not answer on its control socket").Reason("deadline_exceeded").Cause(err)
	}
	return errNoDaemon
}

// controller answers control requests until its listener is closed.
type controller struct {
	listener net.Listener
	carry    func(ctx context.Context, o order) (reply, error)
	work     sync.WaitGroup
}

// serve answers until the listener is closed, and then waits for the requests under way.
func (c *controller) serve(ctx context.Context) {
	defer c.work.Wait()
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.work.Go(func() { c.answer(ctx, conn) })
	}
}

func (c *controller) answer(ctx context.Context, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetReadDeadline(time.Now().Add(controlWait))
	line, err := bufio.NewReaderSize(conn, 4<<10).ReadBytes('\n')
	if err != nil {
		return
	}
	var o order
	var r reply
	if err = json.Unmarshal(line, &o); err == nil {
		r, err = c.carry(ctx, o)
	}
	if err != nil {
		if r.Error, err = wire.Marshal(fault.From(err).Proto()); err != nil {
			return
		}
	}
	if data, err := json.Marshal(r); err == nil {
		_, _ = conn.Write(append(data, '\n'))
	}
}
