package broker

import (
	"time"

	"github.com/droverhq/drover/policy"
	"github.com/droverhq/drover/proto/fault"
)

// Entry is one line of the audit log: who called what, where it went, and by which rule. It never has what was typed, what a
// page said, a token, or the query of a URL.
type Entry struct {
	Time   time.Time `json:"time"`
	Client string    `json:"client"`
	Owner  string    `json:"principal"`
	Method string    `json:"method"`
	// Custom is the custom method of provider.command.
	Custom   string `json:"provider_method,omitempty"`
	URL      string `json:"url,omitempty"`
	Rule     string `json:"rule,omitempty"`
	Provider string `json:"provider_id,omitempty"`
	// Code is ok, or the word of the error; Reason refines it.
	Code   string `json:"code"`
	Reason string `json:"reason,omitempty"`
	MS     int64  `json:"ms"`
}

func (c *call) entry(code string, err error, took time.Duration) Entry {
	return Entry{
		Time: time.Now().UTC(), Client: c.who.Principal.Name, Owner: c.who.Principal.ID, Method: c.method.Name, Custom: c.custom, URL: c.url,
		Rule: c.rule, Provider: c.provider, Code: code, Reason: fault.ReasonOf(err), MS: took.Milliseconds(),
	}
}

// bare is a URL without what may be secret: user, query and fragment. Of a scheme without a host only the scheme is told.
func bare(u policy.URL) string {
	if u.Host == "" {
		return u.Scheme + ":"
	}
	return u.Origin() + u.Path
}
