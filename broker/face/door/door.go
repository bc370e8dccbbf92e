// Package door decides who may come in: over HTTP by Host, Origin and bearer token, on the unix socket by the peer's user
// id. Every HTTP face stands behind the same door, so no web page, no other machine and no other user of this one gets
// through by way of one that forgot to look.
package door

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/token"
	"github.com/droverhq/drover/proto/fault"
)

// Tokens knows the bearer tokens; *token.File is one.
type Tokens interface {
	Lookup(plain string) (token.Token, bool)
}

var _ Tokens = (*token.File)(nil)

// Door guards an HTTP server.
type Door struct {
	// Tokens knows who may come in; nil lets nobody in.
	Tokens Tokens
	// Hosts are names, or name:port, that a Host header may carry beside the loopback names with the right port.
	Hosts []string
	// Origins are origins of web pages that may come in, such as http://127.0.0.1:3000 or chrome-extension://ID.
	Origins []string
	// Refuse writes a refusal; nil for plain text.
	Refuse func(w http.ResponseWriter, status int, err error)
}

type principalKey struct{}

// Principal gives who came through the door.
func Principal(ctx context.Context) (broker.Principal, bool) {
	p, ok := ctx.Value(principalKey{}).(broker.Principal)
	return p, ok
}

// Open guards what anyone on this machine may see, such as the health paths: Host and Origin are checked, no token is
// wanted.
func (d *Door) Open(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, err := d.place(r); err != nil {
			d.refuse(w, status, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Guard lets through who shows a token, from a place that may call. It says nothing to others but that they may not, and
// sets no CORS header, so that no page of another origin can read even that.
func (d *Door) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, err := d.place(r); err != nil {
			d.refuse(w, status, err)
			return
		}
		p, err := d.who(r)
		if err != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="drover"`)
			d.refuse(w, http.StatusUnauthorized, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, p)))
	})
}

func (d *Door) refuse(w http.ResponseWriter, status int, err error) {
	if d.Refuse != nil {
		d.Refuse(w, status, err)
		return
	}
	http.Error(w, err.Error(), status)
}

// place checks Host and Origin: a page that made its name resolve to us (DNS rebinding) carries its own name as Host, and
// a page that calls across origins its own Origin.
func (d *Door) place(r *http.Request) (int, error) {
	if !d.host(r) {
		return http.StatusForbidden, denied("the Host header names another server").Hint("call the address that drover serve printed")
	}
	if !d.origin(r) {
		return http.StatusForbidden, denied("pages of this origin may not call").Hint("an admin allows an origin with listen { origins = [...] }")
	}
	return 0, nil
}

func denied(message string) *fault.Error {
	return fault.New(fault.PermissionDenied, "%s", message).Reason("policy_denied")
}

// host tests the Host header: a loopback name or address with the port that the connection came in by, or a configured name.
// net/http refuses requests with several.
func (d *Door) host(r *http.Request) bool {
	got := strings.ToLower(r.Host)
	name, port := got, "80"
	if r.TLS != nil {
		port = "443"
	}
	bare := true
	if h, p, err := net.SplitHostPort(got); err == nil {
		name, port, bare = h, p, false
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	_, ours, err := net.SplitHostPort(local.String())
	if err != nil {
		return false
	}
	if slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, name) && port == ours {
		return true
	}
	return slices.ContainsFunc(d.Hosts, func(h string) bool {
		h = strings.ToLower(h)
		return h == got || h == name && (bare || port == ours)
	})
}

// origin tests the Origin header: none, the server's own, or a configured one. null is refused: sandboxed frames and files
// of any site send it, and no program has to.
func (d *Door) origin(r *http.Request) bool {
	all := r.Header.Values("Origin")
	switch {
	case len(all) == 0:
		return true
	case len(all) > 1, all[0] == "null":
		return false
	}
	u, err := url.Parse(all[0])
	if err != nil || u.Host == "" {
		return false
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	if u.Scheme == scheme && strings.EqualFold(u.Host, r.Host) {
		return true
	}
	return slices.ContainsFunc(d.Origins, func(o string) bool { return strings.EqualFold(strings.TrimSuffix(o, "/"), all[0]) })
}

var errToken = errors.New("no such token")

// Still says whether the token that a request came in with is valid yet. A connection that stays asks it for every message,
// so that a token that was revoked is of no use from then on.
func (d *Door) Still(r *http.Request) bool {
	_, err := d.who(r)
	return err == nil
}

// who finds the principal of the bearer token.
func (d *Door) who(r *http.Request) (broker.Principal, error) {
	all := r.Header.Values("Authorization")
	var plain string
	if len(all) == 1 {
		if scheme, rest, ok := strings.Cut(all[0], " "); ok && strings.EqualFold(scheme, "Bearer") {
			plain = strings.TrimSpace(rest)
		}
	}
	if plain == "" {
		return broker.Principal{}, denied("a bearer token is wanted").Hint("send Authorization: Bearer TOKEN; the token stands in the file that drover serve names").Cause(errToken)
	}
	if d.Tokens != nil {
		if t, ok := d.Tokens.Lookup(plain); ok {
			return broker.Principal{ID: "token:" + t.ID, Name: t.Name, Labels: t.Labels}, nil
		}
	}
	return broker.Principal{}, denied("the bearer token is not valid").Hint("make one with drover token new").Cause(errToken)
}
