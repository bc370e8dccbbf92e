package inpage

import (
	"context"
	"errors"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// aim is a target as the engine takes it; one of Ref, Selector, Text, X and Y, or Focused is set.
type aim struct {
	Ref      string   `json:"ref,omitempty"`
	Selector *string  `json:"selector,omitempty"`
	Text     *string  `json:"text,omitempty"`
	X        *float64 `json:"x,omitempty"`
	Y        *float64 `json:"y,omitempty"`
	Focused  bool     `json:"focused,omitempty"`
	// Was is what a ref stood for when it was last listed, to find the closest candidates when it is stale.
	Was *was `json:"was,omitempty"`
}

// was is a role and a name.
type was struct {
	Role string `json:"role"`
	Name string `json:"name"`
}

// spot is a target and the frame in which it is looked up.
type spot struct {
	frame FrameID
	aim   aim
	// roam lets the search go on in child frames when the frame's own document has no hit.
	roam bool
}

// Located is an element that a target means.
type Located struct {
	Frame FrameID `json:"-"`
	// Ref is the element's ref; Role and Name its role and accessible name; Tag its local name.
	Ref  string `json:"ref"`
	Role string `json:"role"`
	Name string `json:"name"`
	Tag  string `json:"tag"`
	// Expression gives the element in the engine's world of Frame.
	Expression string `json:"-"`
}

// Locate finds the element that a target means, waiting for it until the context's deadline, and touches nothing.
// Errors: element_not_found (stale_ref), invalid_selector, invalid_request (ambiguous_target).
func (p *Page) Locate(ctx context.Context, t *browserv1.Target) (Located, error) {
	var out Located
	err := p.seek(ctx, t, "locate", func(a aim, wait int, leave string) any {
		return map[string]any{"target": a, "wait": wait, "leave": leave}
	}, func(frame FrameID) any { out = Located{Frame: frame}; return &out })
	if err != nil {
		return Located{}, err
	}
	out.Expression = element(out.Ref)
	return out, nil
}

// FrameOf gives the frame whose document the ref's element stands in. ElementNotFound, stale_ref, for a ref of no document.
func (p *Page) FrameOf(ctx context.Context, ref string) (FrameID, error) {
	at, ok := p.placeOf(bare(ref))
	if !ok {
		return "", p.stale(ctx, bare(ref))
	}
	return at.frame, nil
}

// ContentFrame gives the frame that the iframe of a ref shows, as frame_ref means it.
// Errors: element_not_found for a stale ref, unsupported_target when the element shows no frame.
func (p *Page) ContentFrame(ctx context.Context, ref string) (FrameID, error) {
	ref = bare(ref)
	frame, err := p.FrameOf(ctx, ref)
	if err != nil {
		return "", err
	}
	var there bool
	if err := p.call(ctx, frame, "has", map[string]any{"ref": ref}, &there); err != nil && !errors.Is(err, ErrDocumentGone) {
		return "", err
	}
	if !there {
		return "", p.stale(ctx, ref)
	}
	child, err := p.child(ctx, frame, ref)
	if errors.Is(err, ErrDocumentGone) {
		return "", fault.New(fault.UnsupportedTarget, "the element %s shows no frame", ref).Field("frame_ref").
			Hint("give the element_ref of an iframe")
	}
	return child, err
}

// placeOf tells in which frame of this page a ref's document is shown.
func (p *Page) placeOf(ref string) (place, bool) {
	doc := docOf(ref)
	if doc == 0 {
		return place{}, false
	}
	at, ok := p.session.where(doc)
	return at, ok && at.page == p
}

// docOf reads the document's number of a ref `d<document>e<n>`; 0 for anything else.
func docOf(ref string) int {
	if len(ref) < 4 || ref[0] != 'd' {
		return 0
	}
	n, i := 0, 1
	for ; i < len(ref) && ref[i] >= '0' && ref[i] <= '9' && n < 1<<40; i++ {
		n = n*10 + int(ref[i]-'0')
	}
	if i == 1 || i+1 >= len(ref) || ref[i] != 'e' {
		return 0
	}
	for i++; i < len(ref); i++ {
		if ref[i] < '0' || ref[i] > '9' {
			return 0
		}
	}
	return n
}

// stale is the error of a ref whose element or document is gone, with the elements of the page that look like it.
func (p *Page) stale(ctx context.Context, ref string) error {
	e := fault.New(fault.ElementNotFound, "the element of %s is no longer in the page", ref).Reason("stale_ref").
		With("element_ref", ref).With("gone", "document").Hint("take a new page.snapshot")
	candidates := []any{}
	if k, ok := p.recall(ref); ok {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if frame, err := p.eval.MainFrame(ctx); err == nil {
			// Without an answer the error still stands, only without candidates.
			_ = p.call(ctx, frame, "closest", k, &candidates)
		}
	}
	return e.With("candidates", candidates)
}

// spotOf finds the frame of a target. nil is the focused element.
func (p *Page) spotOf(ctx context.Context, t *browserv1.Target) (spot, error) {
	var s spot
	if ref := t.GetElementRef(); t != nil && t.ElementRef != nil {
		ref = bare(ref)
		at, ok := p.placeOf(ref)
		if !ok {
			return s, p.stale(ctx, ref)
		}
		s = spot{frame: at.frame, aim: aim{Ref: ref}}
		if k, ok := p.recall(ref); ok {
			s.aim.Was = &k
		}
		return s, nil
	}
	var err error
	if t != nil && t.FrameRef != nil {
		s.frame, err = p.ContentFrame(ctx, t.GetFrameRef())
	} else {
		s.frame, err = p.eval.MainFrame(ctx)
	}
	if err != nil {
		return s, err
	}
	switch {
	case t == nil:
		s.aim.Focused = true
	case t.Selector != nil:
		s.aim.Selector = t.Selector
	case t.TextQuery != nil:
		s.aim.Text = t.TextQuery
		s.roam = true
	case t.Position != nil:
		x, y := t.GetPosition().GetX(), t.GetPosition().GetY()
		s.aim.X, s.aim.Y = &x, &y
	case t.FrameRef == nil:
		s.aim.Focused = true
	default:
		return s, fault.New(fault.InvalidRequest, "frame_ref needs a selector or a text_query").Field("frame_ref")
	}
	return s, nil
}

// seek runs an operation that finds its own target. Where the document does not have it, it opens closed roots, looks in
// child frames for a text, and waits; it goes on in the new document when the page moves on; until the context's deadline.
// args makes the operation's arguments, with how long it may wait and when it shall leave off searching ("now", "frames" or
// not at all); out says where its value goes, told the frame it comes from.
func (p *Page) seek(ctx context.Context, t *browserv1.Target, op string, args func(a aim, wait int, leave string) any, out func(FrameID) any) error {
	var missing error
	leave := "now"
	for {
		s, err := p.spotOf(ctx, t)
		if err == nil {
			err = p.call(ctx, s.frame, op, args(s.aim, millis(allowance(ctx)), leave), out(s.frame))
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			if missing != nil && errors.Is(err, context.DeadlineExceeded) {
				return missing
			}
			return err
		case errors.Is(err, ErrDocumentGone):
			if s.aim.Ref != "" {
				return p.stale(ctx, s.aim.Ref)
			}
			err = pause(ctx, 20*time.Millisecond)
		case fault.ReasonOf(err) == "elsewhere":
			elsewhere := fault.From(err)
			missing = fault.New(fault.ElementNotFound, "%s", elsewhere.Message)
			var found bool
			if found, err = p.elsewhere(ctx, s, elsewhere, op, args, out); found {
				return err
			}
			if patience(ctx) < 30*time.Millisecond {
				return missing
			}
			leave = ""
			if s.roam {
				leave = "frames"
			}
		}
		if err != nil {
			return err
		}
	}
}

// elsewhere looks for a target where its document's own tree does not have it: in closed roots and, for a text, in frames.
func (p *Page) elsewhere(ctx context.Context, s spot, e *fault.Error, op string, args func(aim, int, string) any, out func(FrameID) any) (bool, error) {
	n, err := p.openRoots(ctx, s.frame)
	if err != nil && !errors.Is(err, ErrDocumentGone) {
		return false, err
	}
	if n > 0 {
		err := p.call(ctx, s.frame, op, args(s.aim, millis(allowance(ctx)), "now"), out(s.frame))
		if fault.ReasonOf(err) != "elsewhere" && !errors.Is(err, ErrDocumentGone) {
			return true, err
		}
	}
	if !s.roam {
		return false, nil
	}
	return p.roam(ctx, s, e, op, args, out)
}

// roam looks in the frames that a document shows, each with what it shows in turn. A frame that does not answer in time is passed over.
func (p *Page) roam(ctx context.Context, s spot, elsewhere *fault.Error, op string, args func(aim, int, string) any, out func(FrameID) any) (bool, error) {
	refs, _ := elsewhere.Details["frames"].([]any)
	for _, r := range refs {
		ref, _ := r.(string)
		brief, cancel := context.WithTimeout(ctx, max(patience(ctx)/2, 200*time.Millisecond))
		found, err := p.inFrame(brief, s, ref, op, args, out)
		spent := brief.Err() != nil && ctx.Err() == nil
		cancel()
		if (found || err != nil) && !spent {
			return found, err
		}
	}
	return false, nil
}

// inFrame looks for a target in the document of one frame element, and in what that shows.
func (p *Page) inFrame(ctx context.Context, s spot, ref, op string, args func(aim, int, string) any, out func(FrameID) any) (bool, error) {
	child, err := p.child(ctx, s.frame, ref)
	if err == nil {
		err = p.call(ctx, child, op, args(s.aim, millis(allowance(ctx)), "now"), out(child))
	}
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case fault.ReasonOf(err) == "elsewhere":
		return p.elsewhere(ctx, spot{frame: child, aim: s.aim, roam: true}, fault.From(err), op, args, out)
	case errors.Is(err, ErrDocumentGone), fault.CodeOf(err) == fault.InternalError:
		return false, nil // This frame cannot be looked into; another may.
	}
	return true, err
}

// openRoots hands closed roots to the engine until no more turn up, and says how many.
func (p *Page) openRoots(ctx context.Context, frame FrameID) (int, error) {
	opener, ok := p.eval.(RootOpener)
	if !ok {
		return 0, nil
	}
	total := 0
	for range 8 {
		n, err := opener.OpenRoots(ctx, frame)
		if err != nil {
			return total, err
		}
		total += n
		if n == 0 {
			break
		}
	}
	return total, nil
}

// pause waits, or ends with the context.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
