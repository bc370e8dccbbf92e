package cdp

import (
	"context"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// getArtifact is artifact.get.
func (p *Provider) getArtifact(_ context.Context, r *browserv1.GetArtifactRequest) (*browserv1.GetArtifactResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	return s.files.Get(r)
}
