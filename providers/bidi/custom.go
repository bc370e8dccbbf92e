package bidi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins/shelf"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

var sendSchema = map[string]any{
	"type": "object", "additionalProperties": false, "required": []any{"method"},
	"properties": map[string]any{
		"method": map[string]any{"type": "string", "description": "The command, such as browsingContext.print."},
		"params": map[string]any{"type": "object", "description": "Its parameters. Where the command takes a context and none is given, it is the page's."},
	},
}

var installSchema = map[string]any{
	"type": "object", "additionalProperties": false,
	"properties": map[string]any{
		"path":    map[string]any{"type": "string", "description": "The extension's folder, or its archive (.xpi, .zip), inside the folders that files may be taken from."},
		"archive": map[string]any{"type": "string", "description": "Or the archive itself, base64."},
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

// pageModules are the modules whose commands work on one browsing context; a command of another is about the browser.
var pageModules = []string{"browsingContext.", "input.", "script."}

// refusedCommand says which commands would take the browser away from under its sessions, or out of their isolation.
func refusedCommand(method string) bool {
	switch method {
	case "session.end", "session.new", "session.unsubscribe", "browser.close", "browser.removeUserContext", "browsingContext.create", "browsingContext.getTree":
		return true
	}
	return false
}

// send is bidi.send.
func (p *Provider) send(ctx context.Context, r *browserv1.CustomRequest) (*structpb.Value, error) {
	var in struct {
		Method string         `json:"method"`
		Params map[string]any `json:"params"`
	}
	if err := params(r, &in); err != nil {
		return nil, err
	}
	switch {
	case in.Method == "":
		return nil, fault.New(fault.InvalidRequest, "method is missing").Field("params.method")
	case refusedCommand(in.Method):
		return nil, fault.New(fault.PermissionDenied, "%s would reach other sessions of the browser", in.Method).Reason("command_refused").
			Hint("use session.close, tab.new or tab.list")
	case r.GetSessionId() == "":
		return nil, fault.New(fault.InvalidRequest, "bidi.send needs a session").Field("session_id").Hint("call session.ensure first")
	}
	s, pg, err := p.find(r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	if in.Params == nil {
		in.Params = map[string]any{}
	}
	if err := s.scope(ctx, pg, in.Method, in.Params); err != nil {
		return nil, err
	}
	ctx, done, err := pg.watch(ctx, in.Method != contextPrompt.name)
	if err != nil {
		return nil, err
	}
	defer done()
	var out json.RawMessage
	err = s.b.conn.call(ctx, in.Method, in.Params, &out)
	var said *refusal
	if errors.As(err, &said) {
		return nil, fault.New(fault.InvalidRequest, "the browser refused %s: %s", in.Method, said.Message).Reason("command_failed").With("bidi_error", said.Code)
	}
	if err != nil {
		return nil, pg.explain(ctx, err)
	}
	return wire.ParseValue(out)
}

// scope fills in the page's context where a command needs one, and refuses contexts and user contexts of others.
func (s *session) scope(ctx context.Context, pg *page, method string, params map[string]any) error {
	switch method {
	case cdpSession.name:
		if params["context"] == nil {
			params["context"] = pg.context
		}
	case cdpSend.name:
		if params["session"] == nil { // Without one it would go to the browser, and to all of its sessions.
			own, err := pg.devtoolsSession(ctx)
			if err != nil {
				return pg.explain(ctx, err)
			}
			params["session"] = own
		}
	}
	for _, module := range pageModules {
		if !strings.HasPrefix(method, module) {
			continue
		}
		switch method {
		case "script.evaluate", "script.callFunction", "script.disown":
			if params["target"] == nil {
				params["target"] = map[string]any{"context": pg.context}
			}
		case "script.addPreloadScript":
			if params["contexts"] == nil && params["userContexts"] == nil {
				params["contexts"] = []any{pg.context}
			}
		case "script.removePreloadScript", "script.getRealms":
		default:
			if params["context"] == nil && params["userContexts"] == nil {
				params["context"] = pg.context
			}
		}
	}
	return s.ownOnly(params)
}

// ownOnly refuses params that name another session's contexts.
func (s *session) ownOnly(v any) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := s.ownOnly(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, e := range v {
			if err := s.ownName(key, e); err != nil {
				return err
			}
			if err := s.ownOnly(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *session) ownName(key string, value any) error {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, e := range list {
		name, ok := e.(string)
		if !ok {
			continue
		}
		switch key {
		case "context", "contexts", "root", "referenceContext":
			s.b.mu.Lock()
			f := s.b.frames[name]
			s.b.mu.Unlock()
			if f == nil || f.page.s != s {
				return fault.New(fault.PageNotFound, "the session has no browsing context %s", name).Field("params." + key)
			}
		case "session":
			if !s.ownsDevtools(name) {
				return fault.New(fault.PermissionDenied, "the DevTools session is none of this session's pages").Reason("command_refused").Field("params." + key)
			}
		case "userContext", "userContexts":
			if name != s.user {
				return fault.New(fault.PermissionDenied, "the user context %s is not this session's", name).Reason("command_refused").Field("params." + key)
			}
		}
	}
	return nil
}

func (s *session) ownsDevtools(id string) bool {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	return slices.ContainsFunc(s.pages, func(pg *page) bool { return pg.devtools == id })
}

// install is bidi.install_extension. The extension is there for all sessions of the browser, until it ends.
func (p *Provider) install(ctx context.Context, r *browserv1.CustomRequest) (*structpb.Value, error) {
	var in struct {
		Path    string `json:"path"`
		Archive string `json:"archive"`
	}
	if err := params(r, &in); err != nil {
		return nil, err
	}
	if (in.Path == "") == (in.Archive == "") {
		return nil, fault.New(fault.InvalidRequest, "give path or archive").Field("params")
	}
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	data := map[string]any{"type": "base64", "value": in.Archive}
	if in.Archive != "" {
		if _, err := base64.StdEncoding.DecodeString(in.Archive); err != nil {
			return nil, fault.New(fault.InvalidRequest, "archive is no base64").Field("params.archive")
		}
	} else {
		_, host := p.settings()
		path, err := shelf.AllowedFolder(in.Path, host.GetUploadDirs())
		if err != nil {
			return nil, err
		}
		data = map[string]any{"type": "archivePath", "path": path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			data["type"] = "path"
		}
	}
	res, err := do(ctx, s.b.conn, extensionInstall, extensionParams{Data: data})
	var said *refusal
	if errors.As(err, &said) {
		return nil, fault.New(fault.InvalidRequest, "the browser does not take the extension: %s", said.Message).Reason("command_failed").With("bidi_error", said.Code)
	}
	if err != nil {
		return nil, s.refused(ctx, err)
	}
	return wire.ToValue(map[string]any{"extension": res.Extension})
}
