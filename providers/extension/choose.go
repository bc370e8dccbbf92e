package extension

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/providers/cdp"
	"github.com/droverhq/drover/providers/extension/bridge"
)

// arriveTime is how long session.ensure waits for a paired browser to connect. An extension that lost its server asks for it
// again at most 12 s later.
const arriveTime = 15 * time.Second

// dial connects a new session to a browser.
func (p *Provider) dial(ctx context.Context, r *browserv1.EnsureSessionRequest) (cdp.Wire, string, []*browserv1.Warning, error) {
	if r.Attach != nil && r.GetAttach() == browserv1.Attach_ATTACH_NEVER {
		return nil, "", nil, fault.New(fault.InvalidRequest, "this provider only works in a browser that is running already").Field("attach").
			Hint("ask with attach require, or for another provider")
	}
	n, err := p.bridge(ctx)
	if err != nil {
		return nil, "", nil, err
	}
	b, err := p.choose(ctx, n, r)
	if err != nil {
		return nil, "", nil, err
	}
	if !b.Has("devtools") {
		return nil, "", nil, fault.New(fault.SetupRequired, "the browser %s is connected by an extension that lets no pages be driven this way", b.Target).
			Reason("extension_lacks").Hint("run drover provider setup extension, and load the extension that it writes")
	}
	var warnings []*browserv1.Warning
	if r.GetIsolation() != browserv1.Isolation_ISOLATION_SHARED {
		warnings = append(warnings, &browserv1.Warning{
			Code: "reduced_fidelity", Message: "the session works in the person's own profile: its cookies and storage are those of the person, and of other sessions in this browser",
		})
	}
	return newRelay(n, b.Target), cmp.Or(b.Name, "Chromium"), warnings, nil
}

// choose gives the browser for a session: the one that the config or the request's metadata names, else the one that the
// fewest sessions use. It waits for a paired browser to connect.
func (p *Provider) choose(ctx context.Context, n *bridge.Node, r *browserv1.EnsureSessionRequest) (bridge.Browser, error) {
	p.mu.Lock()
	want := p.config.Target
	p.mu.Unlock()
	if t := r.GetMetadata().GetFields()["target"].GetStringValue(); t != "" {
		if want != "" && t != want {
			return bridge.Browser{}, fault.New(fault.PermissionDenied, "the config keeps this provider to the browser %s", want).Reason("policy_denied").Field("metadata.target")
		}
		want = t
	}
	if err := p.paired(n, want); err != nil {
		return bridge.Browser{}, err
	}
	wait := time.NewTimer(arriveTime)
	defer wait.Stop()
	told := false
	for {
		changed := n.Changed()
		if _, err := n.Ready(); err != nil {
			return bridge.Browser{}, errListener(n, err)
		}
		there := slices.DeleteFunc(n.Browsers(), func(b bridge.Browser) bool { return !b.Connected || want != "" && b.Target != want })
		if len(there) > 0 {
			return slices.MinFunc(there, func(a, b bridge.Browser) int {
				return cmp.Or(cmp.Compare(a.Leases, b.Leases), cmp.Compare(a.Target, b.Target))
			}), nil
		}
		if !told {
			told = true
			plugins.Progress(ctx, "waiting_for_browser", "waiting for a paired browser to connect")
		}
		select {
		case <-changed:
		case <-wait.C:
			return bridge.Browser{}, fault.New(fault.NotReady, "no paired browser is connected").Reason("browser_disconnected").Retry("same").
				Hint("start the browser and see that the extension's popup says Connected")
		case <-ctx.Done():
			return bridge.Browser{}, context.Cause(ctx)
		}
	}
}

// paired refuses when there is no browser to wait for.
func (p *Provider) paired(n *bridge.Node, want string) error {
	all, err := n.Store().List()
	if err != nil {
		return fault.New(fault.InternalError, "%v", err).Cause(err)
	}
	some := false
	for _, one := range all {
		good := one.Used && !one.Revoked
		some = some || good
		if good && (want == "" || one.Target == want) {
			return nil
		}
	}
	if some && want != "" {
		return fault.New(fault.InvalidRequest, "there is no paired browser %s", want).Field("metadata.target").Hint("provider.describe lists the browsers")
	}
	return fault.New(fault.SetupRequired, "no browser is paired yet").Reason("not_paired").With("manual_steps", toAny(manualSteps())).
		Hint("run drover provider setup extension")
}

func toAny(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

func manualSteps() []string {
	return []string{
		"run drover provider setup extension: it writes the extension to a folder and opens the pairing page",
		"in the browser, open chrome://extensions, switch developer mode on, press Load unpacked and choose that folder",
		"on the pairing page press Connect this browser, then press Connect in the extension's popup",
	}
}

func errListener(n *bridge.Node, err error) error {
	return fault.New(fault.NotReady, "the listener for browsers could not be opened at %s: %v", n.URL(), err).Reason("listener_unavailable").Retry("same").Cause(err).
		Hint("end the program that has the port, or set listen in the provider's block")
}
