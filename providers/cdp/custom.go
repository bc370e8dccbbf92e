package cdp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/chromedp/cdproto"
	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

var sendSchema = map[string]any{
	"type": "object", "additionalProperties": false, "required": []any{"method"},
	"properties": map[string]any{
		"method": map[string]any{"type": "string", "description": "The command, such as Page.getLayoutMetrics."},
		"params": map[string]any{"type": "object", "description": "Its parameters."},
		"target": map[string]any{"type": "string", "enum": []any{"page", "browser"}, "default": "page", "description": "Where it is sent."},
	},
}

var eventsSchema = map[string]any{
	"type": "object", "additionalProperties": false, "required": []any{"methods"},
	"properties": map[string]any{
		"methods": map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "minItems": 1, "description": "Events, such as Network.webSocketCreated; Domain.* for a whole domain. Switch the domain on with cdp.send."},
		"wait_ms": map[string]any{"type": "integer", "minimum": 0, "maximum": 30000, "default": 0, "description": "How long to wait for the first one."},
		"limit":   map[string]any{"type": "integer", "minimum": 1, "default": 100},
	},
}

// params reads a custom method's params strictly.
func params(r *browserv1.CustomRequest, into any) error {
	data, err := json.Marshal(r.GetParams().AsMap())
	if err != nil {
		return err
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fault.New(fault.InvalidRequest, "the params of %s are wrong: %v", r.GetMethod(), err).Field("params").
			Hint("provider.describe has their schema")
	}
	return nil
}

// refusedCommand says which commands would take the browser away from under its sessions, or out of their isolation.
func refusedCommand(method string) bool {
	switch method {
	case "Browser.close", "Browser.crash", "Browser.crashGpuProcess", "Target.setAutoAttach", "Target.disposeBrowserContext",
		"Target.detachFromTarget", "Target.exposeDevToolsProtocol", "Target.setRemoteLocations":
		return true
	}
	return false
}

// send is cdp.send.
func (p *Provider) send(ctx context.Context, r *browserv1.CustomRequest) (*structpb.Value, error) {
	var in struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Target string          `json:"target"`
	}
	if err := params(r, &in); err != nil {
		return nil, err
	}
	switch {
	case in.Method == "":
		return nil, fault.New(fault.InvalidRequest, "method is missing").Field("params.method")
	case in.Target != "" && in.Target != "page" && in.Target != "browser":
		return nil, fault.New(fault.InvalidRequest, "target must be page or browser").Field("params.target")
	case refusedCommand(in.Method):
		return nil, fault.New(fault.PermissionDenied, "%s would take the browser from its sessions", in.Method).Reason("command_refused").
			Hint("use session.close or tab.close")
	}
	if len(in.Params) == 0 {
		in.Params = json.RawMessage("{}")
	}
	if r.GetSessionId() == "" {
		return nil, fault.New(fault.InvalidRequest, "cdp.send needs a session").Field("session_id").Hint("call session.ensure first")
	}
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	var out jsonv2.Value
	if in.Target == "browser" {
		if err = s.b.core.Call(ctx, in.Method, jsonv2.Value(in.Params), &out); err != nil {
			err = s.refused(ctx, err)
		}
		return commandResult(in.Method, out, err)
	}
	pg, err := s.page(r.GetPageId())
	if err != nil {
		return nil, err
	}
	ctx, done, err := pg.watch(ctx, !strings.HasPrefix(in.Method, "Page.handleJavaScriptDialog"))
	if err != nil {
		return nil, err
	}
	defer done()
	if err = pg.ch.Call(ctx, in.Method, jsonv2.Value(in.Params), &out); err != nil {
		err = pg.explain(ctx, err)
	}
	return commandResult(in.Method, out, err)
}

// commandResult gives a command's result; the browser's own refusal is the caller's mistake.
func commandResult(method string, out jsonv2.Value, err error) (*structpb.Value, error) {
	var refused *cdproto.Error
	if errors.As(err, &refused) {
		return nil, fault.New(fault.InvalidRequest, "the browser refused %s: %s", method, refused.Message).Reason("command_failed").With("cdp_code", refused.Code)
	}
	if err != nil {
		return nil, err
	}
	return wire.ParseValue(out)
}

// collector keeps events of a page for cdp.events, guarded by its browser's mu.
type collector struct {
	methods []string
	list    []any
	dropped int
}

const maxEvents = 1000

func (c *collector) takes(method string) bool {
	for _, m := range c.methods {
		if domain, all := strings.CutSuffix(m, "*"); m == method || all && strings.HasPrefix(method, domain) {
			return true
		}
	}
	return false
}

// collect gives an event to the page's collector, where it has one.
func (p *page) collect(m *cdproto.Message) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	c := p.collected
	if c == nil || !c.takes(string(m.Method)) {
		return
	}
	var v any
	if json.Unmarshal(m.Params, &v) != nil {
		return
	}
	c.list = append(c.list, map[string]any{"method": string(m.Method), "params": v})
	if len(c.list) > maxEvents {
		c.list = c.list[1:]
		c.dropped++
	}
	p.notifyLocked()
}

// events is cdp.events.
func (p *Provider) events(ctx context.Context, r *browserv1.CustomRequest) (*structpb.Value, error) {
	in := struct {
		Methods []string `json:"methods"`
		WaitMS  int      `json:"wait_ms"`
		Limit   int      `json:"limit"`
	}{Limit: 100}
	if err := params(r, &in); err != nil {
		return nil, err
	}
	if len(in.Methods) == 0 || in.WaitMS < 0 || in.WaitMS > 30000 || in.Limit < 1 {
		return nil, fault.New(fault.InvalidRequest, "methods must not be empty, wait_ms at most 30000 and limit at least 1").Field("params")
	}
	_, pg, err := p.find(r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	ctx, done, err := pg.watch(ctx, false)
	if err != nil {
		return nil, err
	}
	defer done()
	wait, cancel := context.WithTimeout(ctx, time.Duration(in.WaitMS)*time.Millisecond)
	defer cancel()
	var out map[string]any
	err = pg.until(wait, func() bool {
		c := pg.collected
		if c == nil {
			c = &collector{}
			pg.collected = c
		}
		c.methods = in.Methods
		n := min(len(c.list), in.Limit)
		out = map[string]any{"events": append([]any{}, c.list[:n]...), "dropped": c.dropped}
		if n > 0 || in.WaitMS == 0 {
			c.list, c.dropped = c.list[n:], 0
			return true
		}
		return false
	})
	if err != nil && ctx.Err() != nil {
		return nil, pg.explain(ctx, err)
	}
	return wire.ToValue(out)
}
