package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/droverhq/drover/broker/face/door"
	"github.com/droverhq/drover/proto/fault"
)

// firstStateless is the first version of MCP in which a request stands for itself.
const firstStateless = "2026-07-28"

// bodyLimit is the longest body of a request, in bytes.
const bodyLimit = 4 << 20

// Handler serves MCP over streamable HTTP, to be mounted behind a door. Requests of the stateless era stand for themselves:
// their sessions are named, and belong to the principal. Clients of the era before have an MCP session each, which ends with
// DELETE or when it is not used, and with it the browser sessions that it made. ?profile= chooses the tools.
func (f *Face) Handler() http.Handler {
	pick := func(r *http.Request) *mcp.Server {
		who, ok := door.Principal(r.Context())
		profiles, err := f.profilesOf(r)
		if !ok || err != nil {
			return nil
		}
		s := f.server(who, profiles)
		if s == nil {
			return nil
		}
		return s.mcp
	}
	stateless := mcp.NewStreamableHTTPHandler(pick, &mcp.StreamableHTTPOptions{
		// The door has checked Host, for configured names too.
		Stateless: true, DisableLocalhostProtection: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: bodyLimit,
	})
	stateful := mcp.NewStreamableHTTPHandler(pick, &mcp.StreamableHTTPOptions{
		DisableLocalhostProtection: true, SessionTimeout: f.o.Idle, MaxRequestBodyBytes: bodyLimit,
	})
	eras := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			defer f.posts.Enter()()
		}
		body, status, err := f.read(w, r)
		if err == nil {
			_, err = f.profilesOf(r)
			status = http.StatusBadRequest
		}
		if err != nil {
			http.Error(w, err.Error(), status)
			return
		}
		if r.Header.Get("MCP-Protocol-Version") >= firstStateless || r.Method == http.MethodPost && speaksForItself(body) {
			stateless.ServeHTTP(w, r)
			return
		}
		stateful.ServeHTTP(w, r)
	})
	// The SDK keeps one user from the MCP session of another by the user of the token.
	cross := http.NewCrossOriginProtection()
	for _, o := range f.o.Origins {
		if err := cross.AddTrustedOrigin(o); err != nil {
			f.o.Logger.Warn("origin cannot be trusted", "origin", o, "error", err)
		}
	}
	return cross.Handler(auth.RequireBearerToken(user, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(eras))
}

func (f *Face) profilesOf(r *http.Request) ([]string, error) {
	if list := r.URL.Query().Get("profile"); list != "" {
		return ParseProfiles(list)
	}
	return f.o.Profiles, nil
}

// user tells the SDK who the door let in.
func user(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	who, ok := door.Principal(ctx)
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: who.ID}, nil
}

// read takes the whole body within its time, so that a client that sends a byte a minute holds nothing; the answer has all
// the time it needs.
func (f *Face) read(w http.ResponseWriter, r *http.Request) (body []byte, status int, err error) {
	if r.Body == nil || r.Method != http.MethodPost {
		return nil, 0, nil
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(f.o.BodyWait)) // a recorder in a test has none
	defer func() { _ = rc.SetReadDeadline(time.Time{}) }()
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, http.StatusRequestEntityTooLarge, fault.New(fault.InvalidRequest, "the body is longer than %d bytes", bodyLimit).Reason("payload_too_large")
	case err != nil:
		return nil, http.StatusRequestTimeout, fault.New(fault.InvalidRequest, "the body broke off").Cause(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, 0, nil
}

// speaksForItself finds a request of the stateless era that lacks the header, so that it is told so in its own way.
func speaksForItself(body []byte) bool {
	if !bytes.Contains(body, []byte(mcp.MetaKeyProtocolVersion)) {
		return false
	}
	var msg struct {
		Params struct {
			Meta map[string]any `json:"_meta"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &msg) != nil {
		return false
	}
	version, _ := msg.Params.Meta[mcp.MetaKeyProtocolVersion].(string)
	return version >= firstStateless
}
