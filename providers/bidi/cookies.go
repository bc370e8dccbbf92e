package bidi

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// cookieQuery is the params of storage.getCookies and storage.deleteCookies.
type cookieQuery struct {
	Filter    map[string]any `json:"filter,omitempty"`
	Partition storageKey     `json:"partition"`
}

// storageKey names the cookie jar of a user context.
type storageKey struct {
	Type        string `json:"type"`
	UserContext string `json:"userContext"`
}

type cookieList struct {
	Cookies []cookie `json:"cookies"`
}

type cookieSetting struct {
	Cookie    cookie     `json:"cookie"`
	Partition storageKey `json:"partition"`
}

// cookie is network.Cookie, and storage.PartialCookie.
type cookie struct {
	Name     string      `json:"name"`
	Value    cookieValue `json:"value"`
	Domain   string      `json:"domain"`
	Path     string      `json:"path,omitempty"`
	HTTPOnly bool        `json:"httpOnly"`
	Secure   bool        `json:"secure"`
	SameSite string      `json:"sameSite,omitempty"`
	Expiry   json.Number `json:"expiry,omitempty"` // seconds since 1970
}

// cookieValue is network.BytesValue.
type cookieValue struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

func (v cookieValue) text() string {
	if v.Type != "base64" {
		return v.Value
	}
	data, err := base64.StdEncoding.DecodeString(v.Value)
	if err != nil {
		return v.Value
	}
	return strings.ToValidUTF8(string(data), "\ufffd")
}

func (s *session) jar() storageKey { return storageKey{Type: "storageKey", UserContext: s.user} }

// cookies gives the session's cookies: all, or those that would be sent to the URLs.
func (s *session) cookies(ctx context.Context, urls []string) ([]cookie, error) {
	res, err := do(ctx, s.b.conn, storageGetCookies, cookieQuery{Partition: s.jar()})
	if err != nil {
		return nil, s.refused(ctx, err)
	}
	if len(urls) == 0 {
		return res.Cookies, nil
	}
	return slices.DeleteFunc(res.Cookies, func(c cookie) bool {
		return !slices.ContainsFunc(urls, func(u string) bool { return c.goesTo(u) })
	}), nil
}

// goesTo says whether a cookie is sent to a URL (RFC 6265, sections 5.1.3, 5.1.4 and 5.4).
func (c cookie) goesTo(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	domain, wide := strings.CutPrefix(strings.ToLower(c.Domain), ".")
	if host != domain && !(wide && strings.HasSuffix(host, "."+domain)) {
		return false
	}
	local := host == "localhost" || strings.HasSuffix(host, ".localhost") || host == "127.0.0.1" || host == "::1"
	if c.Secure && u.Scheme != "https" && u.Scheme != "wss" && !local {
		return false
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	return path == c.Path || strings.HasPrefix(path, c.Path) && (strings.HasSuffix(c.Path, "/") || path[len(c.Path)] == '/')
}

func toCookies(list []cookie) []*browserv1.Cookie {
	out := make([]*browserv1.Cookie, 0, len(list))
	for _, c := range list {
		told := &browserv1.Cookie{Name: c.Name, Value: c.Value.text(), Domain: c.Domain, Path: c.Path, HttpOnly: c.HTTPOnly, Secure: c.Secure}
		if at, err := c.Expiry.Float64(); err == nil && at > 0 {
			told.Expires = timestamppb.New(time.UnixMilli(int64(min(at, 1<<40) * 1000)))
		}
		switch c.SameSite {
		case "strict":
			told.SameSite = browserv1.SameSite_SAME_SITE_STRICT.Enum()
		case "lax":
			told.SameSite = browserv1.SameSite_SAME_SITE_LAX.Enum()
		case "none":
			told.SameSite = browserv1.SameSite_SAME_SITE_NONE.Enum()
		}
		out = append(out, told)
	}
	slices.SortStableFunc(out, func(a, b *browserv1.Cookie) int {
		return cmp.Or(cmp.Compare(a.GetDomain(), b.GetDomain()), cmp.Compare(a.GetPath(), b.GetPath()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// listCookies is cookie.list.
func (p *Provider) listCookies(ctx context.Context, r *browserv1.ListCookiesRequest) (*browserv1.ListCookiesResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	list, err := s.cookies(ctx, r.GetUrls())
	if err != nil {
		return nil, err
	}
	return &browserv1.ListCookiesResponse{Cookies: toCookies(list)}, nil
}

// setCookies is cookie.set. A cookie without a domain belongs to the page's host.
func (p *Provider) setCookies(ctx context.Context, r *browserv1.SetCookiesRequest) (*browserv1.SetCookiesResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	var set []cookie
	for _, c := range r.GetCookies() {
		q, err := s.cookieOf(c, r.GetPageId())
		if err != nil {
			return nil, err
		}
		set = append(set, q)
	}
	for _, q := range set {
		if _, err := do(ctx, s.b.conn, storageSetCookie, cookieSetting{Cookie: q, Partition: s.jar()}); err != nil {
			if s.b.gone() || ctx.Err() != nil {
				return nil, s.refused(ctx, err)
			}
			return nil, fault.New(fault.InvalidRequest, "the browser does not take the cookie %s: %v", q.Name, err).Field("cookies").Cause(err)
		}
	}
	all, err := s.cookies(ctx, nil)
	if err != nil {
		return nil, err
	}
	held := slices.DeleteFunc(all, func(c cookie) bool {
		return !slices.ContainsFunc(set, func(q cookie) bool {
			return q.Name == c.Name && q.Path == c.Path && strings.TrimPrefix(q.Domain, ".") == strings.TrimPrefix(c.Domain, ".")
		})
	})
	return &browserv1.SetCookiesResponse{Cookies: toCookies(held)}, nil
}

// cookieOf writes a cookie as the browser takes it.
func (s *session) cookieOf(c *browserv1.Cookie, page string) (cookie, error) {
	q := cookie{
		Name: c.GetName(), Value: cookieValue{"string", c.GetValue()}, Domain: c.GetDomain(), Path: c.GetPath(), HTTPOnly: c.GetHttpOnly(), Secure: c.GetSecure(),
	}
	if q.Path == "" {
		q.Path = "/"
	}
	if q.Domain == "" {
		pg, err := s.page(page)
		if err != nil {
			return q, err
		}
		s.b.mu.Lock()
		u, err := url.Parse(pg.top.url)
		s.b.mu.Unlock()
		if err != nil || u.Scheme != "http" && u.Scheme != "https" {
			return q, fault.New(fault.InvalidRequest, "the cookie %s has no domain, and the page has no host", c.GetName()).Field("cookies.domain")
		}
		q.Domain = u.Hostname()
	}
	if c.Expires != nil {
		at, err := json.Marshal(c.GetExpires().AsTime().Unix())
		if err != nil {
			return q, err
		}
		q.Expiry = json.Number(at)
	}
	switch c.GetSameSite() {
	case browserv1.SameSite_SAME_SITE_STRICT:
		q.SameSite = "strict"
	case browserv1.SameSite_SAME_SITE_LAX:
		q.SameSite = "lax"
	case browserv1.SameSite_SAME_SITE_NONE:
		q.SameSite = "none"
	case browserv1.SameSite_SAME_SITE_UNSPECIFIED:
	}
	return q, nil
}

// clearCookies is cookie.clear.
func (p *Provider) clearCookies(ctx context.Context, r *browserv1.ClearCookiesRequest) (*browserv1.ClearCookiesResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	filters := []map[string]any{nil}
	if len(r.GetUrls()) > 0 {
		sent, err := s.cookies(ctx, r.GetUrls())
		if err != nil {
			return nil, err
		}
		filters = nil
		for _, c := range sent {
			filters = append(filters, map[string]any{"name": c.Name, "domain": c.Domain, "path": c.Path})
		}
	}
	for _, filter := range filters {
		if _, err := do(ctx, s.b.conn, storageDeleteCookies, cookieQuery{Filter: filter, Partition: s.jar()}); err != nil {
			return nil, s.refused(ctx, err)
		}
	}
	left, err := s.cookies(ctx, nil)
	if err != nil {
		return nil, err
	}
	return &browserv1.ClearCookiesResponse{Cookies: toCookies(left)}, nil
}
