package broker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// route is a choice together with what it was made from.
type route struct {
	Choice
	table    *Table
	decision policy.Decision
}

// refresh takes a new table from what every source knows now, and swaps it in.
func (b *Broker) refresh() *Table {
	b.applying.RLock()
	p, sources := b.policy.Load(), *b.sources.Load()
	b.applying.RUnlock()
	config := p.Config()
	var rows []*Row
	for _, s := range sources {
		r := &Row{ID: s.ID(), Plugin: s.ID(), source: s, Status: s.Status()}
		if d, ok := s.Describe(); ok {
			r.Describe = d
		}
		if p := config.Provider(r.ID); p != nil {
			r.Plugin, r.Only, r.Disabled = p.Plugin, p.Kind(), p.Disabled
		}
		r.Rank = config.Rank(r.ID, r.Plugin)
		r.Held = b.health.held(r.ID)
		r.Preferred = slices.Contains(config.Prefer, r.ID)
		rows = append(rows, r)
	}
	t := NewTable(rows)
	t.policy = p
	b.table.Store(t)
	return t
}

// route asks the policy and the table which providers fit, the best first. Those that never spoke and could win are
// started and asked, one after another, until it is clear.
func (b *Broker) route(ctx context.Context, c *call, ask *browserv1.EnsureSessionRequest) (*route, error) {
	failed := map[string]string{}
	for {
		r := &route{table: b.refresh()}
		for _, row := range r.table.rows {
			row.Failure = failed[row.ID]
			if slices.Contains(c.without, row.ID) {
				row.Failure = "the question leaves it out"
			}
		}
		if err := r.known(ask); err != nil {
			return nil, err
		}
		for _, id := range c.without {
			if r.table.Row(id) == nil {
				return nil, r.table.unknown(id)
			}
		}
		f := policy.Facts{Method: ensureMethod.Name, Client: client(c.who), Session: sessionFacts(ask), Providers: b.seats(r.table)}
		r.decision = r.table.policy.Decide(f)
		b.recent.add(f)
		c.decided(&r.decision)
		if err := denied(r.decision.Denied); err != nil {
			return nil, err
		}
		r.Choice = r.table.Pick(ask, r.decision)
		if len(r.Pending) == 0 {
			return r, r.unknownBrowser(ask)
		}
		next := r.Pending[0]
		if _, err := next.source.Acquire(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("describe %s: %w", next.ID, err)
			}
			failed[next.ID] = fault.From(err).Message
		} else if _, ok := next.source.Describe(); !ok {
			failed[next.ID] = "it did not say what it is"
		}
	}
}

// known refuses a provider_id that names nobody.
func (r *route) known(ask *browserv1.EnsureSessionRequest) error {
	id := ask.GetProviderId()
	if id == "" || r.table.Row(id) != nil {
		return nil
	}
	return r.table.unknown(id)
}

// unknown is the fault of a provider_id that names nobody.
func (t *Table) unknown(id string) error {
	ids := make([]string, len(t.rows))
	for i, row := range t.rows {
		ids[i] = row.ID
	}
	e := fault.New(fault.InvalidRequest, "there is no provider %q", id).Field("provider_id")
	if n := wire.Nearest(id, ids); n != "" {
		return e.Hint("did you mean %q?", n).With("nearest", n)
	}
	if len(ids) == 0 {
		return e.Hint("no provider is installed")
	}
	return e.Hint("the providers are %s", strings.Join(ids, ", "))
}

// unknownBrowser refuses a browser_preference that is neither a family, nor a product that the broker or any provider
// knows.
func (r *route) unknownBrowser(ask *browserv1.EnsureSessionRequest) error {
	want := wanted(ask.GetBrowserPreference())
	if want == "" || len(r.Kept) > 0 || slices.Contains(families, want) {
		return nil
	}
	words := append([]string{"auto"}, families...)
	for p := range products {
		words = append(words, p)
	}
	for _, row := range r.table.rows {
		for _, k := range row.candidates() {
			if k.is(want) {
				return nil
			}
			words = append(words, strings.Fields(strings.ToLower(k.Label))...)
		}
	}
	slices.Sort(words)
	words = slices.Compact(words)
	if slices.Contains(words, want) {
		return nil
	}
	e := fault.New(fault.InvalidRequest, "browser_preference: there is no browser %q", ask.GetBrowserPreference()).Field("browser_preference")
	if n := wire.Nearest(want, words); n != "" {
		return e.Hint("did you mean %q?", n).With("nearest", n)
	}
	return e.Hint("use auto, %s, or a product's name such as chrome", strings.Join(families, ", "))
}

// seats are the providers as the policy sees them.
func (b *Broker) seats(t *Table) []policy.Candidate {
	out := make([]policy.Candidate, len(t.rows))
	for i, r := range t.rows {
		out[i] = b.seat(r)
	}
	return out
}

// seat is a provider as the policy sees it.
func (b *Broker) seat(r *Row) policy.Candidate {
	c := r.candidate()
	c.Sessions, c.Latency = b.held(r.ID), b.health.latency(r.ID)
	return c
}

// held counts the live sessions of a provider.
func (b *Broker) held(id string) int {
	return len(b.sessions.all(func(s *session) bool { return s.life.ID() == id && s.lostError() == nil }))
}

func (r *Row) candidate() policy.Candidate {
	return policy.Candidate{
		ID: r.ID, Plugin: r.Plugin, Families: r.Describe.GetBrowserFamilies(), Version: r.Describe.GetProviderVersion(),
		Tier:         enumWord(r.Describe.GetCertificationTier().String(), "CERTIFICATION_TIER_", "candidate"),
		Availability: enumWord(r.Status.GetAvailability().String(), "AVAILABILITY_", "ready"),
		Features:     r.Describe.GetCapabilities().GetFeatures(),
	}
}

// none is the fault of a request that no provider fits: every rejection with its reason, and what a person does to make
// the nearest provider fit.
func (r *route) none(ask *browserv1.EnsureSessionRequest) error {
	e := fault.New(fault.SetupRequired, "no provider fits the session that was asked for").Reason("no_provider").
		With("rejections", rejections(r.Rejected))
	if len(r.Rejected) == 0 {
		return e.Hint("no provider is installed: put a drover-provider-NAME beside drover, or on PATH").With("manual_steps", []string{})
	}
	near := nearest(r.Rejected)
	steps := manualSteps(near.row.Status)
	e.With("nearest_provider", near.Provider).With("manual_steps", steps).Provider(near.Provider)
	switch {
	case len(steps) > 0:
		return e.Hint("%s", steps[0])
	case ask.GetProviderId() != "":
		return e.Hint("%s: %s", near.Provider, near.Reasons[0].Message)
	}
	return e.Hint("nearest is %s: %s", near.Provider, near.Reasons[0].Message)
}

// nearest is the candidate that least is in the way of: fewest reasons, and among those one that only has to be set up.
func nearest(rejected []*Candidate) *Candidate {
	best := rejected[0]
	weight := func(k *Candidate) int {
		n := 2 * len(k.Reasons)
		if k.Reasons[0].Code == "unavailable" {
			n--
		}
		if k.Reasons[0].Code == "disabled" || k.Reasons[0].Code == "provider" {
			n += 10
		}
		return n
	}
	for _, k := range rejected[1:] {
		if weight(k) < weight(best) {
			best = k
		}
	}
	return best
}

func rejections(rejected []*Candidate) []map[string]any {
	out := make([]map[string]any, len(rejected))
	for i, k := range rejected {
		words, messages := make([]string, len(k.Reasons)), make([]string, len(k.Reasons))
		for j, reason := range k.Reasons {
			words[j], messages[j] = reason.Code, reason.Message
		}
		out[i] = map[string]any{"provider_id": k.Provider, "browser": k.title(), "reasons": words, "message": strings.Join(messages, "; ")}
	}
	return out
}

// manualSteps gathers what a person has to do.
func manualSteps(s *browserv1.StatusResponse) []string {
	steps := slices.Clone(s.GetManualSteps())
	for _, d := range s.GetDiagnostics() {
		if d.GetLevel() != browserv1.Level_LEVEL_ERROR {
			continue // what merely could be better keeps nobody from a session
		}
		for _, step := range d.GetManualSteps() {
			if !slices.Contains(steps, step) {
				steps = append(steps, step)
			}
		}
	}
	return steps
}

// allFailed is the fault of a request that fits providers of which none made a session: the first one's own, with the
// others' beside it.
func (r *route) allFailed(failures []error) error {
	first := fault.From(failures[0]).Clone().Provider(r.Kept[0].Provider)
	if len(failures) == 1 {
		return first
	}
	tried := make([]map[string]any, len(failures))
	for i, err := range failures {
		e := fault.From(err)
		tried[i] = map[string]any{"provider_id": r.Kept[i].Provider, "browser": r.Kept[i].title(), "code": fault.Word(e.Code), "message": e.Message}
	}
	return first.With("tried", tried)
}

// warnings tell the wishes that a candidate does not meet.
func (k *Candidate) warnings(ask *browserv1.EnsureSessionRequest) []*browserv1.Warning {
	var out []*browserv1.Warning
	if k.Substituted {
		out = append(out, substituted(ask.GetBrowserPreference(), k.title()))
	}
	for _, f := range k.Missing {
		out = append(out, lacking(k.Provider, f))
	}
	return out
}

func substituted(asked, browser string) *browserv1.Warning {
	return warning("preference_substituted", map[string]any{"asked": asked, "browser": browser},
		"%s is not there; %s of the same family serves the session", asked, browser)
}

func lacking(provider, feature string) *browserv1.Warning {
	return warning("feature_missing", map[string]any{"feature": feature, "provider_id": provider}, "%s lacks the preferred feature %s", provider, feature)
}

// warnNotAttached is the code of the warning that a session has a browser of its own, where it would rather have attached.
const warnNotAttached = "not_attached"

// unattached tells that a session which should rather attach did not, unless its provider said so and why.
func (s *session) unattached(ask *browserv1.EnsureSessionRequest, told []*browserv1.Warning) []*browserv1.Warning {
	if ask.GetAttach() != browserv1.Attach_ATTACH_PREFER || s.answer.GetAttachedToExistingBrowser() ||
		slices.ContainsFunc(told, func(w *browserv1.Warning) bool { return w.GetCode() == warnNotAttached }) {
		return told
	}
	return append(told, warning(warnNotAttached, map[string]any{"provider_id": s.life.ID()}, "%s attached to no running browser; the session has one of its own", s.life.ID()))
}

// unmet tells the wishes that a session which is there does not meet.
func (s *session) unmet(ask *browserv1.EnsureSessionRequest, told []*browserv1.Warning) []*browserv1.Warning {
	if want := wanted(ask.GetBrowserPreference()); want != "" && !s.isBrowser(want) {
		told = append(told, substituted(ask.GetBrowserPreference(), s.answer.GetBrowserLabel()))
	}
	for _, f := range ask.GetPreferFeatures() {
		if !slices.Contains(s.answer.GetFeatures(), f) {
			told = append(told, lacking(s.life.ID(), f))
		}
	}
	return s.unattached(ask, told)
}

// warnFailover is the code of the warning that a provider that comes first made no session.
const warnFailover = "provider_failover"

// failedOver tells of a provider that would have come first.
func failedOver(k *Candidate, err error) *browserv1.Warning {
	e := fault.From(err)
	details := map[string]any{"provider_id": k.Provider, "browser": k.title(), "code": fault.Word(e.Code), "message": e.Message}
	return warning(warnFailover, details, "%s made no session: %s", k.Provider, e.Message)
}

func warning(code string, details map[string]any, format string, args ...any) *browserv1.Warning {
	w := &browserv1.Warning{Code: code, Message: strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD")}
	if s, err := wire.ToStruct(details); err == nil {
		w.Details = s
	}
	return w
}
