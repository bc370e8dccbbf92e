package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"

	whatwg "github.com/nlnwa/whatwg-url/url"

	"github.com/droverhq/drover/proto/forbidden"
)

// URL is a URL as a browser reads it: the WHATWG parser drops the blanks, tabs and newlines that browsers drop, and gives
// every spelling of a scheme, a name and an address in one form.
type URL struct {
	// Text is the URL in its one form.
	Text string
	// Scheme is in lower case, without the colon.
	Scheme string
	// Host is a name in lower case without a trailing dot, or an address without brackets; empty for schemes without one.
	Host string
	// Port is the port, the scheme's own where the text does not say; 0 for schemes without one.
	Port int
	// Path is what follows.
	Path string

	addr netip.Addr
}

var parser = whatwg.NewParser()

// ParseURL reads an absolute URL as a browser does; the error says why a text is none.
func ParseURL(text string) (URL, error) {
	u, err := parser.Parse(text)
	if err != nil {
		return URL{}, fmt.Errorf("not an absolute URL: %w", err)
	}
	host := strings.TrimRight(strings.Trim(u.Hostname(), "[]"), ".")
	out := URL{Text: u.Href(false), Scheme: u.Scheme(), Host: strings.ToLower(host), Path: u.Pathname()}
	if a, err := netip.ParseAddr(out.Host); err == nil {
		out.addr = unmap(a)
	}
	if port, err := strconv.Atoi(u.Port()); err == nil {
		out.Port = port
	} else {
		out.Port = ports[out.Scheme]
	}
	return out, nil
}

// ports are the schemes' own.
var ports = map[string]int{"http": 80, "ws": 80, "https": 443, "wss": 443, "ftp": 21}

// Domain gives the registrable domain: the public suffix and one label more. It is empty of an address, of a public suffix
// itself, and of a name that has no dot.
func (u URL) Domain() string {
	if u.addr.IsValid() || !strings.Contains(u.Host, ".") {
		return ""
	}
	d, err := publicsuffix.EffectiveTLDPlusOne(u.Host)
	if err != nil {
		return ""
	}
	return d
}

// refusedSchemes lead out of the web: to files, to the browser's own pages, or to a script or page that the URL itself
// carries.
var refusedSchemes = []string{
	"file", "filesystem", "blob", "data", "javascript", "vbscript", "view-source", "jar", "chrome", "devtools", "resource",
	"edge", "brave", "opera", "vivaldi", "moz-extension", "extension", "isolated-app", "content", "externalfile",
}

// guard refuses what no caller may open, whatever the config says.
func guard(u URL) *Denial {
	switch {
	case u.Scheme == "about":
		if u.Path == "blank" {
			return nil
		}
		return refuse("about: pages other than about:blank belong to the browser")
	case slices.Contains(refusedSchemes, u.Scheme), strings.HasPrefix(u.Scheme, "chrome-"), strings.HasPrefix(u.Scheme, "safari-"):
		return refuse("URLs of the scheme " + u.Scheme + ": are not opened")
	case forbidden.Host(u.Host):
		return refuse("the address of a cloud's metadata service is not opened")
	}
	return nil
}

func refuse(message string) *Denial {
	return &Denial{Reason: ReasonURL, Message: message, Hint: "open an http or https URL"}
}

// unmap gives the address that is most likely meant by one, which is the IPv4 address that an IPv6 address carries.
func unmap(a netip.Addr) netip.Addr {
	all := forbidden.Carried(a)
	return all[min(1, len(all)-1)]
}

// Origin gives the scheme, host and port of a URL that has a host, without the scheme's own port.
func (u URL) Origin() string {
	host := u.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if u.Port != 0 && u.Port != ports[u.Scheme] {
		host += ":" + strconv.Itoa(u.Port)
	}
	return u.Scheme + "://" + host
}
