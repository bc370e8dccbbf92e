// Package extension is the provider for the browser that a person is logged in to: a Chromium that connects through an
// extension, without a debugging port. The package bridge is the backend that browsers connect to; webext holds our extension.
//
// Our extension passes commands of the DevTools Protocol on, so the pages of its browser are driven by providers/cdp over a
// relay. An extension that has the public catalog alone is driven with those tools (basic.go), as far as they reach.
package extension

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/providers/cdp"
	"github.com/droverhq/drover/providers/extension/bridge"
)

// Version is the provider's own version.
const Version = "0.1.0"

// Provider drives browsers that connect through an extension. It is safe for concurrent use.
type Provider struct {
	srv    *plugins.Server
	inner  *plugins.Server // what drives browsers with our extension
	driver *cdp.Driver

	mu     sync.Mutex
	config Config
	host   *browserv1.HostSettings
	node   *bridge.Node
	closed bool
}

// features hold for browsers with our extension.
var features = []string{
	"extension_required", "manual_setup_required", "attach_existing_browser", "element_refs", "a11y_snapshot", "dom_snapshot", "html_snapshot",
	"full_page_screenshot", "js_eval", "network_observe", "console_observe", "file_upload", "download_observe", "dialogs", "frames", "events",
	"input_trusted", "closed_shadow_roots",
}

// New gives a server with everything that the provider can do.
func New() *plugins.Server { return newProvider().srv }

func newProvider() *Provider {
	info := plugins.Info{
		ID: "extension", Label: "Your own Chromium (browser extension)", Version: Version, Families: []string{"chromium"}, Features: features,
	}
	s := plugins.NewServer(info)
	p := &Provider{srv: s, inner: plugins.NewServer(info), host: &browserv1.HostSettings{}}
	p.driver = cdp.Over(s, p.inner, cdp.Remote{Dial: p.dial, Features: features, Explain: explain})
	for _, m := range catalog.All() {
		if m.Routed() && p.inner.Handles(m.Name) && !ownMethods[m.Name] {
			s.HandleMethod(m, func(ctx context.Context, r proto.Message) (proto.Message, error) { return p.inner.Call(ctx, m, r) })
		}
	}
	plugins.Handle(s, p.status)
	plugins.Handle(s, p.setupGuide)
	plugins.Handle(s, p.verify)
	p.registerTools(s)
	s.OnConfigure(configSchema, p.configure)
	s.OnDescribe(p.describe)
	s.OnClose(p.close)
	return p
}

// ownMethods are answered by this provider itself, or by every server.
var ownMethods = map[string]bool{
	"provider.status": true, "provider.describe": true, "provider.configure": true, "provider.setup_guide": true, "provider.verify": true,
}

// bridge gives this process's node of the bridge, which is opened at first use.
func (p *Provider) bridge(ctx context.Context) (*bridge.Node, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fault.New(fault.NotReady, "the provider is closing").Reason("draining")
	}
	if p.node == nil {
		n, err := bridge.Open(ctx, bridge.Settings{Listen: p.config.Listen, StateDir: p.config.stateDir, SeatDir: p.config.seatDir, Log: p.srv.Logger().Named("bridge")})
		if err != nil {
			return nil, err
		}
		p.node = n
	}
	return p.node, nil
}

func (p *Provider) close(ctx context.Context) {
	p.inner.Close(ctx)
	p.mu.Lock()
	n := p.node
	p.node, p.closed = nil, true
	p.mu.Unlock()
	if n != nil {
		n.Close()
	}
}
