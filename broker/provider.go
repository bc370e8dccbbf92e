package broker

import (
	"context"
	"iter"

	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
)

// Provider is one life of a provider process (or of a provider in this process): it is ready when the broker gets it, and
// once Done is closed it never comes back. All methods may be called concurrently. Errors are faults.
type Provider interface {
	// ID is the provider_id.
	ID() string
	// Describe is what the provider said of itself when this life began. The message is shared: it is not changed.
	Describe() *browserv1.DescribeResponse
	// Call answers a normalized method. It returns soon after ctx ends. The request belongs to it.
	Call(ctx context.Context, m *catalog.Method, req proto.Message) (proto.Message, error)
	// Custom answers one of the provider's own methods.
	Custom(ctx context.Context, req *browserv1.CustomRequest) (*browserv1.CustomResponse, error)
	// Events gives what happens, with the provider's own session ids, until ctx or the life ends.
	Events(ctx context.Context) iter.Seq2[*browserv1.Event, error]
	// Done is closed when this life is over.
	Done() <-chan struct{}
}

// Process is a source whose process an admin can end. Both end it with the sessions that are left, and return when that is
// done, or with the reason why it was not in time.
type Process interface {
	// Drain gives no new life, waits until the sessions have ended or ctx does, and ends the process. It stays so until
	// Restart.
	Drain(ctx context.Context) error
	// Restart ends the process and waits until the next one is ready.
	Restart(ctx context.Context) error
}

// Source is a provider over all its lives: what the broker routes to. All methods may be called concurrently; all but
// Acquire return at once.
type Source interface {
	// ID is the provider_id; it never changes.
	ID() string
	// Describe is what the provider said last, from a cache where no process runs; false when it never spoke. The message
	// is shared: it is not changed.
	Describe() (*browserv1.DescribeResponse, bool)
	// Status is how the provider is, as last known. The message is shared: it is not changed.
	Status() *browserv1.StatusResponse
	// Acquire gives the running life, and starts one where none runs. It waits until the life is ready, has failed, or ctx
	// ends. A failure is setup_required where a person has to do something.
	Acquire(ctx context.Context) (Provider, error)
}
