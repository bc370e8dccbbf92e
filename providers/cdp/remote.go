package cdp

import (
	"context"
	"errors"

	"github.com/chromedp/cdproto"
	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/chromedp"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Wire is a browser that another provider reaches by means of its own: whole messages of the DevTools Protocol, as JSON and
// with flat sessions, as they would go over a browser's own WebSocket. It is the person's browser: there is one context,
// and only pages that the session opened, or that those opened, are seen.
type Wire interface {
	// Read gives the next message. It fails for good when the browser is lost.
	Read(ctx context.Context) ([]byte, error)
	// Write sends a message. It may be called while Read waits, by one goroutine at a time.
	Write(ctx context.Context, message []byte) error
	// Close ends the connection, and Read with it. It closes no page.
	Close() error
}

// Remote is what a provider gives to have its browsers driven as this one drives Chromium.
type Remote struct {
	// Dial connects to the browser for a new session, and gives its label and what has to be told. The wire belongs to that
	// session alone and is closed with it.
	Dial func(ctx context.Context, r *browserv1.EnsureSessionRequest) (Wire, string, []*browserv1.Warning, error)
	// Features are those of such sessions.
	Features []string
	// Explain gives a fault for an error that the wire answered a command with, or nil.
	Explain func(code int64, message string) *fault.Error
}

// Over makes the methods of sessions and pages for browsers that another provider reaches, and registers them with into,
// whose closing ends them. s is that provider's own server: it tells the events, and gives the name. How the provider is set
// up, and its status, stay its own.
func Over(s, into *plugins.Server, r Remote) *Driver {
	p := newProvider(s)
	p.remote = &r
	p.registerPages(into)
	into.OnClose(p.close)
	return &Driver{p}
}

// Driver is what Over made.
type Driver struct{ p *Provider }

// Configure takes what the host told the provider, and sweeps what an earlier process left behind.
func (d *Driver) Configure(host *browserv1.HostSettings) {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	d.p.host = host
	if dir := host.GetRunDir(); dir != "" {
		sweep(dir)
	}
}

// Sessions gives how many sessions there are.
func (d *Driver) Sessions() int {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	return len(d.p.sessions)
}

// Page gives the wire of a session and the target id of one of its pages, the active one when page is "".
func (d *Driver) Page(session, page string) (Wire, string, error) {
	s, pg, err := d.p.find(session, page)
	if err != nil {
		return nil, "", err
	}
	conn, ok := s.b.link.inner.(wireConn)
	if !ok {
		return nil, "", fault.New(fault.InternalError, "the session has no wire")
	}
	return conn.wire, string(pg.target), nil
}

// wireConn is a wire as chromedp wants a connection.
type wireConn struct{ wire Wire }

var _ chromedp.Transport = wireConn{}

func (c wireConn) Read(ctx context.Context, m *cdproto.Message) error {
	data, err := c.wire.Read(ctx)
	if err != nil {
		return err
	}
	return jsonv2.Unmarshal(data, m, chromedp.DefaultUnmarshalOptions)
}

func (c wireConn) Write(ctx context.Context, m *cdproto.Message) error {
	data, err := jsonv2.Marshal(m, chromedp.DefaultMarshalOptions)
	if err != nil {
		return err
	}
	return c.wire.Write(ctx, data)
}

func (c wireConn) Close() error { return c.wire.Close() }

// dial connects to a remote browser for one session.
func (p *Provider) dial(ctx context.Context, r *browserv1.EnsureSessionRequest, warnings *[]*browserv1.Warning) (*browser, error) {
	wire, label, told, err := p.remote.Dial(ctx, r)
	if err != nil {
		return nil, err
	}
	b, err := p.connect(wireConn{wire}, product{label: label, name: "chromium"}, nil, nil) //nolint:contextcheck // the connection outlives the call that makes it
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.browsers[b] = struct{}{}
	p.mu.Unlock()
	if err := b.begin(ctx); err != nil {
		b.close(context.WithoutCancel(ctx))
		return nil, p.told(err, fault.New(fault.NotReady, "the browser does not answer").Reason("attach_failed").Retry("same").Cause(err))
	}
	b.product.label = label
	*warnings = append(*warnings, told...)
	return b, nil
}

// told gives the fault that a remote browser's error stands for, or other where there is none.
func (p *Provider) told(err error, other *fault.Error) *fault.Error {
	var said *cdproto.Error
	if p.remote != nil && p.remote.Explain != nil && errors.As(err, &said) {
		if f := p.remote.Explain(said.Code, said.Message); f != nil {
			return f.Cause(err)
		}
	}
	return other
}

// features gives what holds for sessions of this provider.
func (p *Provider) features() []string {
	if p.remote != nil {
		return p.remote.Features
	}
	return features
}
