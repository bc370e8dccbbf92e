package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// resourceLimit is the largest file that a resource gives, in bytes; a larger one is read by artifact.get or over HTTP.
const resourceLimit = 32 << 20

// addResources lists what can be read: the state of the providers, and by template kept results, files and explanations.
func (s *server) addResources() {
	s.mcp.AddReceivingMiddleware(plainFaults)
	s.mcp.AddResource(&mcp.Resource{
		URI: "browser://status", Name: "status", MIMEType: "application/json", Description: "How the providers are",
	}, s.readStatus)
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: keptPrefix + "{id}", Name: "kept", Description: "A result or picture that was too large for its reply",
	}, s.readKept)
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: "browser://sessions/{session}/artifacts/{ref}", Name: "artifact", Description: "A downloaded file or screenshot of a session, by its ref",
	}, s.readArtifact)
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: "browser://explain/{tool}{?arguments}", Name: "explain", MIMEType: "application/json",
		Description: "Where a call would go and why, or why the policy denies it; arguments are the tool's, as JSON",
	}, s.readExplanation)
}

// plainFaults has the faults of resources and prompts go out as errors of the protocol, with their code and next step.
func plainFaults(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		var f *fault.Error
		if !errors.As(err, &f) {
			return res, err
		}
		code := int64(jsonrpc.CodeInvalidParams)
		if f.Code == fault.InternalError {
			code = jsonrpc.CodeInternalError
		}
		return nil, &jsonrpc.Error{Code: code, Message: fault.Word(f.Code) + ": " + renamed(f.Message)}
	}
}

func contents(uri, kind string, data []byte) *mcp.ReadResourceResult {
	c := &mcp.ResourceContents{URI: uri, MIMEType: kind}
	if kind == "application/json" || strings.HasPrefix(kind, "text/") {
		c.Text = strings.ToValidUTF8(string(data), "\uFFFD")
	} else {
		c.Blob = data
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}
}

func (s *server) readStatus(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	c, err := s.client(req.Session) //nolint:contextcheck // what is kept of an MCP session outlives its requests
	if err != nil {
		return nil, err
	}
	st, err := status(ctx, c.caller)
	if err != nil {
		return nil, err
	}
	data, err := wire.Marshal(st)
	if err != nil {
		return nil, err
	}
	return contents(req.Params.URI, "application/json", data), nil
}

func (s *server) readKept(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	c, err := s.client(req.Session) //nolint:contextcheck // what is kept of an MCP session outlives its requests
	if err != nil {
		return nil, err
	}
	item, ok := c.kept.get(strings.TrimPrefix(req.Params.URI, keptPrefix))
	if !ok {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	return contents(req.Params.URI, item.kind, item.data), nil
}

var artifactMethod = must("artifact.get")

func (s *server) readArtifact(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	c, err := s.client(req.Session) //nolint:contextcheck // what is kept of an MCP session outlives its requests
	if err != nil {
		return nil, err
	}
	parts := strings.Split(strings.TrimPrefix(uri, "browser://sessions/"), "/")
	if len(parts) != 3 {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	name, nerr := url.PathUnescape(parts[0])
	ref, rerr := url.PathUnescape(parts[2])
	seat := c.known(name)
	if nerr != nil || rerr != nil || seat == nil {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	var data []byte
	for {
		resp, err := c.caller.Call(ctx, artifactMethod, &browserv1.GetArtifactRequest{SessionId: seat.id, Ref: ref, Offset: int64(len(data))})
		part, ok := resp.(*browserv1.GetArtifactResponse)
		switch {
		case err != nil:
			return nil, err
		case !ok || part.GetSize() > resourceLimit || len(data)+len(part.GetData()) > resourceLimit:
			return nil, fault.New(fault.InvalidRequest, "the file has %d bytes, more than a resource gives", part.GetSize()).
				Reason("payload_too_large").Hint("it lies at the path that browser_download_wait told")
		}
		data = append(data, part.GetData()...)
		if part.GetEof() || len(part.GetData()) == 0 {
			return contents(uri, part.GetMediaType(), data), nil
		}
	}
}

// readExplanation says where a call of a tool, or of a method, would go.
func (s *server) readExplanation(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	c, err := s.client(req.Session) //nolint:contextcheck // what is kept of an MCP session outlives its requests
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(req.Params.URI)
	if err != nil {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	m, msg, err := c.planned(strings.TrimPrefix(u.Path, "/"), json.RawMessage(u.Query().Get("arguments")))
	if err != nil {
		return nil, err
	}
	x, err := s.face.o.Broker.Explain(ctx, c.caller, m, msg)
	if err != nil {
		return nil, err
	}
	return contents(req.Params.URI, "application/json", encode(x)), nil
}

// planned gives the request of a call that is only asked about. Without arguments the question is where a session for it
// would be made.
func (c *client) planned(name string, raw json.RawMessage) (*catalog.Method, proto.Message, error) {
	for _, t := range tools() {
		if t.name != name && t.method.Name != name {
			continue
		}
		args, msg, err := t.parse(raw)
		if err != nil {
			return nil, nil, err
		}
		session := cmp.Or(args.session, c.session)
		if ask, ok := msg.(*browserv1.EnsureSessionRequest); ok {
			ask.ClientSessionId = cmp.Or(session, ownName())
			return t.method, ask, nil
		}
		if seat := c.known(session); seat != nil && len(raw) > 0 {
			catalog.SetSessionID(msg, seat.id)
		} else if t.method.NeedsSession() && len(raw) > 0 {
			return nil, nil, fault.New(fault.SessionNotFound, "what becomes of these arguments depends on the session, and there is none yet").
				Field(argSession).Hint("make it with browser_session; without arguments it is told where the session would be made")
		} else if t.method.NeedsSession() {
			return ensureMethod, &browserv1.EnsureSessionRequest{ClientSessionId: ownName(), RequireMethods: []string{t.method.Name}}, nil
		}
		return t.method, msg, nil
	}
	return nil, nil, unknown(name)
}
