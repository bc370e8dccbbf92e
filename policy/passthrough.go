package policy

import (
	"fmt"
	"path"
	"slices"

	"github.com/hashicorp/hcl/v2"
)

// Passthrough allows custom methods by name.
type Passthrough struct {
	// Allow lists globs of custom methods.
	Allow []string
	// Clients lists globs of the clients it is for; empty for all.
	Clients []string
	// Labels lists labels of which a client must have one; empty for all.
	Labels []string
	// Providers lists globs of the providers it is for; empty for all.
	Providers []string
	// Guarded lets them through under a guard too, which what they do to a browser may lead around.
	Guarded bool
	// Where is the file and line of the block.
	Where string
}

type passSpec struct {
	At        hcl.Range `hcl:",def_range"`
	Allow     []string  `hcl:"allow,optional"`
	AllowAt   hcl.Range `hcl:"allow,attr_value_range"`
	Clients   []string  `hcl:"clients,optional"`
	ClientAt  hcl.Range `hcl:"clients,attr_value_range"`
	Labels    []string  `hcl:"labels,optional"`
	LabelsAt  hcl.Range `hcl:"labels,attr_value_range"`
	Providers []string  `hcl:"providers,optional"`
	ProvAt    hcl.Range `hcl:"providers,attr_value_range"`
	Guarded   bool      `hcl:"guarded,optional"`
}

func (l *loader) passthrough(b passSpec) {
	for _, glob := range b.Allow {
		if _, err := path.Match(glob, "x.y"); err != nil || !customGlob.MatchString(glob) {
			l.wrong(b.AllowAt, "Not a custom method", "%q is neither the name of a custom method, such as cdp.send, nor a glob such as cdp.*.", glob)
		}
	}
	for _, a := range []struct {
		list []string
		at   hcl.Range
		name string
	}{{b.Clients, b.ClientAt, "clients"}, {b.Labels, b.LabelsAt, "labels"}, {b.Providers, b.ProvAt, "providers"}} {
		if a.list != nil && len(a.list) == 0 {
			l.wrong(a.at, "Empty "+a.name, "A list that names nothing allows nothing; leave %s out for all.", a.name)
		}
	}
	for _, glob := range b.Providers {
		if !slices.ContainsFunc(l.providerIDs(), func(id string) bool { return Glob(glob, id) }) {
			l.wrong(b.ProvAt, "Unknown provider", "No provider block and no plugin gives %q.%s", glob, didYouMean(glob, l.providerIDs()))
		}
	}
	l.config.Passthrough = append(l.config.Passthrough, Passthrough{Allow: b.Allow, Clients: b.Clients, Labels: b.Labels, Providers: b.Providers, Guarded: b.Guarded, Where: place(b.At)})
}

// allows says whether a block allows a custom method to a client of a provider. A call that names no provider yet is only
// allowed by a block that is for all of them.
func (p *Passthrough) allows(f *Facts) bool {
	any := func(globs []string, word string) bool {
		return len(globs) == 0 || slices.ContainsFunc(globs, func(g string) bool { return Glob(g, word) })
	}
	if !any(p.Clients, f.Client.Name) || (len(p.Labels) > 0 && !slices.ContainsFunc(p.Labels, func(l string) bool { return slices.Contains(f.Client.Labels, l) })) {
		return false
	}
	if len(p.Providers) > 0 && (len(f.Providers) == 0 || !slices.ContainsFunc(f.Providers, func(c Candidate) bool { return any(p.Providers, c.ID) })) {
		return false
	}
	return slices.ContainsFunc(p.Allow, func(g string) bool {
		ok, err := path.Match(g, f.Custom)
		return err == nil && ok
	})
}

// passthrough refuses every custom method that no passthrough block allows by name, and under a guard those that are not
// allowed there: a browser that is told what to do in its own words may be led around a guard.
func (p *Policy) passthrough(f *Facts, reach *Reach) (string, *Denial) {
	outside := false
	for i := range p.config.Passthrough {
		b := &p.config.Passthrough[i]
		switch {
		case !b.allows(f):
		case b.Guarded || !reach.Contained():
			return b.Where, nil
		default:
			outside = true
		}
	}
	if outside {
		name, where := reach.Guard()
		return "", &Denial{
			Reason: ReasonPolicy, Rule: name, Where: where,
			Message: fmt.Sprintf("the custom method %s is not allowed under the guard %q at %s, which it may lead around", f.Custom, name, where),
			Hint:    "an admin allows it with guarded = true in the passthrough block",
		}
	}
	return "", &Denial{
		Reason:  ReasonPolicy,
		Message: "the custom method " + f.Custom + " is not allowed",
		Hint:    "an admin allows it with passthrough { allow = [\"" + f.Custom + "\"] }",
	}
}
