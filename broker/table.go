package broker

import (
	"cmp"
	"slices"
	"strings"

	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// Table is every provider as it was known at one moment. It never changes; the broker swaps it for a newer one.
type Table struct {
	rows   []*Row         // the order they are tried in, other things being equal
	policy *policy.Policy // under which it was made
}

// Row is one provider of a table.
type Row struct {
	ID     string
	Plugin string
	// Only is the family or label that the config keeps it to.
	Only string
	// Disabled says that the config keeps it out.
	Disabled bool
	// Rank is the config's order, or the default one; smaller is earlier.
	Rank int
	// Preferred says that the config's prefer names it.
	Preferred bool
	// Describe is nil for a provider that never spoke.
	Describe *browserv1.DescribeResponse
	Status   *browserv1.StatusResponse
	// Held says that it failed of late again and again, so that all others are tried first.
	Held bool
	// Failure is why it could not be asked, when it was tried and did not speak.
	Failure string

	source Source
}

// NewTable makes a table, its rows in the order of their rank and, among equals, by name.
func NewTable(rows []*Row) *Table {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), strings.Compare(a.ID, b.ID))
	})
	return &Table{rows: rows}
}

// Row gives the provider of an id; nil where there is none.
func (t *Table) Row(id string) *Row {
	for _, r := range t.rows {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// Candidate is a browser of a provider that a session could get.
type Candidate struct {
	Provider string
	Family   string
	Label    string
	// Reasons say why it cannot be; none when it can.
	Reasons []Reason
	// Substituted says that it is not the product that was asked for, but of its family.
	Substituted bool
	// Missing lists the preferred features that it lacks.
	Missing []string

	row     *Row
	browser *browserv1.Browser
	order   int // among the browsers of its provider
	alone   bool
}

// Reason is why a candidate was left out.
type Reason struct {
	// Code is provider, disabled, browser, attach, policy, unavailable, feature, method, containment or failed.
	Code string `json:"reason"`
	// Message says it in a few words.
	Message string `json:"message"`
	// Rule names the rule that says so, and Where its file and line, where one does.
	Rule  string `json:"rule,omitempty"`
	Where string `json:"where,omitempty"`
}

// Choice is what a pick came to.
type Choice struct {
	// Kept lists the candidates that fit, the best one first.
	Kept []*Candidate
	// Rejected lists the others, each with its reasons.
	Rejected []*Candidate
	// Pending lists providers that never spoke and that could win, so that they have to be asked first.
	Pending []*Row
}

// Pick says which browsers of which providers fit what is asked, in the order they are to be tried, and why the others do
// not. It depends on nothing but the table and its arguments.
func (t *Table) Pick(ask *browserv1.EnsureSessionRequest, d policy.Decision) Choice {
	var c Choice
	want := wanted(ask.GetBrowserPreference())
	for _, r := range t.rows {
		if reason, out := r.ruledOut(ask, d); out {
			c.Rejected = append(c.Rejected, &Candidate{Provider: r.ID, Reasons: []Reason{reason}, row: r})
			continue
		}
		if r.Describe == nil && r.Failure == "" && r.Status.GetAvailability() != browserv1.Availability_AVAILABILITY_UNAVAILABLE {
			c.Pending = append(c.Pending, r)
			continue
		}
		for _, k := range r.candidates() {
			k.filter(ask, want, d)
			if len(k.Reasons) > 0 {
				c.Rejected = append(c.Rejected, k)
			} else {
				c.Kept = append(c.Kept, k)
			}
		}
	}
	c.dropSubstitutes(ask)
	slices.SortStableFunc(c.Kept, func(a, b *Candidate) int { return before(a, b, d) })
	c.dropPending(d)
	return c
}

// before is the order of candidates: those that did not fail of late, what a rule prefers, what the config prefers, those with more of the preferred
// features, the default order, ready before degraded, the better tier, the provider's name, the order of its browsers.
func before(a, b *Candidate, d policy.Decision) int {
	return cmp.Or(
		cmp.Compare(held(a.row), held(b.row)),
		cmp.Compare(a.preference(d), b.preference(d)),
		cmp.Compare(a.configured(), b.configured()),
		cmp.Compare(len(a.Missing), len(b.Missing)),
		cmp.Compare(a.row.Rank, b.row.Rank),
		cmp.Compare(degraded(a.row), degraded(b.row)),
		-cmp.Compare(a.row.Describe.GetCertificationTier(), b.row.Describe.GetCertificationTier()),
		strings.Compare(a.Provider, b.Provider),
		cmp.Compare(a.order, b.order),
	)
}

func (k *Candidate) preference(d policy.Decision) int {
	if i := slices.Index(d.Prefer, k.Provider); i >= 0 {
		return i
	}
	return len(d.Prefer)
}

func (k *Candidate) configured() int {
	if k.row.Preferred {
		return k.row.Rank
	}
	return 1 << 30
}

func held(r *Row) int {
	if r.Held {
		return 1
	}
	return 0
}

func degraded(r *Row) int {
	if r.Status.GetAvailability() == browserv1.Availability_AVAILABILITY_DEGRADED {
		return 1
	}
	return 0
}

// dropSubstitutes leaves a stand-in for a product out where the product itself is there.
func (c *Choice) dropSubstitutes(ask *browserv1.EnsureSessionRequest) {
	exact := slices.ContainsFunc(c.Kept, func(k *Candidate) bool { return !k.Substituted })
	if !exact {
		return
	}
	c.Kept = slices.DeleteFunc(c.Kept, func(k *Candidate) bool {
		if k.Substituted {
			k.reject("browser", "%s is not %s, which another provider has", k.Label, ask.GetBrowserPreference())
			c.Rejected = append(c.Rejected, k)
		}
		return k.Substituted
	})
}

// dropPending forgets the providers that could not win against what is known already.
func (c *Choice) dropPending(d policy.Decision) {
	if len(c.Kept) == 0 {
		return
	}
	best := c.Kept[0]
	if best.Substituted || len(best.Missing) > 0 {
		return
	}
	c.Pending = slices.DeleteFunc(c.Pending, func(r *Row) bool {
		k := &Candidate{Provider: r.ID, row: r}
		return cmp.Or(
			cmp.Compare(held(r), held(best.row)), cmp.Compare(k.preference(d), best.preference(d)), cmp.Compare(r.Rank, best.row.Rank), strings.Compare(r.ID, best.Provider),
		) > 0
	})
}
