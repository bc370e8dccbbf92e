package inpage

import (
	"context"
	"errors"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// ready is a target that the engine made ready for the pointer. X and Y are CSS pixels of its frame's viewport until
// through has made them ones of the page's.
type ready struct {
	Ref    string  `json:"ref"`
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Moving bool    `json:"moving"`
	VX     float64 `json:"vx"` // CSS pixels a millisecond
	VY     float64 `json:"vy"`
	Frame  bool    `json:"frame"`
	Tag    string  `json:"tag"`

	at FrameID
}

// shows says whether the target is an element that shows a frame.
func (r ready) shows() bool { return r.Tag == "iframe" || r.Tag == "frame" }

// guard is what the engine saw of the input: OK is nil when nothing came, false when it went to another element (Other).
type guard struct {
	OK    *bool          `json:"ok"`
	Seen  map[string]int `json:"seen"`
	On    map[string]any `json:"on"`
	Other string         `json:"other"`
	// Active says that the window was activated meanwhile, as only a press can do, though none was seen.
	Active bool `json:"active"`
	// Files is the ref of the file input that asked the browser for a dialog of files.
	Files string `json:"files"`
}

// warnings tells what the input led to that no answer has a field for.
func (g guard) warnings() []*browserv1.Warning {
	if g.Files == "" {
		return nil
	}
	return []*browserv1.Warning{{
		Code:    "file_chooser",
		Message: "the page asked for files; give them to " + g.Files + " with upload.set_files",
		Details: &structpb.Struct{Fields: map[string]*structpb.Value{"element_ref": structpb.NewStringValue(g.Files)}},
	}}
}

// how says in what way a target is made ready.
type how struct {
	kind  string // press, move or drop
	force bool
	quick bool // do not scroll
	armed bool
}

// prepare waits until a target can be acted on, scrolls it to where a point of it is hit, and arms the guard in its frame.
// The point it gives is one of the page's viewport.
func (p *Page) prepare(ctx context.Context, t *browserv1.Target, h how) (ready, error) {
	if t.GetPosition() != nil && t.FrameRef == nil {
		return p.prepareAt(ctx, t.GetPosition().GetX(), t.GetPosition().GetY(), h)
	}
	for {
		r := ready{}
		err := p.seek(ctx, t, "prepare", func(a aim, wait int, leave string) any {
			return p.how(h, map[string]any{"target": a, "wait": wait, "leave": leave})
		}, func(f FrameID) any { r = ready{at: f}; return &r })
		if err != nil {
			return r, err
		}
		err = p.through(ctx, &r, h)
		if err == nil && r.shows() {
			// The input goes to the document that the frame shows, so that one is watched.
			p.disarm(ctx, r.at)
			return p.prepareAt(ctx, r.X, r.Y, h)
		}
		if err == nil {
			return r, nil
		}
		p.disarm(ctx, r.at)
		// The frame around it may still be loading, or be covered for a moment.
		again := fault.CodeOf(err) == fault.ElementNotActionable && patience(ctx) > 7*time.Second
		if !again && !errors.Is(err, ErrDocumentGone) {
			return r, err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return r, err
		}
	}
}

// how adds to an operation's arguments in what way the target is made ready.
func (p *Page) how(h how, args map[string]any) map[string]any {
	args["kind"], args["force"], args["quick"], args["arm"], args["synthetic"] = h.kind, h.force, h.quick, h.armed, p.synthetic
	return args
}

// prepareAt arms the guard in the innermost frame at a point of the viewport.
func (p *Page) prepareAt(ctx context.Context, x, y float64, h how) (ready, error) {
	frame, err := p.eval.MainFrame(ctx)
	if err != nil {
		return ready{}, err
	}
	px, py := x, y
	for {
		r := ready{at: frame}
		if err := p.call(ctx, frame, "prepare", p.how(h, map[string]any{"target": aim{X: &px, Y: &py}}), &r); err != nil {
			return r, err
		}
		if r.Frame {
			child, err := p.child(ctx, frame, r.Ref)
			if err == nil {
				var in struct{ X, Y float64 }
				if err := p.call(ctx, frame, "into", map[string]any{"ref": r.Ref, "x": px, "y": py}, &in); err != nil {
					return r, err
				}
				p.disarm(ctx, frame)
				frame, px, py = child, in.X, in.Y
				continue
			}
			if !errors.Is(err, ErrDocumentGone) {
				return r, err
			}
		}
		r.X, r.Y = x, y
		return r, nil
	}
}

// through turns the point of a child frame into one of the page's viewport, frame by frame outwards.
func (p *Page) through(ctx context.Context, r *ready, h how) error {
	for frame := r.at; ; {
		up, ok := p.parentOf(frame)
		if !ok {
			return nil
		}
		args := map[string]any{"ref": up.ref, "x": r.X, "y": r.Y, "quick": h.quick, "force": h.force}
		var pt struct{ X, Y float64 }
		if err := p.call(ctx, up.frame, "through", args, &pt); err != nil {
			return err
		}
		r.X, r.Y = pt.X, pt.Y
		frame = up.frame
	}
}

// disarm takes the guard away. It is tried only: a document that is gone has no guard.
func (p *Page) disarm(ctx context.Context, frame FrameID) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = p.call(ctx, frame, "disarm", nil, nil)
}

// led is the point of a moving target after some time.
func (r ready) led(d time.Duration) (x, y float64) {
	if !r.Moving {
		return r.X, r.Y
	}
	ms := float64(d.Milliseconds())
	return math.Max(0, r.X+r.VX*ms), math.Max(0, r.Y+r.VY*ms)
}

// perform dispatches a batch; an ended context gives its cause, marked as after the input. Whatever happens, modifier keys
// that the batch held are let go of.
func (p *Page) perform(ctx context.Context, events []Event) error {
	err := p.input.Perform(ctx, events)
	if err == nil {
		return nil
	}
	var held Modifiers
	for _, e := range events {
		if e.Kind == KeyDown {
			held |= modifierBits[e.Key]
		}
	}
	if held != 0 {
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), 500*time.Millisecond)
		// The first error is the one to tell.
		_ = p.input.Perform(brief, releaseEvents(held))
		cancel()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return afterInput(err)
}

// confirm asks the guard. A document that went away after the input got it.
func (p *Page) confirm(ctx context.Context, frame FrameID, until string) (guard, error) {
	var g guard
	err := p.call(ctx, frame, "confirm", map[string]any{"wait": 250, "until": until}, &g)
	if errors.Is(err, ErrDocumentGone) {
		yes := true
		return guard{OK: &yes, Seen: map[string]int{"gone": 1}, On: map[string]any{"gone": true}}, nil
	}
	return g, afterInput(err)
}
