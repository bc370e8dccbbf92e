package conformance

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
)

// Connection is a way to a provider: a process's (host.Instance), one in the same process, or a broker's caller.
type Connection interface {
	Call(context.Context, *catalog.Method, messageOf) (messageOf, error)
}

// Teller is a connection that has events.
type Teller interface {
	Events(context.Context) iter.Seq2[*browserv1.Event, error]
}

// Mortal is a connection that can end by itself.
type Mortal interface {
	Done() <-chan struct{}
	Err() error
}

// Options say what is judged and how.
type Options struct {
	// ID is the provider's name in the report.
	ID string
	// Provider is the provider_id that calls name, for a connection that leads to several; empty otherwise.
	Provider string
	// Methods is a pattern of the methods that are judged, such as "page.*,tab.list"; empty for all.
	Methods string
	// Checks are the only checks that are made, by name; empty for all. It is for tests of the suite itself.
	Checks []string
	// Connect gives a connection and what ends it. It is called again, a few times at most, when a connection has ended.
	Connect func(context.Context) (Connection, func(), error)
	// Whole adds checks of a provider's process that has nothing to do but to be judged; nil for a connection alone.
	Whole *Process
	// Uploads is a folder that files may be uploaded from; empty when there is none.
	Uploads string
	// Progress is told of every check when it is over; nil for nobody.
	Progress func(Result)
}

// lives is how often a provider may end before the suite gives up, and silences how many calls in a row may stay without an
// answer.
const (
	lives    = 6
	silences = 4
)

// Judge runs the suite. The error says that it could not be run, and nothing of the provider: what is wrong with that, were it
// only that it does not start, is in the report.
func Judge(ctx context.Context, o Options) (*Report, error) {
	checks, err := allChecks()
	if err != nil {
		return nil, err
	}
	site, err := serve() //nolint:contextcheck // it is closed before Judge returns
	if err != nil {
		return nil, err
	}
	defer site.close()
	r := &run{
		opts: o, site: site, listed: map[string]bool{}, features: map[string]bool{}, rules: newRules(), token: rand.Text()[:6],
		report: &Report{ProviderID: o.ID, SuiteVersion: SuiteVersion, Only: o.Methods, At: time.Now().UTC(), MTLS: true},
	}
	defer r.hangUp()
	if !r.start(ctx) {
		r.report.judge(nil)
		return r.report, ctx.Err()
	}
	for _, c := range checks {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if c.applies(o) {
			r.check(ctx, c)
		}
	}
	r.hangUp()
	if o.Whole != nil && o.Methods == "" {
		r.whole(ctx)
	}
	r.tellRules()
	r.report.judge(r.names())
	return r.report, nil
}

// check is one check: the methods and features that it needs, and what it does.
type check struct {
	id, method, guards string
	methods, features  []string
	own                bool
	do                 func(*T)
}

func (c check) applies(o Options) bool {
	if len(o.Checks) > 0 {
		return slices.Contains(o.Checks, c.id)
	}
	if o.Methods == "" {
		return true
	}
	return c.method != "" && methodMatches(o.Methods, c.method)
}

// allChecks lists the checks in the order they run: what the provider says of itself, the draft's ten scenarios, then method
// by method as the catalog has them, and what is about the provider as a whole.
func allChecks() ([]check, error) {
	list, err := transcripts()
	if err != nil {
		return nil, err
	}
	out := slices.Concat(describeChecks(), statusChecks(), scenarioChecks())
	byMethod := map[string][]check{}
	for _, t := range list {
		c := check{id: t.id, method: t.method, guards: t.guards, methods: t.methods, features: t.features, own: t.own, do: t.play}
		if _, ok := catalog.Lookup(c.method); !ok {
			return nil, fmt.Errorf("transcript %s: there is no method %s", t.id, t.method)
		}
		byMethod[c.method] = append(byMethod[c.method], c)
	}
	for _, c := range slices.Concat(sessionChecks(), pageChecks(), pictureChecks(), fileChecks()) {
		byMethod[c.method] = append(byMethod[c.method], c)
	}
	for _, m := range catalog.All() {
		if m.Name == "session.close" {
			continue
		}
		out = append(out, byMethod[m.Name]...)
		out = append(out, fieldChecks(m)...)
	}
	m, _ := catalog.Lookup("session.close")
	out = append(out, byMethod[m.Name]...)
	return slices.Concat(out, fieldChecks(m), wholeChecks()), nil
}

// run is one judging.
type run struct {
	opts   Options
	site   *site
	report *Report
	rules  *rules
	token  string
	n      int

	conn    Connection
	hang    func()
	starts  int
	silent  int    // calls in a row that were not answered in time
	given   string // why the suite gave up
	session string // the session that checks share

	describe *browserv1.DescribeResponse
	listed   map[string]bool
	features map[string]bool
}

// client gives a client_session_id that no check used before.
func (r *run) client() string {
	r.n++
	return fmt.Sprintf("conform-%s-%d", r.token, r.n)
}

// names lists the methods that the provider lists, in the catalog's order.
func (r *run) names() []string {
	var out []string
	for _, m := range catalog.All() {
		if r.listed[m.Name] {
			out = append(out, m.Name)
		}
	}
	return out
}

// start connects, and says whether there is a provider to judge.
func (r *run) start(ctx context.Context) bool {
	began := time.Now()
	res := Result{ID: "provider/starts", Guards: "The provider comes up, describes itself and takes its configuration."}
	defer func() {
		res.DurationMS = time.Since(began).Milliseconds()
		r.tell(res)
	}()
	if err := r.connect(ctx); err != nil {
		res.Status, res.Message = Fail, err.Error()
		return false
	}
	resp, err := r.call(ctx, mustMethod("provider.describe"), &browserv1.DescribeRequest{ProviderId: r.opts.Provider})
	d, ok := resp.(*browserv1.DescribeResponse)
	if err != nil || !ok {
		res.Status, res.Message = Fail, fmt.Sprintf("provider.describe: %v", err)
		return false
	}
	r.describe = d
	c := d.GetCapabilities()
	for _, name := range slices.Concat(c.GetCoreMethods(), c.GetOptionalMethods()) {
		r.listed[name] = true
	}
	for _, f := range c.GetFeatures() {
		r.features[f] = true
	}
	for _, b := range d.GetBrowsers() {
		for _, f := range b.GetFeatures() {
			r.features[f] = r.features[f] || len(d.GetBrowsers()) == 1
		}
		if len(d.GetBrowsers()) == 1 {
			for _, m := range b.GetWithoutMethods() {
				delete(r.listed, m)
			}
		}
	}
	r.report.ProviderVersion, r.report.ProtocolVersion = d.GetProviderVersion(), d.GetProtocolVersion()
	res.Status = Pass
	return true
}

func (r *run) connect(ctx context.Context) error {
	r.starts++
	conn, hang, err := r.opts.Connect(ctx)
	if err != nil {
		return err
	}
	r.conn, r.hang, r.session = conn, hang, ""
	return nil
}

func (r *run) hangUp() {
	if r.hang != nil {
		r.hang()
	}
	r.conn, r.hang = nil, nil
}

// revive connects again when the provider has ended. It says whether there is one to go on with.
func (r *run) revive(ctx context.Context) bool {
	if r.given != "" {
		return false
	}
	if r.silent >= silences {
		r.given = fmt.Sprintf("%d calls in a row were not answered in time", r.silent)
		return false
	}
	m, mortal := r.conn.(Mortal)
	switch {
	case r.conn == nil:
	case mortal && m.Err() != nil:
		r.rules.break_("wire/lives", "the provider ended by itself: %v", m.Err())
	default:
		return true
	}
	r.hangUp()
	if r.starts >= lives {
		r.given = fmt.Sprintf("it ended %d times", r.starts)
		return false
	}
	if err := r.connect(ctx); err != nil {
		r.given = "it does not start again: " + err.Error()
		return false
	}
	return true
}

// check runs one check.
func (r *run) check(ctx context.Context, c check) {
	began := time.Now()
	t := &T{ctx: ctx, run: r, vars: map[string]any{"site": r.site.url, "other": r.site.other, "dead": r.site.dead}}
	switch why := r.missing(c); {
	case why != "":
		t.skipped = why
	case !r.revive(ctx):
		t.Errorf("it was not tried: %s", r.given)
	default:
		r.attempt(t, c) //nolint:contextcheck // the check holds the context
	}
	res := Result{ID: c.id, Method: c.method, Guards: c.guards, Status: Pass, DurationMS: time.Since(began).Milliseconds()}
	switch {
	case len(t.failures) > 0:
		res.Status, res.Message = Fail, strings.Join(t.failures, "; ")
	case t.skipped != "":
		res.Status, res.Message = Skip, t.skipped
	}
	r.tell(res)
}

// attempt gives the check a session, runs it and cleans up after it.
func (r *run) attempt(t *T, c check) {
	defer func() {
		r.cleanUp(t)
		if v := recover(); v != nil {
			if _, ok := v.(stop); !ok {
				panic(v)
			}
		}
	}()
	if c.method != "" && c.method != "session.ensure" || len(c.methods) > 0 {
		if m, ok := catalog.Lookup(c.method); ok && m.NeedsSession() {
			switch {
			case c.own:
				t.vars["session"] = t.Ensure(nil)
			default:
				if r.session == "" {
					r.session = t.Ensure(nil)
					t.sessions = nil
				}
				t.vars["session"] = r.session
			}
		}
	}
	c.do(t)
}

// cleanUp closes the check's sessions, and the shared one when the check may have left it in disorder.
func (r *run) cleanUp(t *T) {
	if (len(t.failures) > 0 || t.spoilt) && r.session != "" {
		t.sessions = append(t.sessions, r.session)
		r.session = ""
	}
	m := mustMethod("session.close")
	for _, id := range t.sessions {
		ctx, cancel := context.WithTimeout(t.ctx, patience)
		_, _ = r.call(ctx, m, &browserv1.CloseSessionRequest{SessionId: id}) // closing is judged by checks of its own
		cancel()
	}
}

// missing says what a check needs that the provider does not list.
func (r *run) missing(c check) string {
	for _, name := range slices.Concat(c.methods, []string{c.method}) {
		m, ok := catalog.Lookup(name)
		if ok && m.Routed() && !r.listed[name] && !unlisted[name] {
			return "it does not list " + name
		}
	}
	for _, f := range c.features {
		if !r.features[f] {
			return "it does not have the feature " + f
		}
	}
	return ""
}

// unlisted are methods that every provider has, whether it lists them or not.
var unlisted = map[string]bool{"provider.describe": true, "provider.status": true, "provider.configure": true}

func (r *run) tell(res Result) {
	r.report.Checks = append(r.report.Checks, res)
	if r.opts.Progress != nil {
		r.opts.Progress(res)
	}
}

func mustMethod(name string) *catalog.Method {
	m, ok := catalog.Lookup(name)
	if !ok {
		panic("conformance: the catalog has no " + name)
	}
	return m
}
