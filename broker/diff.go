package broker

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/droverhq/drover/policy"
)

// recentDecisions is how many decisions are remembered for the question what another policy would have said to them.
const recentDecisions = 256

// recent holds the facts of the last decisions.
type recent struct {
	mu    sync.Mutex
	facts []policy.Facts
	next  int
}

func (r *recent) add(f policy.Facts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.facts) < recentDecisions {
		r.facts = append(r.facts, f)
		return
	}
	r.facts[r.next] = f
	r.next = (r.next + 1) % recentDecisions
}

func (r *recent) all() []policy.Facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(append([]policy.Facts{}, r.facts[r.next:]...), r.facts[:r.next]...)
}

// Difference is what another policy would say otherwise.
type Difference struct {
	// Session is the id of a live session that it would not be made again as it is; empty of a recent decision.
	Session string `json:"session_id,omitempty"`
	Client  string `json:"client"`
	Method  string `json:"method"`
	URL     string `json:"url,omitempty"`
	// Before and After are what the two policies say: allowed, denied with the reason, or the provider.
	Before string `json:"before"`
	After  string `json:"after"`
	// Where is the file and line of the rule that decides it in the other policy.
	Where string `json:"where,omitempty"`
	// Count is how many recent decisions it stands for.
	Count int `json:"count"`
}

// Diff says what another policy would change for the live sessions and the recent decisions. Sessions stay as they are
// when it comes into force; what is said of them holds for their next calls.
func (b *Broker) Diff(other *policy.Policy) []Difference {
	now := b.policy.Load()
	out := []Difference{}
	for _, s := range b.sessions.all(func(s *session) bool { return s.lostError() == nil }) {
		f := policy.Facts{Method: ensureMethod.Name, Client: policy.Client{Name: s.who.Name, Labels: s.who.Labels}, Session: s.facts, Providers: []policy.Candidate{s.seat}}
		before, _ := outcome(now, f)
		after, where := outcome(other, f)
		if reach := other.Reach(f); s.proxy == nil && reach.Contained() && !strings.HasPrefix(after, "denied") {
			var name string
			name, where = reach.Guard()
			after = fmt.Sprintf("refused until it is made again, for the guard %q holds", name)
		}
		if before != after {
			out = append(out, Difference{Session: s.id, Client: s.who.Name, Method: f.Method, Before: before, After: after, Where: where, Count: 1})
		}
	}
	seen := map[Difference]int{}
	for _, f := range b.recent.all() {
		d := Difference{Client: f.Client.Name, Method: f.Method}
		if len(f.URLs) > 0 {
			d.URL = bare(f.URLs[0])
		}
		d.Before, _ = outcome(now, f)
		d.After, d.Where = outcome(other, f)
		if d.Before == d.After {
			continue
		}
		if i, ok := seen[d]; ok {
			out[i].Count++
			continue
		}
		seen[d] = len(out)
		d.Count = 1
		out = append(out, d)
		d.Count = 0
	}
	return out
}

// outcome is what a policy says to facts, in a few words.
func outcome(p *policy.Policy, f policy.Facts) (words, where string) {
	f.Providers = slices.DeleteFunc(slices.Clone(f.Providers), func(c policy.Candidate) bool { return !p.Config().Gives(c.ID, c.Plugin) })
	d := p.Decide(f)
	if d.Denied != nil {
		return "denied: " + d.Denied.Message, d.Denied.Where
	}
	if f.Method != ensureMethod.Name {
		return "allowed", ""
	}
	kept, rejected := p.Order(d, f.Providers)
	if len(kept) > 0 {
		if d.PreferBy != nil {
			where = d.PreferBy.Where
		}
		return kept[0].ID, where
	}
	if len(rejected) > 0 && rejected[0].By != nil {
		return "no provider: " + rejected[0].Message, rejected[0].By.Where
	}
	return "no provider", ""
}
