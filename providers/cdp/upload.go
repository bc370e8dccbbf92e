package cdp

import (
	"context"

	"github.com/droverhq/drover/plugins/shelf"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// setFiles is upload.set_files.
func (p *Provider) setFiles(ctx context.Context, r *browserv1.SetFilesRequest) (*browserv1.SetFilesResponse, error) {
	p.mu.Lock()
	dirs := p.host.GetUploadDirs()
	p.mu.Unlock()
	paths := make([]string, 0, len(r.GetPaths()))
	for _, path := range r.GetPaths() {
		file, err := shelf.Allowed(path, dirs)
		if err != nil {
			return nil, err
		}
		paths = append(paths, file)
	}
	pg, e, err := p.act(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) error {
		_, err := pg.driver.SetFiles(ctx, r.GetTarget(), paths)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.SetFilesResponse{PageId: pg.id, Files: paths, Dialog: e.dialog}, nil
}
