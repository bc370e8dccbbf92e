package policy

import (
	"cmp"
	"slices"
	"strings"
)

// tierWords are the certification tiers, the best one last.
var tierWords = []string{"candidate", "experimental", "compatible", "certified"}

// Rejection is why a provider was left out.
type Rejection struct {
	Provider string
	Message  string
	By       *Denial
}

// Order says which providers fit a decision, in the order they are tried, and why the others do not, as far as the policy
// decides it: what a request itself demands, and the browsers that a provider offers, are the broker's business. The order
// is: what a rule prefers, what the config prefers, the default order, ready before degraded, the tier, the name.
func (p *Policy) Order(d Decision, candidates []Candidate) (kept []Candidate, rejected []Rejection) {
	for _, c := range candidates {
		if why := p.against(&d, &c); why != nil {
			rejected = append(rejected, *why)
		} else {
			kept = append(kept, c)
		}
	}
	slices.SortStableFunc(kept, func(a, b Candidate) int {
		return cmp.Or(
			cmp.Compare(index(d.Prefer, a.ID), index(d.Prefer, b.ID)),
			cmp.Compare(p.config.Rank(a.ID, a.Plugin), p.config.Rank(b.ID, b.Plugin)),
			cmp.Compare(index(availabilities, or(a.Availability, "ready")), index(availabilities, or(b.Availability, "ready"))),
			-cmp.Compare(index(tierWords, or(a.Tier, "candidate")), index(tierWords, or(b.Tier, "candidate"))),
			strings.Compare(a.ID, b.ID),
		)
	})
	return kept, rejected
}

var availabilities = []string{"ready", "degraded"}

func index(list []string, word string) int {
	if i := slices.Index(list, word); i >= 0 {
		return i
	}
	return len(list)
}

// against is the first reason to leave a provider out.
func (p *Policy) against(d *Decision, c *Candidate) *Rejection {
	if b := p.config.Provider(c.ID); b != nil && b.Disabled {
		return &Rejection{c.ID, "the config keeps it out", nil}
	}
	if x := d.Exclude[c.ID]; x != nil {
		return &Rejection{c.ID, x.Message, x}
	}
	if len(c.Families) > 0 {
		var last *Denial
		left := false
		for _, f := range c.Families {
			if x := d.Exclude[c.ID+"/"+f]; x != nil {
				last = x
			} else {
				left = true
			}
		}
		if !left {
			return &Rejection{c.ID, last.Message, last}
		}
	}
	if c.Availability == "unavailable" {
		return &Rejection{c.ID, "it is unavailable", nil}
	}
	for _, f := range d.Need {
		if r := d.NeedBy[f]; !slices.Contains(c.Features, f) {
			return &Rejection{c.ID, "it lacks the feature " + f, &Denial{Reason: ReasonPolicy, Message: "it lacks the feature " + f, Rule: r.Name, Where: r.Where}}
		}
	}
	if d.Reach.Contained() && !slices.Contains(c.Features, ContainmentProxy) && !slices.Contains(c.Features, ContainmentHooks) {
		return &Rejection{c.ID, "it cannot keep a session inside a guard", nil}
	}
	return nil
}

// Features by which a provider says that it keeps a session inside its guards.
const (
	ContainmentProxy = "containment_proxy"
	ContainmentHooks = "containment_hooks"
)
