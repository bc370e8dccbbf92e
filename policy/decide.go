package policy

import (
	"fmt"
	"slices"
)

// Decide says what the policy makes of the facts: refused or not, which providers first, which not at all.
//
// Rules run in the order of the file. No match allows; any deny wins, and the first one's reason is told; what rules
// exclude and require adds up; the first prefer that matches counts. A rule that reads provider.* is asked once for every
// provider and browser family, and its deny keeps that one out alone; where there is only the session's own provider, that
// denies the call. A condition that cannot be computed denies.
func (p *Policy) Decide(f Facts) Decision {
	f.Client = p.config.Known(f.Client)
	e := &evaluation{policy: p, facts: &f}
	d := &e.out
	d.Reach = e.reach()
	for _, u := range f.URLs {
		if d.Denied = d.Reach.Judge(u); d.Denied != nil {
			return *d
		}
	}
	if f.Custom != "" {
		if d.Allowed, d.Denied = p.passthrough(&f, d.Reach); d.Denied != nil {
			return *d
		}
	}
	for _, r := range p.config.Rules {
		if d.Denied = e.apply(r); d.Denied != nil {
			return *d
		}
	}
	if f.Method != ensureMethod && len(f.Providers) == 1 {
		d.Denied = d.against(&f.Providers[0])
	}
	return *d
}

// Reach says what the guards let a session reach, by its client and session alone.
func (p *Policy) Reach(f Facts) *Reach {
	f.Client = p.config.Known(f.Client)
	return (&evaluation{policy: p, facts: &f}).reach()
}

// reach gathers the guards that hold. One whose condition cannot be computed holds.
func (e *evaluation) reach() *Reach {
	var r *Reach
	for _, g := range e.policy.config.Guards {
		if hold, err := e.holds(&g.when, nil, "", &noURL); hold || err != nil {
			if r == nil {
				r = &Reach{}
			}
			r.guards = append(r.guards, g)
		}
	}
	return r
}

// against makes a denial of what rules say against the one provider that there is.
func (d *Decision) against(c *Candidate) *Denial {
	families := c.Families
	if len(families) == 0 {
		families = []string{""}
	}
	for _, family := range families {
		if x := d.Excluded(c.ID, family); x != nil && x.rule != nil {
			return x.rule.denial("")
		}
	}
	for _, feature := range d.Need {
		if r := d.NeedBy[feature]; !slices.Contains(c.Features, feature) {
			return &Denial{
				Reason: ReasonPolicy, Message: fmt.Sprintf("the rule %q requires the feature %s, which %s lacks", r.Name, feature, c.ID),
				Rule: r.Name, Where: r.Where,
			}
		}
	}
	return nil
}

// evaluation is one decision under way.
type evaluation struct {
	policy *Policy
	facts  *Facts
	out    Decision

	view view
}

var noURL URL

// apply asks one rule, once for every candidate when it reads provider.*.
func (e *evaluation) apply(r *Rule) *Denial {
	if r.when.never {
		return nil
	}
	if !r.when.reads["provider"] {
		hold, err := e.any(&r.when, nil, "")
		switch {
		case err != nil:
			return broken("rule", r.Name, r.Where, err)
		case !hold:
			return nil
		case r.Effect == EffectDeny:
			return r.denial("")
		}
		e.add(r)
		return nil
	}
	matched := false
	for i := range e.facts.Providers {
		c := &e.facts.Providers[i]
		families := c.Families
		if len(families) == 0 || !r.when.families {
			families = []string{first(c.Families)}
		}
		hits := 0
		for _, family := range families {
			hold, err := e.any(&r.when, c, family)
			if err != nil {
				return broken("rule", r.Name, r.Where, err)
			}
			if !hold {
				continue
			}
			hits++
			if r.Effect == EffectDeny {
				e.exclude(c.ID+"/"+family, r)
			}
		}
		if hits == len(families) && r.Effect == EffectDeny {
			e.exclude(c.ID, r)
		}
		matched = matched || hits > 0
	}
	if !matched {
		return nil
	}
	if r.Effect == EffectDeny {
		e.out.Matched = append(e.out.Matched, r)
		return nil
	}
	e.add(r)
	return nil
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// add notes what a rule that holds says.
func (e *evaluation) add(r *Rule) {
	d := &e.out
	d.Matched = append(d.Matched, r)
	if len(r.Prefer) > 0 && d.PreferBy == nil {
		d.Prefer, d.PreferBy = r.Prefer, r
	}
	for _, id := range r.Exclude {
		e.exclude(id, r)
	}
	for _, f := range r.Require {
		if d.NeedBy[f] == nil {
			if d.NeedBy == nil {
				d.NeedBy = map[string]*Rule{}
			}
			d.Need, d.NeedBy[f] = append(d.Need, f), r
		}
	}
}

func (e *evaluation) exclude(key string, r *Rule) {
	if e.out.Exclude == nil {
		e.out.Exclude = map[string]*Denial{}
	}
	if e.out.Exclude[key] == nil {
		e.out.Exclude[key] = r.denial(key)
	}
}

// denial is what a rule's refusal says, of the whole call or of one provider.
func (r *Rule) denial(provider string) *Denial {
	message := fmt.Sprintf("the rule %q denies it", r.Name)
	if provider != "" {
		message = fmt.Sprintf("the rule %q keeps it out", r.Name)
	}
	if r.Reason != "" {
		message += ": " + r.Reason
	}
	return &Denial{Reason: ReasonPolicy, Message: message, Rule: r.Name, Where: r.Where, rule: r}
}

// broken denies for a condition that cannot be computed.
func broken(kind, name, where string, err error) *Denial {
	return &Denial{Reason: ReasonPolicy, Message: fmt.Sprintf("the condition of the %s %q cannot be computed: %v", kind, name, err), Rule: name, Where: where}
}

// any says whether a condition holds for any URL of the call.
func (e *evaluation) any(c *condition, k *Candidate, family string) (bool, error) {
	if len(e.facts.URLs) == 0 || !c.reads["url"] {
		return e.holds(c, k, family, &noURL)
	}
	for i := range e.facts.URLs {
		if hold, err := e.holds(c, k, family, &e.facts.URLs[i]); hold || err != nil {
			return hold, err
		}
	}
	return false, nil
}

// holds computes a condition.
func (e *evaluation) holds(c *condition, k *Candidate, family string, u *URL) (bool, error) {
	if c.run == nil {
		return true, nil
	}
	e.view.facts, e.view.url, e.view.candidate, e.view.family = e.facts, u, k, family
	x, err := c.run(&e.view)
	return x.yes, err
}
