// Package policy decides. It reads the one config file, which an admin writes in HCL, into a Config, and answers from it
// who may do what with which provider. It is pure: no clock, no I/O, nothing started, so a table test is its whole proof.
package policy

// Reasons of a denial, as details.reason tells them.
const (
	ReasonPolicy = "policy_denied"
	ReasonURL    = "url_refused"
)

// ensureMethod is the method whose call has many providers to choose from.
const ensureMethod = "session.ensure"

// Facts is everything a decision may depend on.
type Facts struct {
	// Method is the normalized method that is called.
	Method string
	// ReadOnly says that the method changes nothing.
	ReadOnly bool
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
	// Latency is how long its calls took of late, in milliseconds.
	Latency  int64
	Sessions int
}

// Decision is what the policy says to the facts.
type Decision struct {
	// Denied is set when the call is refused.
	Denied *Denial
	// Prefer lists provider ids that a rule wants tried first, in order; PreferBy is that rule.
	Prefer   []string
	PreferBy *Rule
	// Exclude says why a rule keeps a provider out, by its id, or one browser family of it, by ID/FAMILY.
	Exclude map[string]*Denial
	// Need lists features that a rule demands beyond those that the caller asked for; NeedBy are those rules, by feature.
	Need   []string
	NeedBy map[string]*Rule
	// Reach is what the session may reach; nil where no guard holds.
	Reach *Reach
	// Matched are the rules that held, in the order of the file.
	Matched []*Rule
	// Allowed is the file and line of the passthrough block that lets a custom method through.
	Allowed string
}

// Excluded says why a browser family of a provider is kept out; nil when it is not.
func (d *Decision) Excluded(id, family string) *Denial {
	if x := d.Exclude[id]; x != nil {
		return x
	}
	return d.Exclude[id+"/"+family]
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

	rule *Rule
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
