package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/broker/trace"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

var commandMethod = lookup("provider.command")

// command calls one of a provider's own methods: only by a name that the policy allows and the provider lists, and never
// a normalized one. The policy is asked first, so that nobody learns by trying what a provider has.
func (b *Broker) command(ctx context.Context, c *call, r *browserv1.CommandRequest) (proto.Message, error) {
	if r.GetSessionId() == "" {
		row, err := b.aboutProvider(r.GetProviderId())
		if err != nil {
			return nil, err
		}
		c.provider = row.ID
		if err := b.allow(c, nil, row, r.GetProviderMethod()); err != nil {
			return nil, err
		}
		placed(ctx)
		life, err := b.acquire(ctx, row)
		if err != nil {
			return nil, err
		}
		ctx, release := whileAlive(ctx, life)
		defer release()
		c.sent = true
		return b.custom(ctx, life, "", r)
	}
	s, err := b.sessions.find(c.who, r.GetSessionId())
	if err != nil {
		return nil, err
	}
	c.provider = s.life.ID()
	if err := b.allow(c, s, nil, r.GetProviderMethod()); err != nil {
		return nil, err
	}
	return b.inLane(ctx, c, s, func(ctx context.Context) (proto.Message, error) {
		return b.custom(ctx, s.life, s.native, r)
	})
}

func (b *Broker) custom(ctx context.Context, life Provider, native string, r *browserv1.CommandRequest) (proto.Message, error) {
	if err := listed(life, r.GetProviderMethod()); err != nil {
		return nil, err
	}
	if err := fits(life, r); err != nil {
		return nil, err
	}
	ctx, span := b.tracer.Ask(ctx, "provider "+commandMethod.Name, trace.Call(commandMethod.Name, life.ID(), "", "", "", 0)...)
	resp, err := life.Custom(ctx, &browserv1.CustomRequest{
		SessionId: native, PageId: r.GetPageId(), Method: r.GetProviderMethod(), Params: r.GetParams(),
	})
	span.End(err)
	if err != nil {
		return nil, err
	}
	return &browserv1.CommandResponse{Result: resp.GetResult()}, nil
}

// listed refuses a method that the provider does not list among its own.
func listed(life Provider, method string) error {
	if _, normalized := catalog.Lookup(method); normalized {
		return fault.New(fault.UnsupportedMethod, "%s is a normalized method; call it by itself", method).Field("provider_method")
	}
	var names []string
	for _, m := range life.Describe().GetCapabilities().GetCustomMethods() {
		names = append(names, m.GetName())
	}
	if slices.Contains(names, method) {
		return nil
	}
	e := fault.New(fault.UnsupportedMethod, "%s lists no custom method %q", life.ID(), method).Field("provider_method")
	if n := wire.Nearest(method, names); n != "" {
		return e.Hint("did you mean %q?", n).With("nearest", n)
	}
	return e
}

// fits refuses params that are not as the provider's schema of the method says.
func fits(life Provider, r *browserv1.CommandRequest) error {
	var schema *structpb.Struct
	for _, m := range life.Describe().GetCapabilities().GetCustomMethods() {
		if m.GetName() == r.GetProviderMethod() {
			schema = m.GetInputSchema()
		}
	}
	if schema == nil {
		return nil
	}
	data, err := protojson.Marshal(schema)
	if err != nil {
		return fmt.Errorf("schema of %s: %w", r.GetProviderMethod(), err)
	}
	var s jsonschema.Schema
	var whole *jsonschema.Resolved
	if err = json.Unmarshal(data, &s); err == nil {
		whole, err = s.Resolve(nil)
	}
	if err != nil {
		return fault.New(fault.InternalError, "the provider's schema of %s cannot be read: %v", r.GetProviderMethod(), err).Cause(err)
	}
	params := r.GetParams().AsMap()
	if err := whole.Validate(params); err != nil {
		return fault.New(fault.InvalidRequest, "the params do not fit %s: %v", r.GetProviderMethod(), err).Field("params").
			Hint("provider.describe tells its input_schema").Cause(err)
	}
	return nil
}
