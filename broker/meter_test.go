package broker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// series reads what the broker counts: a value for name{label=value,…}, and for histograms the number of observations.
func (h *house) series() map[string]float64 {
	h.t.Helper()
	families, err := h.broker.Metrics().Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			name := strings.TrimPrefix(f.GetName(), "drover_") + "{" + strings.Join(labels, ",") + "}"
			switch {
			case m.GetCounter() != nil:
				out[name] = m.GetCounter().GetValue()
			case m.GetGauge() != nil:
				out[name] = m.GetGauge().GetValue()
			case m.GetHistogram() != nil:
				out[name] = float64(m.GetHistogram().GetSampleCount())
				out[name+"sum"] = m.GetHistogram().GetSampleSum()
			}
		}
	}
	return out
}

// reads tests the values of some series; 0 stands for one that is not there too.
func (h *house) reads(when string, want map[string]float64) {
	h.t.Helper()
	got := h.series()
	for name, v := range want {
		if got[name] != v {
			h.t.Errorf("%s: %s is %v, want %v", when, name, got[name], v)
		}
	}
}

// Guards that calls and decisions of the policy are counted, each by what became of it and by the rule that did it.
func TestMeterCountsDecisions(t *testing.T) {
	h := build(t, `
rule "no news" {
  when   = url.host == "news.test"
  effect = "deny"
}
rule "firefox for bo" {
  when   = client.name == "bo"
  prefer = ["bidi"]
}
`, cdp(), bidi())
	ann, bo := h.user("ann"), h.user("bo")
	s := ann.ensure("a").GetSessionId()
	bo.ensure("b")
	do[*browserv1.OpenResponse](ann, open(s, "http://shop.test/"))
	ann.fails(open(s, "http://news.test/"), fault.PermissionDenied, "policy_denied")
	ann.fails(&browserv1.EnsureSessionRequest{ClientSessionId: "c", RequireFeatures: []string{"closed_shadow_roots"}}, fault.SetupRequired, "no_provider")
	ann.fails(&browserv1.EnsureSessionRequest{ClientSessionId: "d", ProviderId: proto.String("nobody")}, fault.InvalidRequest, "")
	h.reads("afterwards", map[string]float64{
		"requests_total{code=ok,method=session.ensure,provider=cdp}":                 1,
		"requests_total{code=ok,method=session.ensure,provider=bidi}":                1,
		"requests_total{code=ok,method=page.open,provider=cdp}":                      1,
		"requests_total{code=permission_denied,method=page.open,provider=cdp}":       1,
		"requests_total{code=setup_required,method=session.ensure,provider=}":        1,
		"request_seconds{method=page.open}":                                          2,
		"route_decisions_total{outcome=routed,rule=}":                                1,
		"route_decisions_total{outcome=routed,rule=firefox for bo}":                  1,
		"route_decisions_total{outcome=allowed,rule=}":                               1,
		"route_decisions_total{outcome=denied,rule=no news}":                         1,
		"route_decisions_total{outcome=no_provider,rule=}":                           1,
		"fallbacks_total{from=cdp,reason=not_ready,to=bidi}":                         0,
		"sessions{provider=cdp,state=ready}":                                         1,
		"sessions{provider=bidi,state=ready}":                                        1,
		"sessions{provider=cdp,state=lost}":                                          0,
		"policy_info{sha256=" + h.broker.Policy().Config().Hash + "}":                1,
		"stale_refs_total{reason=element}":                                           0,
		"dialogs_total{action=opened}":                                               0,
		"snapshot_tokens{}":                                                          0,
		"queue_wait_seconds{}":                                                       0,
		"requests_total{code=invalid_request,method=session.ensure,provider=}":       1,
		"requests_total{code=invalid_request,method=session.ensure,provider=nobody}": 0,
	})
}

// Guards that a session which one provider does not make is counted as one that fell to the next, and that providers and
// sessions are counted as they are, with those that were lost.
func TestMeterCountsProvidersAndSessions(t *testing.T) {
	broken, well := cdp(), bidi()
	h := build(t, "", broken, well)
	u := h.user("ann")
	broken.Fails = fault.New(fault.BrowserNotRunning, "it does not start").Reason("provider_start_failed")
	u.ensure("a")
	h.reads("after a fallback", map[string]float64{
		"fallbacks_total{from=cdp,reason=browser_not_running,to=bidi}": 1,
		"sessions{provider=bidi,state=ready}":                          1,
		"provider_up{provider=cdp}":                                    1,
	})
	broken.State = &browserv1.StatusResponse{Availability: browserv1.Availability_AVAILABILITY_UNAVAILABLE}
	well.Kill()
	await(t, "the session is lost", func() bool { return h.series()["sessions{provider=bidi,state=lost}"] == 1 })
	h.reads("after a death", map[string]float64{
		"sessions{provider=bidi,state=ready}": 0,
		"provider_up{provider=cdp}":           0,
		"provider_up{provider=bidi}":          1,
	})
	s := do[*browserv1.ListSessionsResponse](u, &browserv1.ListSessionsRequest{}).GetSessions()[0]
	do[*browserv1.CloseSessionResponse](u, &browserv1.CloseSessionRequest{SessionId: s.GetSessionId()})
	h.reads("after the end", map[string]float64{"sessions{provider=bidi,state=lost}": 0, "sessions{provider=bidi,state=ready}": 0})
}

// await waits until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in time", what)
		}
		<-time.After(time.Millisecond)
	}
}

// Guards the queue: its depth while calls wait, and how long they did; calls that need not wait are not in it.
func TestMeterCountsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cdp()
		h := build(t, "", f)
		u := h.user("ann")
		s := u.ensure("a").GetSessionId()
		let := make(chan struct{})
		f.On("page.click", func(context.Context, proto.Message) (proto.Message, error) {
			<-let
			return &browserv1.ClickResponse{PageId: "page-1"}, nil
		})
		for range 3 {
			u.aside(click(s, "page-1"))
		}
		synctest.Wait()
		h.reads("while one runs", map[string]float64{"queue_depth{}": 2, "queue_wait_seconds{}": 0})
		time.Sleep(time.Second)
		for range 3 {
			let <- struct{}{}
		}
		synctest.Wait()
		h.reads("afterwards", map[string]float64{"queue_depth{}": 0, "queue_wait_seconds{}": 2, "queue_wait_seconds{}sum": 2})
	})
}

// Guards what is counted of answers and events: the size of snapshots, refs that are stale, dialogs and what became of them.
func TestMeterCountsWhatProvidersTell(t *testing.T) {
	f := cdp()
	h := build(t, "", f)
	u := h.user("ann")
	s := u.ensure("a").GetSessionId()
	f.On("page.snapshot", func(context.Context, proto.Message) (proto.Message, error) {
		return &browserv1.SnapshotResponse{Outline: proto.String(strings.Repeat("x", 4000))}, nil
	})
	gone := []any{"document", "element", "something that a stranger says"}
	f.On("page.click", func(context.Context, proto.Message) (proto.Message, error) {
		e := fault.New(fault.ElementNotFound, "gone").Reason("stale_ref").With("gone", gone[0])
		gone = gone[1:]
		return nil, e
	})
	do[*browserv1.SnapshotResponse](u, &browserv1.SnapshotRequest{SessionId: s})
	for range 3 {
		u.fails(click(s, ""), fault.ElementNotFound, "stale_ref")
	}
	for kind, payload := range map[string]map[string]any{
		"dialog.opened": {"type": "alert"}, "dialog.closed": {"accepted": true}, "page.opened": {},
	} {
		payload["session_id"] = f.Native()
		emit(f, kind, payload)
	}
	emit(f, "dialog.closed", map[string]any{"session_id": f.Native(), "accepted": false})
	emit(f, "dialog.closed", map[string]any{"session_id": "somebody else's"})
	await(t, "the events are heard", func() bool { return h.series()["dialogs_total{action=dismissed}"] == 1 })
	h.reads("afterwards", map[string]float64{
		"snapshot_tokens{}": 1, "snapshot_tokens{}sum": 1000,
		"stale_refs_total{reason=document}": 1, "stale_refs_total{reason=element}": 2,
		"dialogs_total{action=opened}": 1, "dialogs_total{action=accepted}": 1,
	})
}

// Guards the number of series: nothing that callers, pages or strangers' providers choose becomes a label.
func TestMeterIsBounded(t *testing.T) {
	f := cdp()
	h := build(t, "", f)
	noise := func(from, to int) {
		for i := from; i < to; i++ {
			word := fmt.Sprint("word-", i)
			u := h.user(word)
			s := u.ensure(word).GetSessionId()
			f.On("page.open", func(context.Context, proto.Message) (proto.Message, error) {
				return nil, fault.New(fault.InternalError, "%s", word).Reason(word).With("gone", word)
			})
			_, _ = u.try(t.Context(), open(s, "http://"+word+".test/"+word))
			_, _ = u.try(t.Context(), open(word, "http://a.test/"))
			_, _ = u.try(t.Context(), &browserv1.EnsureSessionRequest{ClientSessionId: word, ProviderId: &word})
			_, _ = u.try(t.Context(), &browserv1.CommandRequest{SessionId: s, ProviderMethod: word})
			emit(f, "dialog.closed", map[string]any{"session_id": f.Native(), "accepted": word})
			_, _ = u.try(t.Context(), &browserv1.CloseSessionRequest{SessionId: s})
		}
	}
	noise(0, 5)
	before := h.series()
	noise(5, 60)
	after := h.series()
	for name := range after {
		if strings.Contains(name, "word") {
			t.Errorf("%s holds what a caller chose", name)
		}
	}
	if len(after) > len(before)+1 { // the last event may not have been heard before
		t.Errorf("there were %d series, and there are %d", len(before), len(after))
	}
}

// Guards docs/observability.md: it has every metric of the broker, and names none that there is not.
func TestMetricsAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(drover_[a-z_]+)").FindAllStringSubmatch(string(data), -1) {
		told = append(told, m[1])
	}
	f, g := cdp(), bidi()
	h := build(t, "", f, g)
	f.Fails = errors.New("no")
	u := h.user("ann")
	s := u.ensure("a").GetSessionId()
	g.On("page.click", func(context.Context, proto.Message) (proto.Message, error) {
		return nil, fault.New(fault.ElementNotFound, "gone").Reason("stale_ref")
	})
	u.fails(click(s, ""), fault.ElementNotFound, "stale_ref")
	emit(g, "dialog.opened", map[string]any{"session_id": g.Native()})
	await(t, "the event is heard", func() bool { return h.series()["dialogs_total{action=opened}"] == 1 })
	families, err := h.broker.Metrics().Gather()
	if err != nil {
		t.Fatal(err)
	}
	ofProcesses := []string{"drover_provider_restarts_total", "drover_zombies_reaped_total"} // cmd/drover has them
	for _, name := range ofProcesses {
		if !slices.Contains(told, name) {
			t.Errorf("%s is not documented", name)
		}
	}
	for _, f := range families {
		i := slices.Index(told, f.GetName())
		if i < 0 {
			t.Errorf("%s is not documented", f.GetName())
			continue
		}
		told = slices.Delete(told, i, i+1)
	}
	if left := slices.DeleteFunc(told, func(name string) bool { return slices.Contains(ofProcesses, name) }); len(left) > 0 {
		t.Errorf("there is no %v", left)
	}
}
