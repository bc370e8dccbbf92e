package broker

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
)

// lane keeps the calls of one session in order: those on one page run in the order of arrival, those on the whole session
// (LANE_SESSION) wait for all earlier ones and hold later ones up, and the rest never come here. Two pages never delay
// each other. A call without page_id means the active page, which the lane learns from answers.
type lane struct {
	mu     sync.Mutex
	queue  []*turn // in order of arrival: those that run, and those that wait
	active string  // the active page, as the last answer told it; empty when it is not known
}

// turn is a call's place in the lane.
type turn struct {
	whole bool   // it is about the whole session
	page  string // it is about this page; empty for the active one
	opens bool   // it makes a new page the active one, without touching the one that was
	ready chan struct{}
	runs  bool
}

// enter gives a call its place, or nil for a call that waits for nobody and that nobody waits for.
func (l *lane) enter(m *catalog.Method, req proto.Message) *turn {
	t := &turn{page: catalog.PageID(req)}
	switch m.Spec.GetLane() {
	case browserv1.Lane_LANE_PAGE:
		if open, ok := req.(*browserv1.OpenRequest); ok && open.GetNewPage() {
			t.page, t.opens = "", true
		}
	case browserv1.Lane_LANE_SESSION:
		t.whole = true
	default:
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, t)
	if len(l.queue) == 1 {
		t.runs = true
		return t
	}
	t.ready = make(chan struct{})
	l.wake()
	return t
}

// free says that a call need not wait.
func (t *turn) free() bool {
	if t == nil || t.ready == nil {
		return true
	}
	select {
	case <-t.ready:
		return true
	default:
		return false
	}
}

// wait returns when it is the call's turn, with the cause when ctx ends first, and with context.DeadlineExceeded at the
// caller's deadline.
func (t *turn) wait(ctx context.Context, until time.Time) error {
	if t == nil || t.ready == nil {
		return nil
	}
	late := time.NewTimer(time.Until(until))
	defer late.Stop()
	select {
	case <-t.ready:
		return nil
	case <-late.C:
		return context.DeadlineExceeded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave ends a call's turn, or gives up its place.
func (l *lane) leave(t *turn) {
	if t == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, t); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
	l.wake()
}

// learn notes the active page.
func (l *lane) learn(page string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active != page {
		l.active = page
		l.wake()
	}
}

// forget notes that a page is gone, so that the active one is not known when it was that.
func (l *lane) forget(page string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active == page {
		l.active = ""
	}
}

// wake lets every call run that no earlier one is in the way of.
func (l *lane) wake() {
	var earlier crowd
	for i, t := range l.queue {
		if !t.runs && !earlier.blocks(t, i > 0, l.active) {
			t.runs = true
			close(t.ready)
		}
		if t.whole {
			return // it holds everything later up
		}
		earlier.add(t)
	}
}

// crowd is what stands before a call in the lane.
type crowd struct {
	pages  []string
	active bool // one on the active page
	opener bool // one that makes a new page the active one
}

func (c *crowd) add(t *turn) {
	switch {
	case t.opens:
		c.opener = true
	case t.page == "":
		c.active = true
	case !slices.Contains(c.pages, t.page):
		c.pages = append(c.pages, t.page)
	}
}

func (c *crowd) blocks(t *turn, others bool, active string) bool {
	switch {
	case t.whole:
		return others
	case t.opens:
		return c.active || c.opener
	case t.page == "":
		return c.active || c.opener || slices.Contains(c.pages, active) || active == "" && len(c.pages) > 0
	default:
		return slices.Contains(c.pages, t.page) || c.active && (active == t.page || active == "")
	}
}

// activePage tells which page an answer says is the active one now; false when it does not say. asked is the page that the
// request named.
func activePage(req proto.Message, asked string, resp proto.Message) (string, bool) {
	switch r := resp.(type) {
	case *browserv1.EnsureSessionResponse:
		return r.GetDefaultPageId(), true
	case *browserv1.NewTabResponse:
		return r.GetPageId(), true
	case *browserv1.ActivateTabResponse:
		return r.GetPageId(), true
	case *browserv1.CloseTabResponse:
		return r.GetActivePageId(), true
	case *browserv1.ListTabsResponse:
		for _, t := range r.GetTabs() {
			if t.GetActive() {
				return t.GetPageId(), true
			}
		}
		return "", true
	}
	if open, ok := req.(*browserv1.OpenRequest); ok && open.GetNewPage() || asked == "" {
		if page := catalog.PageID(resp); page != "" {
			return page, true
		}
	}
	return "", false
}
