package broker

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// admin says that a caller sees and closes the sessions of others, and drains and restarts providers.
func (b *Broker) admin(c *Caller) bool {
	known := b.policy.Load().Config().Known(client(c))
	return slices.Contains(known.Labels, policy.AdminLabel)
}

// adminOnly refuses everybody else; what says what only an admin does.
func (b *Broker) adminOnly(c *call, what string) *fault.Error {
	if b.admin(c.who) {
		return nil
	}
	name := c.who.Principal.Name
	e := fault.New(fault.PermissionDenied, "only a client with the label %s %s", policy.AdminLabel, what).Reason(policy.ReasonPolicy)
	if block := b.policy.Load().Config().Client(name); block != nil {
		c.rule = block.Where
		return e.With("rule", "client "+name).With("where", block.Where).Hint("the client block at %s gives it no such label", block.Where)
	}
	return e.Hint("an admin gives it with client %q { labels = [%q] }", name, policy.AdminLabel)
}

// drain has a provider's sessions end, and then its process.
func (b *Broker) drain(ctx context.Context, c *call, r *browserv1.DrainRequest) (proto.Message, error) {
	p, err := b.process(ctx, c, r.GetProviderId(), "drains providers")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Until(c.until))
	defer cancel()
	if err := p.Drain(ctx); err != nil {
		return nil, err
	}
	return &browserv1.DrainResponse{ProviderId: c.provider, Drained: true}, nil
}

// restart has a provider's process end and another begin.
func (b *Broker) restart(ctx context.Context, c *call, r *browserv1.RestartRequest) (proto.Message, error) {
	p, err := b.process(ctx, c, r.GetProviderId(), "restarts providers")
	if err != nil {
		return nil, err
	}
	if err := p.Restart(ctx); err != nil {
		return nil, err
	}
	b.health.well(c.provider)
	return &browserv1.RestartResponse{ProviderId: c.provider, Restarted: true}, nil
}

// process finds the process of a provider for an admin.
func (b *Broker) process(ctx context.Context, c *call, id, what string) (Process, error) {
	if err := b.adminOnly(c, what); err != nil {
		return nil, err
	}
	row := b.refresh().Row(id)
	if row == nil {
		return nil, b.table.Load().unknown(id)
	}
	c.provider = row.ID
	if err := b.allow(c, nil, row, ""); err != nil {
		return nil, err
	}
	p, ok := row.source.(Process)
	if !ok {
		return nil, fault.New(fault.UnsupportedMethod, "%s runs in no process of its own", row.ID)
	}
	placed(ctx)
	c.sent = true
	return p, nil
}

// placeFiles names the files block of the config in a refusal of a path, which is a provider's, who does not know it.
func (b *Broker) placeFiles(c *call, err error) error {
	files := b.policy.Load().Config().Files
	if fault.ReasonOf(err) != "path_refused" || files.Where == "" || len(files.Upload) == 0 {
		return err
	}
	c.rule = files.Where
	return fault.From(err).Clone().With("rule", "files").With("where", files.Where).
		Hint("the files block at %s allows %s", files.Where, strings.Join(files.Upload, ", "))
}
