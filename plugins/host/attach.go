package host

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"

	"github.com/droverhq/drover/proto/fault"
)

// Attach makes an instance of a connection that is there already, such as that of a provider in the same process, and
// introduces it as Launch does. closed is called once, when the instance is stopped: it shuts the other side down, within a
// second. The connection is closed after it. Spec.Path is not used.
func Attach(ctx context.Context, spec Spec, conn *grpc.ClientConn, closed func()) (*Instance, error) {
	spec = spec.complete()
	i := newInstance(spec, conn)
	var once sync.Once
	end := func() {
		once.Do(func() {
			i.end(fault.New(fault.BrowserNotRunning, "the provider %s has exited", spec.ID).Reason("provider_exited").Provider(spec.ID))
			go func() {
				defer close(i.released)
				closed()
				_ = conn.Close()
			}()
		})
	}
	i.hangUp, i.kill = end, end
	if err := i.introduce(ctx); err != nil {
		return nil, errors.Join(err, i.Stop(ctx))
	}
	return i, nil
}
