package policy

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Effects of a rule.
const (
	EffectAllow = "allow"
	EffectDeny  = "deny"
)

// Rule is one rule, in the order of the file.
type Rule struct {
	Name string
	// Effect is allow, deny, or empty for neither.
	Effect string
	// Prefer lists provider ids that are tried first.
	Prefer []string
	// Exclude lists provider ids that are left out.
	Exclude []string
	// Require lists features that a provider must have.
	Require []string
	// Reason is what a denied caller is told.
	Reason string
	// Where is the file and line of the block.
	Where string

	when condition
}

// When gives the rule's condition as it was written; empty for one that always holds.
func (r *Rule) When() string { return r.when.text }

type ruleSpec struct {
	Name      string         `hcl:"name,label"`
	At        hcl.Range      `hcl:",def_range"`
	NameAt    hcl.Range      `hcl:"name,label_range"`
	When      *hcl.Attribute `hcl:"when,optional"`
	Effect    *string        `hcl:"effect,optional"`
	EffectAt  hcl.Range      `hcl:"effect,attr_value_range"`
	Prefer    []string       `hcl:"prefer,optional"`
	PreferAt  hcl.Range      `hcl:"prefer,attr_value_range"`
	Exclude   []string       `hcl:"exclude,optional"`
	ExcludeAt hcl.Range      `hcl:"exclude,attr_value_range"`
	Require   []string       `hcl:"require,optional"`
	RequireAt hcl.Range      `hcl:"require,attr_value_range"`
	Reason    string         `hcl:"reason,optional"`
}

func (l *loader) rule(s *ruleSpec) {
	r := &Rule{Name: s.Name, Prefer: s.Prefer, Exclude: s.Exclude, Require: s.Require, Reason: strings.TrimRight(s.Reason, ". "), Where: place(s.At)}
	l.named(s.Name, s.NameAt, "rule")
	for _, o := range l.config.Rules {
		if o.Name == s.Name {
			l.wrong(s.NameAt, "Duplicate rule", "There is a rule %q at %s already.", s.Name, o.Where)
		}
	}
	r.when = l.condition(s.When, objects, "rule")
	if s.Effect != nil {
		r.Effect = *s.Effect
		switch r.Effect {
		case EffectAllow, EffectDeny:
		case "confirm":
			l.wrong(s.EffectAt, "Unknown effect", "confirm is not there yet; an effect is allow or deny.")
		default:
			l.wrong(s.EffectAt, "Unknown effect", "An effect is allow or deny, not %q.%s", r.Effect, didYouMean(r.Effect, []string{EffectAllow, EffectDeny}))
		}
	}
	l.providers(s.Prefer, s.PreferAt, "prefer")
	l.providers(s.Exclude, s.ExcludeAt, "exclude")
	l.features(s.Require, s.RequireAt)
	switch {
	case s.Effect == nil && len(s.Prefer)+len(s.Exclude)+len(s.Require) == 0:
		l.wrong(s.At, "Rule without effect", "The rule %q says nothing: give it effect, prefer, exclude or require.", s.Name)
	case r.Effect == EffectDeny && len(s.Prefer)+len(s.Exclude)+len(s.Require) > 0:
		l.wrong(s.At, "Deny with more", "The rule %q denies, so that its prefer, exclude and require never count.", s.Name)
	case s.Reason != "" && r.Effect != EffectDeny && len(s.Exclude) == 0:
		l.wrong(s.At, "Reason without denial", "The rule %q has a reason, but denies and excludes nothing.", s.Name)
	}
	l.reachable(r, s.At)
	l.config.Rules = append(l.config.Rules, r)
}

// reachable refuses a rule that can never count, whatever is called.
func (l *loader) reachable(r *Rule, at hcl.Range) {
	if r.when.never {
		l.wrong(at, "Unreachable rule", "The condition of the rule %q %s.", r.Name, r.when.nothing())
		return
	}
	for _, o := range l.config.Rules {
		switch {
		case !o.when.covers(&r.when):
		case o.Effect == EffectDeny:
			l.wrong(at, "Unreachable rule", "The rule %q at %s denies everything that the rule %q is about.", o.Name, o.Where, r.Name)
			return
		case len(o.Prefer) > 0 && len(r.Prefer) > 0 && r.Effect == "" && len(r.Exclude)+len(r.Require) == 0 && !o.when.reads["provider"]:
			l.wrong(at, "Unreachable rule", "The rule %q at %s matches first, and the first prefer counts.", o.Name, o.Where)
			return
		}
	}
}

// named checks the name of a rule, guard or client.
func (l *loader) named(name string, at hcl.Range, kind string) {
	if strings.TrimSpace(name) == "" || len(name) > 100 {
		l.wrong(at, "Not a name", "A %s needs a name of at most 100 characters.", kind)
	}
}

// providerIDs are the ids that a file's blocks give; without any, those of the binaries that were found and the usual ones.
func (l *loader) providerIDs() []string {
	if len(l.providerNames) > 0 {
		return l.providerNames
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(defaultOrder, l.known.Plugins))))
}

// providers checks a list of provider ids.
func (l *loader) providers(ids []string, at hcl.Range, what string) {
	if ids != nil && len(ids) == 0 {
		l.wrong(at, "Empty "+what, "A list that names nothing says nothing; leave %s out.", what)
	}
	for i, id := range ids {
		switch {
		case slices.Contains(ids[:i], id):
			l.wrong(at, "Duplicate provider", "%q stands twice in %s.", id, what)
		case !slices.Contains(l.providerIDs(), id):
			l.wrong(at, "Unknown provider", "No provider block and no plugin gives %q.%s", id, didYouMean(id, l.providerIDs()))
		}
	}
}

// features checks a list of features.
func (l *loader) features(names []string, at hcl.Range) {
	if names != nil && len(names) == 0 {
		l.wrong(at, "Empty require", "A list that names nothing says nothing; leave require out.")
	}
	for i, f := range names {
		switch {
		case slices.Contains(names[:i], f):
			l.wrong(at, "Duplicate feature", "%q stands twice in require.", f)
		case len(l.known.Features) > 0 && !slices.Contains(l.known.Features, f):
			l.wrong(at, "Unknown feature", "The protocol has no feature %q.%s", f, didYouMean(f, l.known.Features))
		}
	}
}
