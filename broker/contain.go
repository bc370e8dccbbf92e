package broker

import (
	"context"
	"net/netip"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker/egress"
	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// egressKey is the gRPC metadata in which a provider gets the address of a session's egress proxy.
const egressKey = "drover-egress-proxy"

// contain starts the proxy of a session that a guard holds for; nil for one without.
func (b *Broker) contain(s *session, d *policy.Decision) error {
	if !d.Reach.Contained() {
		return nil
	}
	f := policy.Facts{Method: ensureMethod.Name, Client: policy.Client{Name: s.who.Name, Labels: s.who.Labels}, Session: sessionFacts(s.ask)}
	p, err := egress.Listen(func(u policy.URL, addrs []netip.Addr) *policy.Denial {
		return b.policy.Load().Reach(f).Judge(u, addrs...) // a reload counts for what is loaded after it
	}, b.resolve)
	if err != nil {
		return fault.New(fault.InternalError, "the session cannot be kept inside its guard: %v", err).Cause(err)
	}
	s.proxy = p
	return nil
}

// outward tells a provider by which way the session must go.
func (s *session) outward(ctx context.Context) context.Context {
	if s.proxy == nil {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, egressKey, s.proxy.Addr())
}

// leave ends the session's proxy.
func (s *session) leave() {
	if s.proxy != nil {
		s.proxy.Close()
	}
}

// refused says what a guard refused of a navigation: it failed, or ended at a page that is only the proxy's word for that.
func (s *session) refused(c *call, began time.Time, resp proto.Message, err error) error {
	if s.proxy == nil || !c.method.Spec.GetNavigates() {
		return nil
	}
	if err != nil {
		if fault.ReasonOf(err) == "deadline_exceeded" {
			return nil // what the page loads beside was refused, perhaps, but that is not why it takes so long
		}
		return denied(s.proxy.Since(began, ""))
	}
	where, ok := resp.(interface{ GetUrl() string })
	if !ok {
		return nil
	}
	u, uerr := policy.ParseURL(where.GetUrl())
	if uerr != nil {
		return denied(s.proxy.Since(began, ""))
	}
	if r, ok := resp.(*browserv1.OpenResponse); ok && r.GetHttpStatus() == 0 && u.Host == "" {
		return denied(s.proxy.Since(began, ""))
	}
	return denied(s.proxy.Since(began, u.Host))
}

// placeGuard names the guard in the refusal of a provider that cannot keep inside it what was asked for.
func (r *route) placeGuard(err error) error {
	if name, where := r.decision.Reach.Guard(); where != "" && fault.CodeOf(err) == fault.PermissionDenied {
		return fault.From(err).Clone().With("rule", name).With("where", where).Hint("the guard %q stands at %s", name, where)
	}
	return err
}
