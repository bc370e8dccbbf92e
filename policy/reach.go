package policy

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/droverhq/drover/proto/forbidden"
)

// Guard says which URLs the pages of a session may reach at all: what is opened, what it redirects to, its frames and
// everything that they load.
type Guard struct {
	Name string
	// Schemes are the only ones that may be reached; empty for all that the built-in guard lets through.
	Schemes []string
	// Allow lists globs of hosts, addresses and networks; when it is not empty, nothing else may be reached.
	Allow []string
	// Deny lists globs of hosts, addresses and networks that may not be reached.
	Deny []string
	// Reason is what a caller is told.
	Reason string
	// Where is the file and line of the block.
	Where string

	when condition
}

type guardSpec struct {
	Name    string         `hcl:"name,label"`
	At      hcl.Range      `hcl:",def_range"`
	NameAt  hcl.Range      `hcl:"name,label_range"`
	When    *hcl.Attribute `hcl:"when,optional"`
	Schemes []string       `hcl:"schemes,optional"`
	SchemAt hcl.Range      `hcl:"schemes,attr_value_range"`
	Allow   []string       `hcl:"allow,optional"`
	AllowAt hcl.Range      `hcl:"allow,attr_value_range"`
	Deny    []string       `hcl:"deny,optional"`
	DenyAt  hcl.Range      `hcl:"deny,attr_value_range"`
	Reason  string         `hcl:"reason,optional"`
}

// guardScope are the objects that stay the same for the whole life of a session.
var guardScope = []string{"client", "session"}

var (
	schemeName = regexp.MustCompile(`^[a-z][a-z0-9+.-]*$`)
	hostGlob   = regexp.MustCompile(`^[a-z0-9_*?.-]+$`)
)

func (l *loader) guard(s *guardSpec) {
	g := &Guard{Name: s.Name, Schemes: s.Schemes, Allow: s.Allow, Deny: s.Deny, Reason: strings.TrimRight(s.Reason, ". "), Where: place(s.At)}
	l.named(s.Name, s.NameAt, "guard")
	for _, o := range l.config.Guards {
		if o.Name == s.Name {
			l.wrong(s.NameAt, "Duplicate guard", "There is a guard %q at %s already.", s.Name, o.Where)
		}
	}
	g.when = l.condition(s.When, guardScope, "guard")
	if g.when.never {
		l.wrong(s.At, "Unreachable guard", "The condition of the guard %q %s.", g.Name, g.when.nothing())
	}
	for _, scheme := range s.Schemes {
		if !schemeName.MatchString(scheme) {
			l.wrong(s.SchemAt, "Not a scheme", "%q is no scheme such as https.", scheme)
		} else if slices.Contains(refusedSchemes, scheme) {
			l.wrong(s.SchemAt, "Scheme that is always refused", "No guard opens %s: URLs.", scheme)
		}
	}
	l.hosts(s.Allow, s.AllowAt, "allow")
	l.hosts(s.Deny, s.DenyAt, "deny")
	if len(s.Schemes)+len(s.Allow)+len(s.Deny) == 0 {
		l.wrong(s.At, "Guard without effect", "The guard %q says nothing: give it schemes, allow or deny.", g.Name)
	}
	l.config.Guards = append(l.config.Guards, g)
}

func (l *loader) hosts(list []string, at hcl.Range, what string) {
	if list != nil && len(list) == 0 {
		l.wrong(at, "Empty "+what, "A list that names nothing says nothing; leave %s out.", what)
	}
	for i, h := range list {
		switch {
		case slices.Contains(list[:i], h):
			l.wrong(at, "Duplicate host", "%q stands twice in %s.", h, what)
		case strings.Contains(h, "/"):
			if _, err := netip.ParsePrefix(h); err != nil {
				l.wrong(at, "Not a network", "%q is no network such as 10.0.0.0/8, and a host has no path.", h)
			}
		case strings.Contains(h, ":"):
			if _, err := netip.ParseAddr(h); err != nil {
				l.wrong(at, "Not a host", "%q is neither a host nor an IPv6 address; ports cannot be named.", h)
			}
		case !hostGlob.MatchString(h):
			l.wrong(at, "Not a host", "%q is no host such as example.com or *.example.com, in lower case.", h)
		}
	}
}

// Reach is what the guards of one session let it reach. It never changes; its nil value lets everything through that the
// built-in guard does.
type Reach struct{ guards []*Guard }

// Contained says that the session must be kept inside by its provider: a guard holds that a check of what the caller asks
// for cannot keep alone.
func (r *Reach) Contained() bool { return r != nil && len(r.guards) > 0 }

// Guard names the first guard that holds, with its file and line.
func (r *Reach) Guard() (name, where string) {
	if !r.Contained() {
		return "", ""
	}
	return r.guards[0].Name, r.guards[0].Where
}

// Judge says why a URL may not be reached; nil when it may. Addresses are what its host resolved to; without any, a host
// is judged by its name alone, and one that only an address could allow passes until it is resolved.
func (r *Reach) Judge(u URL, addrs ...netip.Addr) *Denial {
	if d := guard(u); d != nil {
		return d
	}
	for _, a := range addrs {
		if forbidden.Addr(a) {
			return refuse("the address of a cloud's metadata service is not opened")
		}
	}
	if r == nil || u.Scheme == "about" {
		return nil
	}
	for _, g := range r.guards {
		if d := g.judge(u, addrs); d != nil {
			return d
		}
	}
	return nil
}

func (g *Guard) judge(u URL, addrs []netip.Addr) *Denial {
	scheme := u.Scheme
	if len(g.Schemes) > 0 && !slices.Contains(g.Schemes, scheme) && !(scheme == "ws" && slices.Contains(g.Schemes, "http")) && !(scheme == "wss" && slices.Contains(g.Schemes, "https")) {
		return g.refuse("URLs of the scheme " + scheme + ": are not opened")
	}
	if u.addr.IsValid() {
		addrs = []netip.Addr{u.addr}
	}
	for _, a := range addrs {
		if reaches(g.Deny, u.Host, unmap(a)) {
			return g.refuse(u.Host + " is not opened")
		}
	}
	if len(addrs) == 0 && reaches(g.Deny, u.Host, netip.Addr{}) {
		return g.refuse(u.Host + " is not opened")
	}
	if len(g.Allow) == 0 || reaches(g.Allow, u.Host, netip.Addr{}) {
		return nil
	}
	if len(addrs) == 0 {
		if slices.ContainsFunc(g.Allow, func(h string) bool { return strings.ContainsAny(h, "/:") }) {
			return nil // whether it is of an allowed network is known when it is resolved
		}
		return g.refuse(u.Host + " is not among the hosts that may be opened")
	}
	for _, a := range addrs {
		if !reaches(g.Allow, u.Host, unmap(a)) {
			return g.refuse(u.Host + " is not among the hosts that may be opened")
		}
	}
	return nil
}

// reaches says whether a list holds a host or its address.
func reaches(list []string, host string, addr netip.Addr) bool {
	return slices.ContainsFunc(list, func(h string) bool {
		if n, err := netip.ParsePrefix(h); err == nil {
			return addr.IsValid() && n.Contains(addr)
		}
		if a, err := netip.ParseAddr(h); err == nil {
			return addr.IsValid() && a == addr
		}
		return Glob(h, host)
	})
}

func (g *Guard) refuse(message string) *Denial {
	if g.Reason != "" {
		message += ": " + g.Reason
	}
	return &Denial{Reason: ReasonURL, Message: message, Rule: g.Name, Where: g.Where, Hint: fmt.Sprintf("the guard %q at %s refuses it", g.Name, g.Where)}
}
