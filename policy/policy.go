// Package policy decides. It reads the one config file, which an admin writes in HCL, into a Config, and answers from it
// who may do what with which provider. It is pure: no clock, no I/O, nothing started, so a table test is its whole proof.
package policy

import "path"

// Reasons of a denial, as details.reason tells them.
const (
	ReasonPolicy = "policy_denied"
	ReasonURL    = "url_refused"
)

// Facts is everything a decision may depend on.
type Facts struct {
	// Method is the normalized method that is called.
	Method string
	// URLs are the URLs of the request that the method declares as such.
	URLs []URL
	// Custom is the custom method that provider.command names.
	Custom string
	// Client is who calls.
	Client Client
	// Session is the session that the call is about, or that it asks for.
	Session Session
	// Providers are those that could serve the call: all of them for session.ensure, and otherwise the session's own.
	Providers []Candidate
}

// Client is who calls: a named token, a local user, or the parent of a stdio face.
type Client struct {
	Name   string
	Labels []string
}

// Session is what is known of the session.
type Session struct {
	ClientSessionID   string
	BrowserPreference string
	Isolation         string
	Attach            string
	Persist           bool
	Metadata          map[string]any
}

// Candidate is a provider that could serve a call.
type Candidate struct {
	ID           string
	Plugin       string
	Families     []string
	Version      string
	Tier         string
	Availability string
	Features     []string
	Sessions     int
}

// Decision is what the policy says to the facts.
type Decision struct {
	// Denied is set when the call is refused.
	Denied *Denial
	// Prefer lists provider ids that a rule wants tried first, in order.
	Prefer []string
	// Exclude says why a rule keeps a provider out, by its id.
	Exclude map[string]*Denial
	// Need lists features that a rule demands beyond those that the caller asked for.
	Need []string
}

// Denial is why something was refused.
type Denial struct {
	// Reason is the protocol's word for it.
	Reason string
	// Message says what was refused and why, in a sentence without a full stop.
	Message string
	// Hint is what an admin would change, in a few words.
	Hint string
	// Rule names the rule, and Where its file and line, where one was written.
	Rule, Where string
}

// Policy answers from a config. It never changes.
type Policy struct{ config *Config }

// New makes the policy of a config; nil stands for the default config.
func New(c *Config) *Policy {
	if c == nil {
		c = Default()
	}
	return &Policy{config: c}
}

// Config gives the config that the policy answers from. It is shared: do not change it.
func (p *Policy) Config() *Config { return p.config }

// Decide says what the policy makes of the facts: refused or not, which providers first, which not at all.
func (p *Policy) Decide(f Facts) Decision {
	for _, u := range f.URLs {
		if d := guard(u); d != nil {
			return Decision{Denied: d}
		}
	}
	if f.Custom != "" {
		if d := p.passthrough(f); d != nil {
			return Decision{Denied: d}
		}
	}
	return Decision{}
}

// passthrough refuses every custom method that no passthrough block allows by name.
func (p *Policy) passthrough(f Facts) *Denial {
	for _, glob := range p.config.Passthrough.Allow {
		if ok, err := path.Match(glob, f.Custom); err == nil && ok {
			return nil
		}
	}
	return &Denial{
		Reason:  ReasonPolicy,
		Message: "the custom method " + f.Custom + " is not allowed",
		Hint:    "an admin allows it with passthrough { allow = [\"" + f.Custom + "\"] }",
	}
}
