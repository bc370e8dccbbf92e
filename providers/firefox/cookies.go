package firefox

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// cookie is a cookie as the add-on tells of it (MDN, cookies.Cookie).
type cookie struct {
	Name     string  `json:"name"`
	Value    string  `json:"value"`
	Domain   string  `json:"domain"` // with a leading dot where subdomains get it too; "" to set one for the host alone
	Path     string  `json:"path"`
	Secure   bool    `json:"secure"`
	HTTPOnly bool    `json:"http_only"`
	SameSite string  `json:"same_site"` // no_restriction, lax, strict or unspecified
	Expires  float64 `json:"expires"`   // seconds since 1970; 0 for a cookie of the session
}

// scope gives the addresses whose cookies a call is about: those that it names, else those of the session's pages. A person's
// other cookies are nobody's business.
func (s *session) scope(urls []string) []string {
	if len(urls) > 0 {
		return urls
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	for _, pg := range s.pages {
		if strings.HasPrefix(pg.url, "http") && !slices.Contains(urls, pg.url) {
			urls = append(urls, pg.url)
		}
	}
	return urls
}

func (s *session) cookies(ctx context.Context, urls []string) ([]*browserv1.Cookie, error) {
	var got struct {
		Cookies []cookie `json:"cookies"`
	}
	urls = s.scope(urls)
	if len(urls) == 0 {
		return nil, nil
	}
	if err := s.b.request(ctx, s, "cookies.get", map[string]any{"urls": urls}, &got); err != nil {
		return nil, s.refused(ctx, err)
	}
	out := make([]*browserv1.Cookie, 0, len(got.Cookies))
	for _, c := range got.Cookies {
		out = append(out, c.told())
	}
	slices.SortStableFunc(out, func(a, b *browserv1.Cookie) int {
		return cmp.Or(cmp.Compare(a.GetDomain(), b.GetDomain()), cmp.Compare(a.GetPath(), b.GetPath()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out, nil
}

func (c cookie) told() *browserv1.Cookie {
	out := &browserv1.Cookie{
		Name: strings.ToValidUTF8(c.Name, "\ufffd"), Value: strings.ToValidUTF8(c.Value, "\ufffd"), Domain: c.Domain, Path: c.Path, HttpOnly: c.HTTPOnly, Secure: c.Secure,
	}
	if c.Expires > 0 {
		out.Expires = timestamppb.New(time.UnixMilli(int64(min(c.Expires, 1<<40) * 1000)))
	}
	switch c.SameSite {
	case "strict":
		out.SameSite = browserv1.SameSite_SAME_SITE_STRICT.Enum()
	case "lax":
		out.SameSite = browserv1.SameSite_SAME_SITE_LAX.Enum()
	case "no_restriction":
		out.SameSite = browserv1.SameSite_SAME_SITE_NONE.Enum()
	}
	return out
}

// narrowed tells that only the cookies of the session's pages are meant.
func narrowed(urls []string) []*browserv1.Warning {
	if len(urls) > 0 {
		return nil
	}
	return []*browserv1.Warning{{
		Code: "reduced_fidelity", Message: "without urls these are the cookies of the session's open pages; the person's other cookies are left alone",
	}}
}

// listCookies is cookie.list.
func (p *Provider) listCookies(ctx context.Context, r *browserv1.ListCookiesRequest) (*browserv1.ListCookiesResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	list, err := s.cookies(ctx, r.GetUrls())
	return &browserv1.ListCookiesResponse{Cookies: list, Warnings: narrowed(r.GetUrls())}, err
}

// setCookies is cookie.set. A cookie without a domain belongs to the page's host.
func (p *Provider) setCookies(ctx context.Context, r *browserv1.SetCookiesRequest) (*browserv1.SetCookiesResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	type setting struct {
		url string
		c   cookie
	}
	var set []setting
	for _, c := range r.GetCookies() {
		q, at, err := s.cookieOf(c, r.GetPageId())
		if err != nil {
			return nil, err
		}
		set = append(set, setting{at, q})
	}
	var urls []string
	for _, q := range set {
		if err := s.b.request(ctx, s, "cookies.set", map[string]any{"url": q.url, "cookie": q.c}, nil); err != nil {
			if refused(err, "bad_request") {
				return nil, fault.New(fault.InvalidRequest, "Firefox does not take the cookie %s", q.c.Name).Field("cookies").Cause(err)
			}
			return nil, s.refused(ctx, err)
		}
		urls = append(urls, q.url)
	}
	all, err := s.cookies(ctx, urls)
	if err != nil {
		return nil, err
	}
	held := slices.DeleteFunc(all, func(c *browserv1.Cookie) bool {
		return !slices.ContainsFunc(set, func(q setting) bool { return q.c.Name == c.GetName() && q.c.Path == c.GetPath() })
	})
	return &browserv1.SetCookiesResponse{Cookies: held}, nil
}

// cookieOf writes a cookie as the add-on takes it, with an address that it is for.
func (s *session) cookieOf(c *browserv1.Cookie, page string) (cookie, string, error) {
	q := cookie{Name: c.GetName(), Value: c.GetValue(), Path: c.GetPath(), HTTPOnly: c.GetHttpOnly(), Secure: c.GetSecure()}
	if q.Path == "" {
		q.Path = "/"
	}
	host, scheme := strings.TrimPrefix(c.GetDomain(), "."), "http"
	if strings.HasPrefix(c.GetDomain(), ".") {
		q.Domain = host
	}
	if host == "" {
		pg, err := s.page(page)
		if err != nil {
			return q, "", err
		}
		s.b.mu.Lock()
		u, err := url.Parse(pg.url)
		s.b.mu.Unlock()
		if err != nil || u.Scheme != "http" && u.Scheme != "https" {
			return q, "", fault.New(fault.InvalidRequest, "the cookie %s has no domain, and the page has no host", c.GetName()).Field("cookies.domain")
		}
		host = u.Hostname()
	}
	if q.Secure {
		scheme = "https"
	}
	if c.Expires != nil {
		q.Expires = float64(c.GetExpires().AsTime().Unix())
	}
	switch c.GetSameSite() {
	case browserv1.SameSite_SAME_SITE_STRICT:
		q.SameSite = "strict"
	case browserv1.SameSite_SAME_SITE_LAX:
		q.SameSite = "lax"
	case browserv1.SameSite_SAME_SITE_NONE:
		q.SameSite = "no_restriction"
	case browserv1.SameSite_SAME_SITE_UNSPECIFIED:
	}
	return q, (&url.URL{Scheme: scheme, Host: host, Path: q.Path}).String(), nil
}

// clearCookies is cookie.clear. Without urls the cookies of the session's pages are meant.
func (p *Provider) clearCookies(ctx context.Context, r *browserv1.ClearCookiesRequest) (*browserv1.ClearCookiesResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	if urls := s.scope(r.GetUrls()); len(urls) > 0 {
		if err := s.b.request(ctx, s, "cookies.clear", map[string]any{"urls": urls}, nil); err != nil {
			return nil, s.refused(ctx, err)
		}
	}
	left, err := s.cookies(ctx, nil)
	return &browserv1.ClearCookiesResponse{Cookies: left, Warnings: narrowed(r.GetUrls())}, err
}
