package envelope

import (
	"context"
	"net"

	"github.com/hashicorp/go-hclog"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/face/door"
)

// ServeSocket speaks envelopes, one a line, with everyone who connects to a unix socket, until ctx ends. The peer is known
// by its user id; its sessions outlive the connection.
func ServeSocket(ctx context.Context, b *broker.Broker, l net.Listener, log hclog.Logger) error {
	if log == nil {
		log = hclog.NewNullLogger()
	}
	return door.AcceptAll(ctx, l, func(ctx context.Context, c net.Conn) {
		who, err := door.Peer(c)
		if err != nil {
			log.Warn("connection refused", "error", err)
			return
		}
		if err := Serve(ctx, b.Connect(who, broker.Unbound), c, c); err != nil && ctx.Err() == nil {
			log.Debug("connection ended", "error", err)
		}
	})
}
