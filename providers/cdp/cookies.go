package cdp

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/storage"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// cookies gives the session's cookies: all, or those that would be sent to the URLs.
func (s *session) cookies(ctx context.Context, urls []string) ([]*network.Cookie, error) {
	if len(urls) == 0 {
		res, err := ask(ctx, s.b, storage.GetCookies, storage.GetCookiesParams{BrowserContextID: s.context})
		if err != nil {
			return nil, s.refused(ctx, err)
		}
		return res.Cookies, nil
	}
	all, err := s.cookies(ctx, nil)
	if err != nil {
		return nil, err
	}
	var sent []*network.Cookie
	for _, c := range all {
		if slices.ContainsFunc(urls, func(u string) bool { return goesTo(c, u) }) {
			sent = append(sent, c)
		}
	}
	return sent, nil
}

func toCookies(list []*network.Cookie) []*browserv1.Cookie {
	out := make([]*browserv1.Cookie, 0, len(list))
	for _, c := range list {
		told := &browserv1.Cookie{Name: c.Name, Value: c.Value, Domain: c.Domain, Path: c.Path, HttpOnly: c.HTTPOnly, Secure: c.Secure}
		if !c.Session && c.Expires > 0 {
			told.Expires = stamp(c.Expires)
		}
		switch c.SameSite {
		case network.CookieSameSiteStrict:
			told.SameSite = browserv1.SameSite_SAME_SITE_STRICT.Enum()
		case network.CookieSameSiteLax:
			told.SameSite = browserv1.SameSite_SAME_SITE_LAX.Enum()
		case network.CookieSameSiteNone:
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
	params := make([]*network.CookieParam, 0, len(r.GetCookies()))
	for _, c := range r.GetCookies() {
		q := &network.CookieParam{
			Name: c.GetName(), Value: c.GetValue(), Domain: c.GetDomain(), Path: c.GetPath(), HTTPOnly: c.GetHttpOnly(), Secure: c.GetSecure(),
		}
		if q.Path == "" {
			q.Path = "/"
		}
		if q.Domain == "" {
			pg, err := s.page(r.GetPageId())
			if err != nil {
				return nil, err
			}
			q.URL = pg.address()
			if !isWeb(q.URL) {
				return nil, fault.New(fault.InvalidRequest, "the cookie %s has no domain, and the page has no host", c.GetName()).Field("cookies.domain")
			}
		}
		if c.Expires != nil {
			q.Expires = protocol.TimeSinceEpoch(float64(c.GetExpires().AsTime().UnixMicro()) / 1e6)
		}
		switch c.GetSameSite() {
		case browserv1.SameSite_SAME_SITE_STRICT:
			q.SameSite = network.CookieSameSiteStrict
		case browserv1.SameSite_SAME_SITE_LAX:
			q.SameSite = network.CookieSameSiteLax
		case browserv1.SameSite_SAME_SITE_NONE:
			q.SameSite = network.CookieSameSiteNone
		case browserv1.SameSite_SAME_SITE_UNSPECIFIED:
		}
		params = append(params, q)
	}
	if _, err := ask(ctx, s.b, storage.SetCookies, storage.SetCookiesParams{Cookies: params, BrowserContextID: s.context}); err != nil {
		if s.b.gone() || ctx.Err() != nil {
			return nil, s.refused(ctx, err)
		}
		return nil, fault.New(fault.InvalidRequest, "the browser does not take the cookies: %v", err).Field("cookies").Cause(err)
	}
	all, err := s.cookies(ctx, nil)
	if err != nil {
		return nil, err
	}
	held := slices.DeleteFunc(all, func(c *network.Cookie) bool {
		return !slices.ContainsFunc(params, func(q *network.CookieParam) bool { return q.Name == c.Name && q.Path == c.Path })
	})
	return &browserv1.SetCookiesResponse{Cookies: toCookies(held)}, nil
}

// scheme is one that a cookie may be set by.
func scheme(c *network.Cookie) string {
	if c.Secure || c.SourceScheme == network.CookieSourceSchemeSecure {
		return "https"
	}
	return "http"
}

// clearCookies is cookie.clear.
func (p *Provider) clearCookies(ctx context.Context, r *browserv1.ClearCookiesRequest) (*browserv1.ClearCookiesResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	if len(r.GetUrls()) == 0 {
		if _, err := ask(ctx, s.b, storage.ClearCookies, storage.ClearCookiesParams{BrowserContextID: s.context}); err != nil {
			return nil, s.refused(ctx, err)
		}
		return &browserv1.ClearCookiesResponse{}, nil
	}
	sent, err := s.cookies(ctx, r.GetUrls())
	if err != nil {
		return nil, err
	}
	// The browser deletes a cookie that is set with an end in the past.
	var past []*network.CookieParam
	for _, c := range sent {
		q := &network.CookieParam{Name: c.Name, Path: c.Path, Expires: 1, Secure: c.Secure, PartitionKey: c.PartitionKey}
		if strings.HasPrefix(c.Domain, ".") {
			q.Domain = c.Domain
		} else { // A domain would make it the cookie of all hosts below, which is another one.
			q.URL = (&url.URL{Scheme: scheme(c), Host: c.Domain, Path: c.Path}).String()
		}
		past = append(past, q)
	}
	if len(past) > 0 {
		if _, err := ask(ctx, s.b, storage.SetCookies, storage.SetCookiesParams{Cookies: past, BrowserContextID: s.context}); err != nil {
			return nil, s.refused(ctx, err)
		}
	}
	left, err := s.cookies(ctx, nil)
	if err != nil {
		return nil, err
	}
	return &browserv1.ClearCookiesResponse{Cookies: toCookies(left)}, nil
}
