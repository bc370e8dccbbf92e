package inpage

import (
	"context"
	"errors"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// SetFiles puts files into the file input that the target means, which may be hidden. The paths are absolute and allowed;
// checking that is the provider's. It gives the names that the input holds then. Errors: those of Locate;
// unsupported_target for what is no file input; invalid_request for several files where it takes one.
func (p *Page) SetFiles(ctx context.Context, t *browserv1.Target, paths []string) ([]string, error) {
	setter, ok := p.eval.(FileSetter)
	if !ok {
		return nil, fault.New(fault.UnsupportedMethod, "this provider cannot put files into a page").Reason("file_upload")
	}
	var in struct {
		Ref      string `json:"ref"`
		Multiple bool   `json:"multiple"`
	}
	var frame FrameID
	err := p.seek(ctx, t, "file_input", func(a aim, wait int, leave string) any {
		return map[string]any{"target": a, "wait": wait, "leave": leave}
	}, func(f FrameID) any { frame = f; return &in })
	if err != nil {
		return nil, err
	}
	if len(paths) > 1 && !in.Multiple {
		return nil, fault.New(fault.InvalidRequest, "the file input %s takes one file, and %d were given", in.Ref, len(paths)).Field("paths")
	}
	if err := setter.SetFiles(ctx, frame, element(in.Ref), paths); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, afterInput(err)
	}
	var names []string
	if err := p.call(ctx, frame, "files", map[string]any{"ref": in.Ref}, &names); err != nil && !errors.Is(err, ErrDocumentGone) {
		return nil, afterInput(err)
	}
	return names, nil
}
