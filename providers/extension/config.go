package extension

import (
	"context"
	"net"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/providers/extension/bridge"
)

// Config is the body of the provider's block in the config file. Its zero value is right for most.
type Config struct {
	// Listen is the loopback address that browsers connect to. Left out: 127.0.0.1:7334.
	Listen string `json:"listen"`
	// Target is the one browser that this instance uses, by the name that provider.describe tells. Left out: any.
	Target string `json:"target"`

	stateDir, seatDir string // for tests
}

// configSchema is the JSON Schema of Config.
var configSchema = map[string]any{
	"type": "object", "additionalProperties": false,
	"properties": map[string]any{
		"listen": map[string]any{"type": "string", "default": bridge.DefaultListen, "description": "The loopback address that browsers connect to; all of a user's brokers share it."},
		"target": map[string]any{"type": "string", "description": "The one browser that this instance uses, by its name in provider.describe. Left out: any that is connected."},
	},
}

func (p *Provider) configure(ctx context.Context, body *structpb.Struct, host *browserv1.HostSettings) ([]*browserv1.Diagnostic, error) {
	var c Config
	found := plugins.DecodeConfig(body, &c)
	if found == nil && c.Listen != "" {
		name, _, err := net.SplitHostPort(c.Listen)
		if ip := net.ParseIP(name); err != nil || ip == nil || !ip.IsLoopback() {
			found = append(found, plugins.ConfigError("listen", "listen must be a loopback address with a port, such as %s, not %q", bridge.DefaultListen, c.Listen))
		}
	}
	p.mu.Lock()
	p.host = host
	if len(found) == 0 {
		c.stateDir, c.seatDir = p.config.stateDir, p.config.seatDir
		p.config = c
	}
	p.mu.Unlock()
	p.driver.Configure(host)
	if len(found) > 0 {
		return found, nil
	}
	if _, err := p.bridge(ctx); err != nil { // it is open early, so that browsers find it
		return nil, err
	}
	return nil, nil
}
