package inpage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// defaultNodes is the number of nodes that a request without max_nodes gets.
const defaultNodes = 2000

// Snapshot reads the page, its frames included. PageId and the screenshot are left to the provider. Errors:
// element_not_found (stale_ref) for a root_ref that is gone.
func (p *Page) Snapshot(ctx context.Context, r *browserv1.SnapshotRequest) (*browserv1.SnapshotResponse, error) {
	limit := defaultNodes
	if r.MaxNodes != nil {
		limit = int(r.GetMaxNodes())
	}
	outlined := r.GetFormat() == browserv1.SnapshotFormat_SNAPSHOT_FORMAT_OUTLINE
	q := query{MaxNodes: limit, InteractiveOnly: r.GetInteractiveOnly(), Want: wants{
		Nodes:   !outlined,
		Outline: outlined || r.GetIncludeOutline(),
		Text:    r.IncludeText == nil || r.GetIncludeText(),
		HTML:    r.GetIncludeHtml(),
		DOM:     r.GetIncludeDom(),
	}}
	frame, read, err := p.readPage(ctx, r, q)
	if err != nil {
		return nil, err
	}
	s := stitch(read, limit)
	resp := &browserv1.SnapshotResponse{
		Url: read.URL, Title: read.Title, SnapshotId: fmt.Sprintf("s%d", p.session.nextSnapshot()),
		Snapshot: &browserv1.Snapshot{Format: browserv1.SnapshotFormat_SNAPSHOT_FORMAT_JCODE_PAGE_SNAPSHOT_V1},
	}
	if main, err := p.eval.MainFrame(ctx); err == nil && main != frame {
		var top struct{ URL, Title string }
		if err := p.call(ctx, main, "where", nil, &top); err == nil {
			resp.Url, resp.Title = top.URL, top.Title
		}
	}
	now := &taken{id: resp.GetSnapshotId(), nodes: s.nodes, lines: s.lines, scope: scope(r)}
	full := *s
	if r.Since != nil {
		if base := p.taken(r.GetSince()); base != nil && base.scope == now.scope && base.fits(q.Want) {
			s.since(base, resp.Snapshot)
		} else {
			resp.Warnings = append(resp.Warnings, &browserv1.Warning{
				Code: "since_unknown", Message: "the whole page is given: the snapshot named by since is too old, or was taken in another form",
			})
		}
	}
	p.keep(now)
	fill(resp, r, s, &full, outlined)
	return resp, provide(resp, s, read)
}

// fill writes the stitched page into the response.
func fill(resp *browserv1.SnapshotResponse, r *browserv1.SnapshotRequest, s, full *stitched, outlined bool) {
	snap := resp.Snapshot
	if outlined {
		snap.Format = browserv1.SnapshotFormat_SNAPSHOT_FORMAT_OUTLINE
		snap.Root = &browserv1.Node{NodeId: "n1", Role: "document", Name: resp.GetTitle()}
	} else if len(s.nodes) > 0 {
		snap.Root = s.nodes[0]
		snap.Nodes = s.nodes[1:]
		resp.Elements = s.elements
	}
	if r.IncludeA11Y != nil && !r.GetIncludeA11Y() {
		snap.Nodes = nil
		if snap.Root != nil {
			snap.Root.Children = nil
		}
	}
	if full.truncated {
		yes, total := true, int32(min(full.total, 1<<31-1))
		snap.Truncated, snap.TotalNodes = &yes, &total
	}
	if outlined || r.GetIncludeOutline() {
		text := strings.Join(s.lines, "\n")
		resp.Outline = &text
	}
	if r.IncludeText == nil || r.GetIncludeText() {
		resp.Text = &s.text
	}
}

// provide fills provider_data.
func provide(resp *browserv1.SnapshotResponse, s *stitched, read *reading) error {
	data := map[string]any{}
	if len(s.omitted) > 0 {
		data["omitted"] = s.omitted
	}
	if read.HTML != nil {
		data["html"] = *read.HTML
	}
	if len(read.DOM) > 0 {
		data["dom"] = read.DOM
	}
	if len(data) == 0 {
		return nil
	}
	var err error
	resp.ProviderData, err = wire.ToStruct(data)
	return err
}

// readPage reads the document that the request means, again when it is replaced meanwhile.
func (p *Page) readPage(ctx context.Context, r *browserv1.SnapshotRequest, q query) (FrameID, *reading, error) {
	for {
		var frame FrameID
		var err error
		if r.RootRef != nil {
			q.RootRef = bare(r.GetRootRef())
			frame, err = p.FrameOf(ctx, q.RootRef)
		} else {
			frame, err = p.eval.MainFrame(ctx)
		}
		if err != nil {
			return frame, nil, err
		}
		read, err := p.read(ctx, frame, q)
		switch {
		case err == nil:
			return frame, read, nil
		case errors.Is(err, ErrDocumentGone) && r.RootRef != nil, fault.ReasonOf(err) == "stale_ref":
			return frame, nil, p.stale(ctx, q.RootRef)
		case !errors.Is(err, ErrDocumentGone):
			return frame, nil, err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return frame, nil, err
		}
	}
}

// scope is what a snapshot covers; only those of the same scope can be compared.
func scope(r *browserv1.SnapshotRequest) string {
	return fmt.Sprintf("%s %v %d", bare(r.GetRootRef()), r.GetInteractiveOnly(), r.GetMaxNodes())
}
