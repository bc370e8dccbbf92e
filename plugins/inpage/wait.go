package inpage

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Waited is how a wait ended.
type Waited struct {
	// Satisfied says that all conditions held at once; Met are the names of those that held at last.
	Satisfied bool
	Met       []string
	URL       string
}

// shown is what the frames of a page show of the two texts.
type shown struct {
	Present bool     `json:"present"`
	Absent  bool     `json:"absent"`
	Frames  []string `json:"frames,omitempty"`
}

// frameSlice is how long the main document waits by itself before the frames are looked at again.
const frameSlice = 200 * time.Millisecond

// waitSlice is the longest that a document waits by itself: no script of a page can be called back, so one that waits for a
// caller who has gone goes on for no longer than this.
const waitSlice = 2 * time.Second

// Wait waits until the request's conditions hold all at once, also across navigations, at the longest until the context's
// deadline; running out of time is no error. idle tells, for navigation_complete, whether no navigation is under way; nil
// leaves that to the document's readyState. Errors: invalid_selector; invalid_request without a condition.
func (p *Page) Wait(ctx context.Context, r *browserv1.WaitRequest, idle func() bool) (Waited, error) {
	conditions, err := conditionsOf(r)
	if err != nil {
		return Waited{}, err
	}
	w := &waiter{p: p, r: r, conditions: conditions, idle: idle}
	for {
		done, err := w.look(ctx)
		switch {
		case done:
			return w.last, nil
		case errors.Is(err, ErrDocumentGone):
			w.last.Met, w.looked = nil, false
			err = pause(ctx, 20*time.Millisecond)
		}
		if err != nil {
			if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				return w.last, nil
			}
			return w.last, err
		}
		if patience(ctx) <= 0 {
			return w.last, nil
		}
	}
}

// waiter is one wait.
type waiter struct {
	p          *Page
	r          *browserv1.WaitRequest
	conditions map[string]any
	idle       func() bool
	last       Waited
	frames     []string
	looked     bool // the closed roots of the document were opened
}

// look tests the conditions, in the page for as long as nothing outside of it matters.
func (w *waiter) look(ctx context.Context) (bool, error) {
	p := w.p
	main, err := p.eval.MainFrame(ctx)
	if err != nil {
		return false, err
	}
	conditions, more := map[string]any{}, []string{}
	for k, v := range w.conditions {
		conditions[k] = v
	}
	wait := min(patience(ctx), waitSlice)
	if ref, ok := conditions["element_ref_present"].(string); ok {
		if at, ok := p.placeOf(ref); !ok || at.frame != main {
			delete(conditions, "element_ref_present")
			wait = min(wait, frameSlice)
			if ok && p.has(ctx, at.frame, ref) {
				more = append(more, "element_ref_present")
			}
		}
	}
	if w.r.GetNavigationComplete() && w.idle != nil {
		wait = min(wait, frameSlice)
		if !w.idle() {
			delete(conditions, "navigation_complete")
		}
	}
	elsewhere := shown{}
	if len(w.frames) > 0 {
		wait = min(wait, frameSlice)
		elsewhere = w.inFrames(ctx, main, w.frames)
		elsewhere.Frames = nil
	}
	var got struct {
		Met    []string `json:"met"`
		URL    string   `json:"url"`
		Frames []string `json:"frames"`
	}
	if _, ok := p.eval.(RootOpener); ok && !w.looked {
		wait = 0
	}
	known := w.frames
	if known == nil {
		known = []string{}
	}
	err = p.call(ctx, main, "wait", map[string]any{
		"conditions": conditions, "elsewhere": elsewhere, "ms": millis(wait), "frames": known,
	}, &got)
	if err != nil {
		return false, err
	}
	w.frames = got.Frames
	fresh := !slices.Equal(known, got.Frames)
	w.last = Waited{Met: w.order(append(got.Met, more...)), URL: got.URL}
	w.last.Satisfied = len(w.last.Met) == len(w.conditions)
	// What new frames and closed roots show counts too, and may take a satisfaction away.
	if !w.looked && (!w.last.Satisfied || w.r.TextAbsent != nil || w.r.SelectorAbsent != nil) {
		w.looked = true
		n, err := p.openRoots(ctx, main)
		if err != nil || n > 0 {
			w.last.Satisfied = false
			return false, err
		}
	}
	if fresh {
		w.last.Satisfied = false
	}
	return w.last.Satisfied, nil
}

// has says whether a ref's element is in its document.
func (p *Page) has(ctx context.Context, frame FrameID, ref string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var there bool
	return p.call(ctx, frame, "has", map[string]any{"ref": ref}, &there) == nil && there
}

// inFrames asks the frames, all at once, what they show of the two texts. One that does not answer in time may show the text
// that must be absent; one that shows no document shows nothing.
func (w *waiter) inFrames(ctx context.Context, parent FrameID, refs []string) shown {
	ctx, cancel := context.WithTimeout(ctx, min(max(patience(ctx)/2, 50*time.Millisecond), 2*time.Second))
	defer cancel()
	var mu sync.Mutex
	var all shown
	var group errgroup.Group
	group.SetLimit(8)
	for _, ref := range refs {
		group.Go(func() error {
			s := w.inFrame(ctx, parent, ref)
			mu.Lock()
			defer mu.Unlock()
			all.Present, all.Absent = all.Present || s.Present, all.Absent || s.Absent
			return nil
		})
	}
	_ = group.Wait() // The functions give no error.
	return all
}

// inFrame asks one frame, and those in it.
func (w *waiter) inFrame(ctx context.Context, parent FrameID, ref string) shown {
	var s shown
	child, err := w.p.child(ctx, parent, ref)
	if err == nil {
		err = w.p.call(ctx, child, "shows", map[string]any{"present": w.r.TextPresent, "absent": w.r.TextAbsent}, &s)
	}
	if err != nil {
		return shown{Absent: ctx.Err() != nil}
	}
	if len(s.Frames) > 0 {
		inner := w.inFrames(ctx, child, s.Frames)
		s.Present, s.Absent = s.Present || inner.Present, s.Absent || inner.Absent
	}
	return s
}

// conditionNames is the order in which conditions are named.
var conditionNames = []string{
	"text_present", "text_absent", "selector_present", "selector_absent", "element_ref_present", "url_matches", "navigation_complete",
}

// order sorts the names of conditions as the protocol lists them.
func (w *waiter) order(met []string) []string {
	var out []string
	for _, name := range conditionNames {
		if slices.Contains(met, name) {
			out = append(out, name)
		}
	}
	return out
}

// conditionsOf gives the request's conditions as the engine takes them.
func conditionsOf(r *browserv1.WaitRequest) (map[string]any, error) {
	c := map[string]any{}
	for name, v := range map[string]*string{
		"text_present": r.TextPresent, "text_absent": r.TextAbsent, "selector_present": r.SelectorPresent,
		"selector_absent": r.SelectorAbsent, "element_ref_present": r.ElementRefPresent, "url_matches": r.UrlMatches,
	} {
		if v == nil {
			continue
		}
		if strings.TrimSpace(*v) == "" {
			return nil, fault.New(fault.InvalidRequest, "%s is empty", name).Field(name)
		}
		c[name] = *v
	}
	if r.ElementRefPresent != nil {
		c["element_ref_present"] = bare(r.GetElementRefPresent())
	}
	if r.UrlMatches != nil {
		c["url_matches"] = globPattern(r.GetUrlMatches())
	}
	if r.GetNavigationComplete() {
		c["navigation_complete"] = true
	}
	if len(c) == 0 {
		return nil, fault.New(fault.InvalidRequest, "nothing to wait for").Hint("give at least one of %s", strings.Join(conditionNames, ", "))
	}
	return c, nil
}

// globPattern turns a glob over a whole URL into a regular expression: * within a segment, ** across.
func globPattern(glob string) string {
	var b strings.Builder
	b.WriteByte('^')
	for i := 0; i < len(glob); {
		switch {
		case strings.HasPrefix(glob[i:], "**"):
			b.WriteString("[^]*")
			i += 2
		case glob[i] == '*':
			b.WriteString("[^/]*")
			i++
		default:
			n := strings.IndexByte(glob[i:], '*')
			if n < 0 {
				n = len(glob) - i
			}
			b.WriteString(quoteJS(glob[i : i+n]))
			i += n
		}
	}
	b.WriteByte('$')
	return b.String()
}

// quoteJS quotes text for a regular expression of JavaScript with the u flag, which knows fewer escapes than Go's.
func quoteJS(s string) string { return strings.ReplaceAll(regexp.QuoteMeta(s), `\-`, "-") }
