package mcp

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/droverhq/drover/broker"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// closeWait bounds how long the end of a connection waits for its sessions to close.
const closeWait = 10 * time.Second

// maxSeats is how many sessions a client remembers by name; what is forgotten is found again by asking the broker.
const maxSeats = 256

// client is what the face keeps of one connection. Requests without a session share one of their principal, which has no
// default session: then a browser is never shared by two who did not say so.
type client struct {
	server  *server
	caller  *broker.Caller
	session string // the default session's name; "" for none
	kept    shelf
	stages  stages

	mu    sync.Mutex
	seats map[string]*seat
}

// seat is a session as a client knows it.
type seat struct {
	name, id string

	mu   sync.Mutex
	last map[string]string // the latest snapshot of a page, for what changed since
}

func (s *server) newClient(caller *broker.Caller, session string) *client {
	return &client{server: s, caller: caller, session: session, seats: map[string]*seat{}}
}

// ownName names the session of a connection that did not name one; nobody else can guess it.
func ownName() string { return "mcp-" + strings.ToLower(rand.Text()[:13]) }

func (c *client) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeWait)
	defer cancel()
	c.caller.Close(ctx)
	c.stages.close()
}

// known gives a session that was used before; nil where there is none.
func (c *client) known(name string) *seat {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seats[name]
}

func (c *client) forget(s *seat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seats[s.name] == s {
		delete(c.seats, s.name)
	}
}

func (c *client) remember(name, id string) *seat {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.seats[name]; s != nil && s.id == id {
		return s
	}
	if len(c.seats) >= maxSeats {
		for other := range c.seats {
			delete(c.seats, other)
			break
		}
	}
	s := &seat{name: name, id: id, last: map[string]string{}}
	c.seats[name] = s
	return s
}

var ensureMethod = must("session.ensure")

func must(name string) *catalog.Method {
	m, ok := catalog.Lookup(name)
	if !ok {
		panic("mcp: the protocol has no " + name)
	}
	return m
}

// ensure makes the session of a name, or comes back to it.
func (c *client) ensure(ctx context.Context, name string, ask *browserv1.EnsureSessionRequest) (*seat, *browserv1.EnsureSessionResponse, error) {
	ask.ClientSessionId = name
	hello := c.server.hello
	if ask.BrowserPreference == nil && hello.Browser != "" {
		ask.BrowserPreference = &hello.Browser
	}
	if ask.ProviderId == nil && hello.Provider != "" {
		ask.ProviderId = &hello.Provider
	}
	resp, err := c.caller.Call(ctx, ensureMethod, ask)
	if err != nil {
		return nil, nil, err
	}
	made, ok := resp.(*browserv1.EnsureSessionResponse)
	if !ok {
		return nil, nil, fault.New(fault.InternalError, "session.ensure gave a %T", resp)
	}
	return c.remember(name, made.GetSessionId()), made, nil
}

// name gives the name of the session that a call is about, and whether it was made up for it. A call that starts something
// may do so in a new session; another one has to say in which.
func (c *client) name(given string, starts bool) (name string, minted bool, err error) {
	switch {
	case given != "":
		return given, false, nil
	case c.session != "":
		return c.session, false, nil
	case starts:
		return ownName(), true, nil
	}
	return "", false, fault.New(fault.InvalidRequest, "session is missing").Field(argSession).
		Hint("this connection has no session of its own: browser_open without one makes it and tells its name; give that with every call")
}

// note keeps the id of a page's latest snapshot.
func (s *seat) note(page, snapshot string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) >= maxSeats {
		clear(s.last)
	}
	s.last[page] = snapshot
}

func (s *seat) latest(page string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[page]
}
