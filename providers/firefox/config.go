package firefox

import (
	"context"
	"net/url"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// Config is the body of the provider's block in the config file. Its zero value is right for most.
type Config struct {
	// Profile is the one Firefox profile to use, by the instance that provider.status tells. Left out: the first that is connected.
	Profile string `json:"profile"`
	// BridgeURL is the WebSocket of the public Firefox Agent Bridge. Left out: it is not asked.
	BridgeURL string `json:"bridge_url"`
}

// configSchema is the JSON Schema of Config.
var configSchema = map[string]any{
	"type": "object", "additionalProperties": false,
	"properties": map[string]any{
		"profile":    map[string]any{"type": "string", "description": "The one Firefox profile to use, by the instance that provider.status tells. Left out: the first that is connected."},
		"bridge_url": map[string]any{"type": "string", "description": "The WebSocket of the public Firefox Agent Bridge, such as ws://127.0.0.1:8766. Left out: it is not asked."},
	},
}

func (p *Provider) configure(_ context.Context, body *structpb.Struct, host *browserv1.HostSettings) ([]*browserv1.Diagnostic, error) {
	var c Config
	found := plugins.DecodeConfig(body, &c)
	if found == nil {
		found = c.check()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.host = host
	if len(found) == 0 {
		p.config = c
	}
	return found, nil
}

// check finds what is wrong with the values.
func (c Config) check() []*browserv1.Diagnostic {
	if c.BridgeURL == "" {
		return nil
	}
	u, err := url.Parse(c.BridgeURL)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return []*browserv1.Diagnostic{plugins.ConfigError("bridge_url", "bridge_url must be a ws:// or wss:// URL")}
	}
	return nil
}
