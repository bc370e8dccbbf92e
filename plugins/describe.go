package plugins

import (
	"context"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
)

const (
	methodDescribe  = "provider.describe"
	methodStatus    = "provider.status"
	methodConfigure = "provider.configure"
)

// OnDescribe adds to provider.describe: browsers that were found, features that depend on them, a config schema. fn is
// called with the response in which everything derived is filled in already, in the order of registration, and from many
// goroutines at once. It should answer within a second: hosts ask at every start.
func (s *Server) OnDescribe(fn func(context.Context, *browserv1.DescribeResponse) error) {
	s.mustBeOpen("OnDescribe")
	s.describe = append(s.describe, fn)
}

// handleOwn registers the answers that every provider has.
func (s *Server) handleOwn() {
	s.own(methodDescribe, func(ctx context.Context, _ proto.Message) (proto.Message, error) { return s.Describe(ctx) })
	s.own(methodStatus, func(context.Context, proto.Message) (proto.Message, error) {
		return &browserv1.StatusResponse{
			ProviderId:   s.info.ID,
			Availability: browserv1.Availability_AVAILABILITY_READY,
			SetupState:   browserv1.SetupState_SETUP_STATE_COMPLETE,
		}, nil
	})
	s.own(methodConfigure, func(ctx context.Context, r proto.Message) (proto.Message, error) {
		return s.configure(ctx, r.(*browserv1.ConfigureRequest))
	})
}

func (s *Server) own(name string, fn func(context.Context, proto.Message) (proto.Message, error)) {
	m, ok := catalog.Lookup(name)
	if !ok {
		panic("plugins: the catalog has no " + name)
	}
	s.methods[name] = handler{own: true, method: m, call: fn}
}

// Describe gives what the provider is and can do, from what was registered and what OnDescribe adds.
func (s *Server) Describe(ctx context.Context) (*browserv1.DescribeResponse, error) {
	caps := &browserv1.Capabilities{Features: slices.Clone(s.info.Features)}
	for _, m := range catalog.All() {
		if _, ok := s.methods[m.Name]; !ok || !m.Routed() {
			continue
		}
		if m.Core() {
			caps.CoreMethods = append(caps.CoreMethods, m.Name)
		} else {
			caps.OptionalMethods = append(caps.OptionalMethods, m.Name)
		}
	}
	for _, name := range s.order {
		caps.CustomMethods = append(caps.CustomMethods, proto.Clone(s.custom[name].method).(*browserv1.CustomMethod))
	}
	d := &browserv1.DescribeResponse{
		ProviderId:        s.info.ID,
		ProviderLabel:     s.info.Label,
		ProviderVersion:   s.info.Version,
		ProtocolVersion:   catalog.Version,
		BrowserFamilies:   slices.Clone(s.info.Families),
		Transport:         Transport,
		CertificationTier: browserv1.CertificationTier_CERTIFICATION_TIER_CANDIDATE,
		Capabilities:      caps,
		Stability:         maps.Clone(s.info.Stability),
	}
	if s.config != nil {
		d.ConfigSchema = s.config.schema
	}
	for _, fn := range s.describe {
		if err := fn(ctx, d); err != nil {
			return nil, err
		}
	}
	return d, nil
}
