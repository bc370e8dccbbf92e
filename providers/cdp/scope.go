package cdp

import (
	"net/url"
	"strings"

	"github.com/chromedp/cdproto/network"
)

// goesTo says whether a cookie is sent to a URL (RFC 6265, sections 5.1.3, 5.1.4 and 5.4).
func goesTo(c *network.Cookie, address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	domain, wide := strings.CutPrefix(strings.ToLower(c.Domain), ".")
	if host != domain && (!wide || !strings.HasSuffix(host, "."+domain)) {
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

// isWeb says whether an address has a host that cookies belong to.
func isWeb(address string) bool {
	return strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")
}

// address is the page's address now.
func (p *page) address() string {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if f := p.frames[p.main]; f != nil {
		return f.url
	}
	return ""
}
