package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/face/door"
)

// Options make a face. Broker is needed, the rest has good zero values.
type Options struct {
	Broker *broker.Broker
	// Version is the program's version, which clients are told.
	Version string
	// Profiles are the tools that a client gets that asks for none; nil for DefaultProfile.
	Profiles []string
	// TextResults puts results into the text, and gives no structured content, for clients that show their model the text
	// alone.
	TextResults bool
	// Idle is how long an MCP session over HTTP may be unused before it ends; 0 for 30 minutes.
	Idle time.Duration
	// BodyWait is how long the body of an HTTP request may take; 0 for 20 seconds.
	BodyWait time.Duration
	// Origins are origins of web pages that may call over HTTP, as the door knows them.
	Origins []string
	Logger  hclog.Logger
}

// Face serves MCP. All its methods may be called concurrently.
type Face struct {
	o   Options
	ctx context.Context // ends with the face
	end context.CancelCauseFunc

	mu      sync.Mutex
	servers map[key]*server
	closed  bool
	posts   door.Inflight // requests over HTTP until they are answered
}

// key tells the servers of HTTP clients apart.
type key struct {
	principal string
	profiles  string
}

// New makes a face. Close ends it.
func New(o Options) *Face {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if len(o.Profiles) == 0 {
		o.Profiles = []string{DefaultProfile}
	}
	if o.BodyWait <= 0 {
		o.BodyWait = 20 * time.Second
	}
	if o.Idle <= 0 {
		o.Idle = 30 * time.Minute
	}
	f := &Face{o: o, servers: map[key]*server{}}
	f.ctx, f.end = context.WithCancelCause(context.Background())
	return f
}

// Hello is what a client of a stream wants.
type Hello struct {
	// Session is the name of its default session; empty for one of its own that nobody can guess.
	Session string `json:"session,omitempty"`
	// Profiles are the tools it gets; empty for the face's.
	Profiles []string `json:"profiles,omitempty"`
	// Text puts results into the text alone.
	Text bool `json:"text,omitempty"`
	// Browser and Provider are asked for where a session is made without saying so.
	Browser  string `json:"browser,omitempty"`
	Provider string `json:"provider,omitempty"`
}

// Serve answers one client on a pair of streams until the input ends or ctx does. Calls that were read are finished at the
// end of the input, within finishWait; those that are not, and all of them when ctx ends, are answered with shutting_down.
// The caller is closed at the end, and with it what it is bound to.
func (f *Face) Serve(ctx context.Context, caller *broker.Caller, hello Hello, in io.ReadCloser, out io.WriteCloser) error {
	if len(hello.Profiles) == 0 {
		hello.Profiles = f.o.Profiles
	}
	if hello.Session == "" {
		hello.Session = ownName()
	}
	s := f.newServer(caller.Principal, hello)
	s.clients[""] = s.newClient(caller, hello.Session)
	defer s.close(context.WithoutCancel(ctx))
	var ending sync.WaitGroup
	defer ending.Wait()
	run, cut := context.WithCancel(context.WithoutCancel(ctx)) // the SDK answers nothing any more when its context ends
	defer cut()
	t := &finishing{Transport: &mcp.IOTransport{Reader: in, Writer: out}, stop: func() { s.end(broker.ShuttingDown()) }}
	ending.Go(func() {
		defer cut()
		select {
		case <-run.Done():
		case <-ctx.Done():
			t.stop()
			t.settle()
		}
	})
	err := s.mcp.Run(run, t)
	if ctx.Err() != nil || slices.ContainsFunc(ends, func(end error) bool { return errors.Is(err, end) }) {
		return nil
	}
	return err
}

// ends are the errors of a client that has gone.
var ends = []error{io.EOF, io.ErrClosedPipe, net.ErrClosed, mcp.ErrConnectionClosed, syscall.EPIPE, syscall.ECONNRESET}

// helloLimit and helloWait bound the first line of a stream.
const (
	helloLimit = 4 << 10
	helloWait  = 10 * time.Second
)

// ServeConn answers one client on a connection whose first line is its Hello.
func (f *Face) ServeConn(ctx context.Context, caller *broker.Caller, conn net.Conn) error {
	said := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		select {
		case <-said:
			_ = conn.SetDeadline(time.Now().Add(2 * answerWait))
		default:
			_ = conn.Close()
		}
	})()
	in := bufio.NewReaderSize(conn, helloLimit)
	_ = conn.SetReadDeadline(time.Now().Add(helloWait))
	line, err := in.ReadSlice('\n')
	var hello Hello
	if err == nil {
		err = json.Unmarshal(line, &hello)
	}
	if err == nil {
		hello.Profiles, err = ParseProfiles(strings.Join(hello.Profiles, ","))
	}
	if err != nil {
		caller.Close(ctx)
		return fmt.Errorf("the first line of an MCP stream: %w", err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	close(said)
	return f.Serve(ctx, caller, hello, struct {
		io.Reader
		io.Closer
	}{in, conn}, conn)
}

// server gives the server of an HTTP client, and makes it at the first request; nil when the face is closed.
func (f *Face) server(who broker.Principal, profiles []string) *server {
	k := key{who.ID, strings.Join(profiles, ",")}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.servers[k]
	if f.closed {
		return nil
	}
	if s == nil {
		s = f.newServer(who, Hello{Profiles: profiles, Text: f.o.TextResults})
		s.clients[""] = s.newClient(f.o.Broker.Connect(who, broker.Unbound), "")
		f.servers[k] = s
	}
	return s
}

// Refresh lists tools and prompts anew, for a policy that changed; clients are told what is different.
func (f *Face) Refresh() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.servers {
		s.refresh(f.ctx)
	}
}

// Close ends every MCP session of the HTTP clients: calls under way are finished, at most until ctx ends, and browser
// sessions that are bound to one are closed.
func (f *Face) Close(ctx context.Context) {
	f.mu.Lock()
	servers := f.servers
	f.servers, f.closed = nil, true
	f.mu.Unlock()
	select {
	case <-f.posts.Idle():
	case <-ctx.Done():
	}
	var all sync.WaitGroup
	for _, s := range servers {
		all.Go(func() { s.close(ctx) })
	}
	all.Wait()
	f.end(broker.ShuttingDown())
}
