package plugins

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// EgressKey is the gRPC metadata key in which a broker passes the address of a session's egress proxy, for Egress.
const EgressKey = "drover-egress-proxy"

// Egress gives the address, host:port, of the HTTP proxy through which the session that session.ensure asks for has to
// reach everything, loopback included; empty for a session that no guard holds. A provider that lists the feature
// containment_proxy obeys it or fails; no other provider is ever asked for such a session.
func Egress(ctx context.Context) string {
	if at := metadata.ValueFromIncomingContext(ctx, EgressKey); len(at) > 0 {
		return at[0]
	}
	return ""
}
