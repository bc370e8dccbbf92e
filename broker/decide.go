package broker

import (
	"github.com/droverhq/drover/policy"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// allow asks the policy about a call on a session, or about a provider, and opens its URLs exactly as they were checked.
func (b *Broker) allow(c *call, s *session, row *Row, custom string) error {
	f := policy.Facts{Method: c.method.Name, ReadOnly: c.method.Spec.GetReadOnly(), Custom: custom, Client: client(c.who)}
	c.custom = custom
	switch {
	case s != nil:
		seat := s.seat
		seat.Sessions, seat.Latency = b.held(seat.ID), b.health.latency(seat.ID)
		f.Session, f.Providers = s.facts, []policy.Candidate{seat}
	case row != nil:
		f.Providers = []policy.Candidate{b.seat(row)}
	}
	for _, field := range c.method.Spec.GetUrlFields() {
		text := catalog.Texts(c.req, field)
		if len(text) == 0 {
			continue
		}
		u, err := policy.ParseURL(text[0])
		if err != nil {
			return fault.New(fault.InvalidRequest, "%s is not an absolute URL", field).Field(field).
				Hint("write it with its scheme, such as https://example.com/").Cause(err)
		}
		setText(c.req, field, u.Text)
		f.URLs = append(f.URLs, u)
		if c.url == "" {
			c.url = bare(u)
		}
	}
	return b.decide(c, s, f)
}

// decide asks the policy, and notes what it decided by.
func (b *Broker) decide(c *call, s *session, f policy.Facts) error {
	d := b.policy.Load().Decide(f)
	b.recent.add(f)
	c.decided(&d)
	if d.Denied == nil && s != nil && s.proxy == nil && d.Reach.Contained() && c.method.Name != closeMethod.Name {
		name, where := d.Reach.Guard()
		c.rule = where
		return fault.New(fault.PermissionDenied, "the guard %q at %s holds for the session now, which was made before it", name, where).
			Reason(policy.ReasonPolicy).With("rule", name).With("where", where).Hint("close it and ensure it again")
	}
	return denied(d.Denied)
}

// decided notes where the rule stands that a decision was made by.
func (c *call) decided(d *policy.Decision) {
	c.rule, c.ruleName, c.outcome = "", "", "allowed"
	switch {
	case d.Denied != nil:
		c.rule, c.ruleName, c.outcome = d.Denied.Where, d.Denied.Rule, "denied"
	case d.Allowed != "":
		c.rule = d.Allowed
	case len(d.Matched) > 0:
		c.rule, c.ruleName = d.Matched[0].Where, d.Matched[0].Name
	}
}

func client(c *Caller) policy.Client {
	return policy.Client{Name: c.Principal.Name, Labels: c.Principal.Labels}
}

// denied makes the fault of a denial; nil for none.
func denied(d *policy.Denial) error {
	if d == nil {
		return nil
	}
	e := fault.New(fault.PermissionDenied, "%s", d.Message).Reason(d.Reason)
	switch {
	case d.Hint != "":
		e.Hint("%s", d.Hint)
	case d.Where != "":
		e.Hint("it stands at %s", d.Where)
	}
	if d.Rule != "" {
		e.With("rule", d.Rule)
	}
	if d.Where != "" {
		e.With("where", d.Where)
	}
	return e
}
