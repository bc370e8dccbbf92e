package mcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// answer is the way of a tool call, from top to bottom: its arguments, its session, the call, the reply.
func (c *client) answer(ctx context.Context, t *tool, req *mcp.CallToolRequest, r *reply) error {
	args, msg, err := t.parse(req.Params.Arguments)
	if err != nil {
		return err
	}
	r.room = args.room
	ctx, done := c.stages.report(ctx, c.caller, req)
	defer done()

	s, err := c.sit(ctx, t, args, msg, r)
	if err != nil || r.finished {
		return err
	}
	r.seat = s
	prepare(msg)
	if t.method.Spec.GetNavigates() {
		c.stages.say(ctx, "navigating")
	}
	resp, err := c.caller.Call(ctx, t.method, msg)
	if err != nil {
		c.lost(s, err)
		return err
	}
	switch resp := resp.(type) {
	case *browserv1.SnapshotResponse:
		s.note(resp.GetPageId(), resp.GetSnapshotId())
		r.snapshot(resp, args.offset, "")
	case *browserv1.ScreenshotResponse:
		r.picture(c, resp)
	case *browserv1.ListDownloadsResponse:
		r.downloads(s, resp.GetDownloads())
	case *browserv1.WaitDownloadResponse:
		r.downloads(s, resp.GetDownloads())
	case *browserv1.CloseSessionResponse:
		c.forget(s)
	}
	if err := r.take(resp); err != nil {
		return err
	}
	if args.snapshot != snapshotNone {
		c.show(ctx, s, args.snapshot, resp, r)
	}
	r.fit(c)
	return nil
}

// sit puts the session that the call is about into its request, and makes it where there is none yet.
func (c *client) sit(ctx context.Context, t *tool, args arguments, msg proto.Message, r *reply) (*seat, error) {
	ask, makes := msg.(*browserv1.EnsureSessionRequest)
	if !makes && !t.method.NeedsSession() && (!t.passes() || catalog.ProviderID(msg) != "") {
		return nil, nil
	}
	name, minted, err := c.name(args.session, makes || t.method.Spec.GetNavigates() && catalog.PageID(msg) == "")
	if err != nil {
		return nil, err
	}
	if minted || name != c.session {
		r.session = name
	}
	if makes {
		c.stages.say(ctx, "choosing a browser")
		_, made, err := c.ensure(ctx, name, ask)
		if err != nil {
			return nil, err
		}
		c.stages.say(ctx, made.GetBrowserLabel()+" is ready, by the provider "+made.GetProviderId())
		r.finished = true
		return nil, r.take(made)
	}
	s := c.known(name)
	if s == nil && t.ends() {
		return nil, fault.New(fault.SessionNotFound, "there is no session %q on this connection", name).Field(argSession)
	}
	if s == nil {
		c.stages.say(ctx, "choosing a browser")
		var made *browserv1.EnsureSessionResponse
		if s, made, err = c.ensure(ctx, name, &browserv1.EnsureSessionRequest{}); err != nil {
			return nil, err
		}
		r.warn(made.GetWarnings())
		r.blank = made.GetCreated() && !t.method.Spec.GetNavigates() && t.method.Spec.GetLane() == browserv1.Lane_LANE_PAGE
		c.stages.say(ctx, made.GetBrowserLabel()+" is ready, by the provider "+made.GetProviderId())
	}
	catalog.SetSessionID(msg, s.id)
	return s, nil
}

// lost forgets a session that the broker does not have any more, so that the next call makes a new one. The call that found
// out is told so: its pages are gone, and nothing is done twice behind its back.
func (c *client) lost(s *seat, err error) {
	if s == nil {
		return
	}
	if code := fault.CodeOf(err); code == fault.SessionNotFound || code == fault.BrowserNotRunning {
		c.forget(s)
	}
}

// prepare asks for what the face shows: an outline in place of the tree, bytes in place of a ref.
func prepare(msg proto.Message) {
	switch req := msg.(type) {
	case *browserv1.SnapshotRequest:
		req.Format = browserv1.SnapshotFormat_SNAPSHOT_FORMAT_OUTLINE.Enum()
		req.IncludeText, req.IncludeA11Y = proto.Bool(false), proto.Bool(true)
	case *browserv1.ScreenshotRequest:
		req.Inline = proto.Bool(true)
	}
}

var snapshotMethod = must("page.snapshot")

// show adds to the reply of an action how the page is afterwards. The action is done: what goes wrong here is told, and is
// no error.
func (c *client) show(ctx context.Context, s *seat, how string, after proto.Message, r *reply) {
	if d, ok := after.(interface{ GetDialog() *browserv1.Dialog }); ok && d.GetDialog() != nil {
		r.say("no snapshot while the dialog is open")
		return
	}
	page := catalog.PageID(after)
	req := &browserv1.SnapshotRequest{SessionId: s.id}
	prepare(req)
	if page != "" {
		req.PageId = &page
	}
	kind := ""
	if last := s.latest(page); how == snapshotDelta && last != "" {
		req.Since, kind = &last, snapshotDelta
	}
	got, err := c.caller.Call(ctx, snapshotMethod, req)
	resp, ok := got.(*browserv1.SnapshotResponse)
	if err != nil || !ok {
		r.say("no snapshot: " + renamed(fault.From(err).Message))
		return
	}
	s.note(resp.GetPageId(), resp.GetSnapshotId())
	for _, w := range resp.GetWarnings() {
		if w.GetCode() == "since_unknown" {
			kind = ""
		}
	}
	r.set("snapshot_id", resp.GetSnapshotId())
	r.snapshot(resp, 0, kind)
}
