package broker

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// Explanation says where a call would go, and why.
type Explanation struct {
	// Method is what would be called, and Client who would call.
	Method string `json:"method"`
	Client string `json:"client"`
	// Allowed says that the policy lets it through; Denied says why not.
	Allowed bool     `json:"allowed"`
	Denied  *Refusal `json:"denied,omitempty"`
	// Provider is who would answer: a provider, or the broker itself. It is empty where nobody would.
	Provider string `json:"provider_id"`
	// Rule is the file and line of the rule that was decided by, where one was.
	Rule string `json:"rule,omitempty"`
	// Why says in a sentence how it was chosen.
	Why string `json:"why"`
	// Notes are what may have been meant otherwise in the question.
	Notes []string `json:"notes,omitempty"`
	// Candidates are the browsers of the providers for a new session: those that fit first, in the order they are tried.
	Candidates []ExplainedCandidate `json:"candidates,omitempty"`
}

// Refusal is a denial of the policy.
type Refusal struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Rule    string `json:"rule,omitempty"`
	Where   string `json:"where,omitempty"`
}

// ExplainedCandidate is one browser of one provider.
type ExplainedCandidate struct {
	Provider string   `json:"provider_id"`
	Browser  string   `json:"browser"`
	Kept     bool     `json:"kept"`
	Reasons  []Reason `json:"reasons,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Explain says where a call of this caller would go, and does nothing else: no session is made, no call is sent. A
// provider that never spoke is started and asked what it is, as the call itself would do. Providers without which the question is
// put are taken for unavailable.
func (b *Broker) Explain(ctx context.Context, who *Caller, m *catalog.Method, req proto.Message, without ...string) (*Explanation, error) {
	checked := proto.Clone(req)
	unnamed := m.NeedsSession() && catalog.SessionID(req) == ""
	if unnamed {
		catalog.SetSessionID(checked, "any")
	}
	if err := m.Check(checked); err != nil {
		return nil, err
	}
	x := &Explanation{Method: m.Name, Client: who.Principal.Name}
	c := &call{who: who, method: m, req: proto.Clone(req), without: without}
	if ask, ok := c.req.(*browserv1.EnsureSessionRequest); ok {
		return x, b.explainEnsure(ctx, c, ask, x)
	}
	var s *session
	var row *Row
	if id := catalog.SessionID(req); id != "" {
		var err error
		if s, err = b.sessions.find(who, id); err != nil {
			return nil, err
		}
		x.Provider, x.Why = s.life.ID(), "the session "+s.client+" is served by it"
	} else if unnamed {
		x.Provider, x.Why = "any", "no session is named; rules that read session or provider may say more of one"
	} else if m.Routed() && !ofProviders(m) || m == commandMethod {
		var err error
		if row, err = b.aboutProvider(catalog.ProviderID(req)); err != nil {
			return nil, err
		}
		x.Provider, x.Why = row.ID, "it is the provider that the call is about"
	} else {
		x.Provider, x.Why = OwnID, "the broker answers it itself"
	}
	custom := ""
	if r, ok := req.(*browserv1.CommandRequest); ok {
		custom = r.GetProviderMethod()
	}
	err := b.allow(c, s, row, custom)
	x.Rule = c.rule
	return x, x.judge(err)
}

func (b *Broker) explainEnsure(ctx context.Context, c *call, ask *browserv1.EnsureSessionRequest, x *Explanation) error {
	if ask.GetProviderId() == OwnID {
		ask.ProviderId = nil
	}
	b.known(ctx, "", func(row *Row) bool { return row.Describe != nil || slices.Contains(c.without, row.ID) })
	r, err := b.route(ctx, c, ask)
	if err != nil {
		return x.judge(err)
	}
	x.Allowed, x.Rule = true, c.rule
	for _, k := range r.Kept {
		e := ExplainedCandidate{Provider: k.Provider, Browser: k.title(), Kept: true}
		for _, w := range k.warnings(ask) {
			e.Warnings = append(e.Warnings, w.GetMessage())
		}
		x.Candidates = append(x.Candidates, e)
	}
	for _, k := range r.Rejected {
		e := ExplainedCandidate{Provider: k.Provider, Reasons: k.Reasons}
		if k.Family != "" || k.Label != "" { // a provider that is ruled out as a whole has none
			e.Browser = k.title()
		}
		x.Candidates = append(x.Candidates, e)
	}
	for _, row := range r.table.rows {
		if !slices.ContainsFunc(x.Candidates, func(e ExplainedCandidate) bool { return e.Provider == row.ID }) {
			x.Candidates = append(x.Candidates, ExplainedCandidate{Provider: row.ID, Reasons: []Reason{{
				Code: "not_asked", Message: "it has not said yet what it is, and it would not come first",
			}}})
		}
	}
	if len(r.Kept) == 0 {
		x.Why = fault.From(r.none(ask)).Message
		return nil
	}
	x.Provider = r.Kept[0].Provider
	x.Why = why(r)
	return nil
}

// why says what put the first candidate before the second.
func why(r *route) string {
	if len(r.Kept) == 1 {
		return "it is the only one that fits"
	}
	a, b := r.Kept[0], r.Kept[1]
	for _, k := range r.Kept[1:] {
		if k.Provider != a.Provider {
			b = k
			break
		}
	}
	switch {
	case a.Provider == b.Provider:
		return "of its provider's browsers it is offered first"
	case held(a.row) < held(b.row):
		return "the next one failed of late again and again"
	case a.preference(r.decision) < b.preference(r.decision):
		return fmt.Sprintf("the rule %q at %s prefers it", r.decision.PreferBy.Name, r.decision.PreferBy.Where)
	case a.configured() < b.configured():
		return "the config prefers it"
	case len(a.Missing) < len(b.Missing):
		return "it has more of the preferred features"
	case a.row.Rank < b.row.Rank:
		return "it comes first in the default order"
	case degraded(a.row) < degraded(b.row):
		return "it is ready and the next one is degraded"
	case a.row.Describe.GetCertificationTier() > b.row.Describe.GetCertificationTier():
		return "the conformance suite found it better"
	}
	return "its name comes first"
}

// judge notes a denial; every other error is the caller's.
func (x *Explanation) judge(err error) error {
	x.Allowed = err == nil
	if fault.CodeOf(err) != fault.PermissionDenied {
		return err
	}
	e := fault.From(err)
	x.Denied = &Refusal{Reason: e.ReasonWord(), Message: e.Message}
	x.Denied.Rule, _ = e.Details["rule"].(string)
	x.Denied.Where, _ = e.Details["where"].(string)
	x.Provider = ""
	return nil
}
