package broker

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// describe tells what a provider is, or what the broker is: everything that any of its providers can do.
func (b *Broker) describe(ctx context.Context, r *browserv1.DescribeRequest) (proto.Message, error) {
	t := b.known(ctx, r.GetProviderId(), func(row *Row) bool { return row.Describe != nil })
	if id := r.GetProviderId(); id != "" && id != OwnID {
		row := t.Row(id)
		switch {
		case row == nil:
			return nil, t.unknown(id)
		case row.Describe == nil:
			return nil, notDescribed(row)
		}
		return row.own(), nil
	}
	all := &browserv1.DescribeResponse{
		ProviderId: OwnID, ProviderLabel: "Drover", ProviderVersion: b.version, ProtocolVersion: catalog.Version,
		Transport: "broker", CertificationTier: browserv1.CertificationTier_CERTIFICATION_TIER_CANDIDATE,
		Capabilities: &browserv1.Capabilities{}, Stability: map[string]string{},
	}
	has, features := map[string]bool{}, map[string]bool{}
	for _, m := range catalog.All() {
		has[m.Name] = m.Spec.GetAnswerer() == browserv1.Answerer_ANSWERER_BROKER || ofProviders(m)
	}
	for _, row := range t.rows {
		if row.Describe == nil || row.Disabled {
			continue
		}
		d := row.own()
		all.Providers = append(all.Providers, d)
		for _, name := range slices.Concat(d.GetCapabilities().GetCoreMethods(), d.GetCapabilities().GetOptionalMethods()) {
			has[name] = true
		}
		for _, f := range d.GetCapabilities().GetFeatures() {
			features[f] = true
		}
		for _, f := range d.GetBrowserFamilies() {
			if !slices.Contains(all.BrowserFamilies, f) {
				all.BrowserFamilies = append(all.BrowserFamilies, f)
			}
		}
		all.Browsers = append(all.Browsers, d.GetBrowsers()...)
		all.Capabilities.CustomMethods = append(all.Capabilities.CustomMethods, d.GetCapabilities().GetCustomMethods()...)
	}
	for _, m := range catalog.All() {
		switch {
		case !has[m.Name]:
		case m.Core():
			all.Capabilities.CoreMethods = append(all.Capabilities.CoreMethods, m.Name)
		default:
			all.Capabilities.OptionalMethods = append(all.Capabilities.OptionalMethods, m.Name)
		}
	}
	for _, f := range catalog.Features() {
		if features[f] {
			all.Capabilities.Features = append(all.Capabilities.Features, f)
		}
	}
	return all, nil
}

// ofProviders says that the broker answers the method itself although it is a provider's.
func ofProviders(m *catalog.Method) bool {
	return m.Name == "provider.describe" || m.Name == "provider.status"
}

// own gives a provider's description under its id.
func (r *Row) own() *browserv1.DescribeResponse {
	d := proto.CloneOf(r.Describe)
	d.ProviderId = r.ID
	return d
}

func notDescribed(row *Row) error {
	if row.Status.GetAvailability() == browserv1.Availability_AVAILABILITY_UNAVAILABLE {
		e := fault.New(fault.SetupRequired, "%s cannot be described: %s", row.ID, unavailable(row.Status)).Provider(row.ID)
		steps := manualSteps(row.Status)
		if len(steps) > 0 {
			e.Hint("%s", steps[0])
		}
		return e.With("manual_steps", steps)
	}
	return fault.New(fault.NotReady, "%s has not said yet what it is", row.ID).Provider(row.ID).RetryAfter(500)
}

// knownWait is how long describe and status wait for providers that were never heard of.
const knownWait = 1500 * time.Millisecond

// known gives the table when every provider that is asked for (all, without an id) is known as the test says, or cannot
// be. Those that are not are started and heard, side by side and for a moment at most; it waits for nobody else, however
// busy a provider is.
func (b *Broker) known(ctx context.Context, id string, is func(*Row) bool) *Table {
	t := b.refresh()
	ctx, cancel := context.WithTimeout(ctx, knownWait)
	defer cancel()
	var asked sync.WaitGroup
	for _, row := range t.rows {
		one := id == "" || id == OwnID || id == row.ID
		if !one || is(row) || row.Disabled || row.Status.GetAvailability() == browserv1.Availability_AVAILABILITY_UNAVAILABLE {
			continue
		}
		asked.Go(func() {
			_, _ = row.source.Acquire(ctx) // what went wrong is in its status
		})
	}
	asked.Wait()
	return b.refresh()
}

// status tells how a provider is, or how the broker is: as available as the best of its providers.
func (b *Broker) status(ctx context.Context, r *browserv1.StatusRequest) (proto.Message, error) {
	t := b.known(ctx, r.GetProviderId(), func(row *Row) bool {
		return row.Status.GetAvailability() != browserv1.Availability_AVAILABILITY_UNSPECIFIED
	})
	now := b.look(ctx, r.GetProviderId())
	if id := r.GetProviderId(); id != "" && id != OwnID {
		row := t.Row(id)
		if row == nil {
			return nil, t.unknown(id)
		}
		return b.statusOf(row, now[row.ID]), nil
	}
	all := &browserv1.StatusResponse{
		ProviderId: OwnID, Availability: browserv1.Availability_AVAILABILITY_UNAVAILABLE, State: "ready",
		SetupState: browserv1.SetupState_SETUP_STATE_REQUIRED,
	}
	if hash := b.policy.Load().Config().Hash; hash != "" {
		all.PolicySha256 = &hash
	}
	var best *browserv1.StatusResponse
	for _, row := range t.rows {
		if row.Disabled {
			continue
		}
		s := b.statusOf(row, now[row.ID])
		all.Providers = append(all.Providers, s)
		all.BrowserDetected = all.GetBrowserDetected() || s.GetBrowserDetected()
		all.BrowserRunning = all.GetBrowserRunning() || s.GetBrowserRunning()
		all.Sessions += s.GetSessions()
		if best == nil || rankOf(s) < rankOf(best) {
			best = s
		}
	}
	if best == nil {
		all.RequiresManualSetup = true
		all.ManualSteps = []string{"Put a drover-provider-NAME binary beside drover, or on PATH"}
		all.Diagnostics = []*browserv1.Diagnostic{{Level: browserv1.Level_LEVEL_ERROR, Code: "no_provider", Message: "No provider is installed"}}
		return all, nil
	}
	all.Availability, all.SetupState = best.GetAvailability(), best.GetSetupState()
	all.RequiresManualSetup, all.RecommendedBrowser = best.GetRequiresManualSetup(), best.GetRecommendedBrowser()
	all.ManualSteps, all.Diagnostics = best.GetManualSteps(), best.GetDiagnostics()
	return all, nil
}

// rankOf orders availabilities; one that is not known may well be ready.
func rankOf(s *browserv1.StatusResponse) int {
	switch s.GetAvailability() {
	case browserv1.Availability_AVAILABILITY_READY:
		return 0
	case browserv1.Availability_AVAILABILITY_UNSPECIFIED:
		return 1
	case browserv1.Availability_AVAILABILITY_DEGRADED:
		return 2
	default:
		return 3
	}
}

// statusOf tells how a provider is: as last known, and whether its browser runs as it says now, where it was heard.
func (b *Broker) statusOf(row *Row, now *browserv1.StatusResponse) *browserv1.StatusResponse {
	s := &browserv1.StatusResponse{}
	if row.Status != nil {
		s = proto.CloneOf(row.Status)
	}
	s.ProviderId = row.ID
	if now != nil {
		s.BrowserRunning = now.GetBrowserRunning()
	}
	if s.GetAvailability() == browserv1.Availability_AVAILABILITY_UNSPECIFIED {
		s.Availability = browserv1.Availability_AVAILABILITY_DEGRADED
		s.Diagnostics = append(s.Diagnostics, &browserv1.Diagnostic{
			Level: browserv1.Level_LEVEL_INFO, Code: "not_known_yet", Message: "It has not said yet how it is",
		})
	}
	s.Sessions = int32(b.held(row.ID)) //nolint:gosec // a handful
	return s
}

// Ready says whether any provider may take a session, for the readiness of the daemon.
func (b *Broker) Ready() bool {
	for _, row := range b.refresh().rows {
		if !row.Disabled && row.Status.GetAvailability() != browserv1.Availability_AVAILABILITY_UNAVAILABLE {
			return true
		}
	}
	return false
}

// Changed tells the broker that a provider's state changed: subscribers hear of it.
func (b *Broker) Changed(id string) {
	if row := b.refresh().Row(id); row != nil {
		b.changed(id, row.Status.GetState())
	}
}

// changed tells subscribers of a provider's state.
func (b *Broker) changed(id, state string) {
	row := b.refresh().Row(id)
	if row == nil {
		return
	}
	b.hub.publish(audience{}, event(eventState, map[string]any{
		"provider_id": id, "state": state,
		"availability": enumWord(row.Status.GetAvailability().String(), "AVAILABILITY_", "ready"),
	}))
}

// forward passes a method that is about a provider itself on to that provider, or to the first one when it names none.
func (b *Broker) forward(ctx context.Context, c *call) (proto.Message, error) {
	row, err := b.aboutProvider(catalog.ProviderID(c.req))
	if err != nil {
		return nil, err
	}
	c.provider = row.ID
	if err := b.allow(c, nil, row, ""); err != nil {
		return nil, err
	}
	placed(ctx)
	resp, err := b.ask(ctx, c, row)
	if fault.ReasonOf(err) == "provider_exited" && c.method.Spec.GetIdempotent() && ctx.Err() == nil {
		return b.ask(ctx, c, row)
	}
	return resp, err
}

// aboutProvider finds the provider that a call is about.
func (b *Broker) aboutProvider(id string) (*Row, error) {
	t := b.refresh()
	if id != "" && id != OwnID {
		if row := t.Row(id); row != nil {
			return row, nil
		}
		return nil, t.unknown(id)
	}
	for _, row := range t.rows {
		if !row.Disabled {
			return row, nil
		}
	}
	return nil, fault.New(fault.SetupRequired, "no provider is installed").Reason("no_provider").
		Hint("put a drover-provider-NAME beside drover, or on PATH")
}

// ask calls a provider outside any session.
func (b *Broker) ask(ctx context.Context, c *call, row *Row) (proto.Message, error) {
	life, err := b.acquire(ctx, row)
	if err != nil {
		return nil, err
	}
	ctx, release := whileAlive(ctx, life)
	defer release()
	req := proto.Clone(c.req)
	catalog.SetProviderID(req, "")
	setTimeout(req, c.until)
	c.sent = true
	resp, err := b.pass(ctx, life, c.method, req)
	if err != nil && context.Cause(ctx) != nil {
		return nil, context.Cause(ctx)
	}
	return resp, err
}
