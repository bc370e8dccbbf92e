package firefox

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// html asks for the page's source and reads it.
func (g *guest) html(ctx context.Context) (*outline, error) {
	var got struct{ HTML, URL, Title string }
	if err := g.ask(ctx, "getContent", map[string]any{"format": "html"}, &got); err != nil {
		return nil, err
	}
	o, err := readOutline(got.HTML)
	if err != nil {
		return nil, err
	}
	o.title, o.url, o.source = got.Title, got.URL, got.HTML
	g.mu.Lock()
	g.url = got.URL
	g.mu.Unlock()
	return o, nil
}

// text asks for the page's visible text.
func (g *guest) text(ctx context.Context) (string, error) {
	var got struct{ Text string }
	err := g.ask(ctx, "getContent", map[string]any{"format": "text"}, &got)
	return got.Text, err
}

// snapshot is page.snapshot, made of the page's source: what scripts and styles made of it is known only as far as that tells.
func (g *guest) snapshot(ctx context.Context, r *browserv1.SnapshotRequest) (*browserv1.SnapshotResponse, error) {
	leave, err := g.enter(ctx, r.GetPageId())
	if err != nil {
		return nil, err
	}
	defer leave()
	if r.GetIncludeScreenshot() || r.RootRef != nil || r.Since != nil || r.GetIncludeDom() || r.GetFormat() == browserv1.SnapshotFormat_SNAPSHOT_FORMAT_OUTLINE {
		return nil, errGuest().Hint("of the public bridge take a plain page.snapshot")
	}
	o, err := g.html(ctx)
	if err != nil {
		return nil, err
	}
	resp := &browserv1.SnapshotResponse{
		PageId: guestPage, Url: o.url, Title: o.title,
		Snapshot: &browserv1.Snapshot{Format: browserv1.SnapshotFormat_SNAPSHOT_FORMAT_JCODE_PAGE_SNAPSHOT_V1, Root: &browserv1.Node{NodeId: "n1", Role: "document", Name: o.title}},
		Warnings: []*browserv1.Warning{{Code: "reduced_fidelity", Message: "read from the page's source: no frames, no shadow roots, no states that scripts set, hidden parts included"}},
	}
	limit := 2000
	if r.MaxNodes != nil {
		limit = int(r.GetMaxNodes())
	}
	g.mu.Lock()
	for i, c := range o.clues {
		if limit > 0 && i+1 >= limit {
			yes, total := true, int32(len(o.clues)+1)
			resp.Snapshot.Truncated, resp.Snapshot.TotalNodes = &yes, &total
			break
		}
		id := "n" + strconv.Itoa(i+2)
		n := &browserv1.Node{NodeId: id, Role: c.role, Name: c.name, Actionable: c.acts && !c.disabled}
		ref := g.refLocked(c)
		n.ElementRef = &ref
		resp.Snapshot.Root.Children = append(resp.Snapshot.Root.Children, id)
		resp.Snapshot.Nodes = append(resp.Snapshot.Nodes, n)
		if n.Actionable {
			resp.Elements = append(resp.Elements, &browserv1.Element{ElementRef: ref, Role: c.role, Name: c.name, Text: c.name, Actionable: true, Enabled: true, SelectorHint: c.selector})
		}
	}
	g.mu.Unlock()
	if r.IncludeText == nil || r.GetIncludeText() {
		text, err := g.text(ctx)
		if err != nil {
			return nil, err
		}
		resp.Text = &text
	}
	return resp, nil
}

// refLocked gives what a clue stands for a ref; the same element keeps its own.
func (g *guest) refLocked(c clue) string {
	for ref, known := range g.refs {
		if known == c {
			return ref
		}
	}
	g.last++
	ref := "b" + strconv.Itoa(g.last)
	g.refs[ref] = c
	return ref
}

// aim turns a target into a selector that means one element, which the page has now.
func (g *guest) aim(ctx context.Context, t *browserv1.Target) (clue, error) {
	if t == nil || t.Position != nil || t.FrameRef != nil {
		return clue{}, errGuest().Hint("of the public bridge give an element_ref, a selector or a text_query")
	}
	if t.Selector != nil {
		return clue{selector: t.GetSelector()}, nil
	}
	o, err := g.html(ctx)
	if err != nil {
		return clue{}, err
	}
	if t.ElementRef != nil {
		g.mu.Lock()
		was, ok := g.refs[strings.TrimPrefix(t.GetElementRef(), "@")]
		g.mu.Unlock()
		for _, c := range o.clues {
			if ok && c == was {
				return c, nil
			}
		}
		return clue{}, fault.New(fault.ElementNotFound, "the element of %s is no longer in the page as it was", t.GetElementRef()).
			Reason("stale_ref").Hint("take a new page.snapshot")
	}
	return o.byText(t.GetTextQuery())
}

// click is page.click. Without dispatchEvents the bridge clicks once; with them, twice.
func (g *guest) click(ctx context.Context, r *browserv1.ClickRequest) (*browserv1.ClickResponse, error) {
	if r.GetClickCount() > 1 || len(r.GetModifiers()) > 0 || r.GetButton() != browserv1.MouseButton_MOUSE_BUTTON_LEFT && r.GetButton() != browserv1.MouseButton_MOUSE_BUTTON_UNSPECIFIED {
		return nil, errGuest().Hint("the public bridge clicks once, with the left button")
	}
	leave, err := g.enter(ctx, r.GetPageId())
	if err != nil {
		return nil, err
	}
	defer leave()
	c, err := g.aim(ctx, r.GetTarget())
	if err != nil {
		return nil, err
	}
	if c.disabled {
		return nil, fault.New(fault.ElementNotActionable, "the element is disabled").Reason("disabled")
	}
	before := g.url
	var got struct {
		Clicked *bool `json:"clicked"`
	}
	if err := g.ask(ctx, "click", map[string]any{"selector": c.selector, "dispatchEvents": false, "scrollIntoView": true}, &got); err != nil {
		return nil, err
	}
	if got.Clicked != nil && !*got.Clicked { // The later line says so with ok.
		return nil, fault.New(fault.ElementNotFound, "the page has no such element")
	}
	resp := &browserv1.ClickResponse{PageId: guestPage, Clicked: true, Url: before}
	if _, address, err := g.where(ctx); err == nil && address == before {
		// The bridge tells of no navigation, so one that began gets a moment to show itself.
		if err := pauseFor(ctx, clickGrace); err != nil {
			return nil, g.explain(ctx, err)
		}
	}
	if _, address, err := g.settled(ctx); err == nil {
		resp.Url, resp.NavigationOccurred = address, address != before
	} else {
		resp.NavigationOccurred = true // The page is between two documents.
	}
	return resp, nil
}

// clickGrace is how long a click's navigation may take to show in the address.
const clickGrace = 250 * time.Millisecond

// settled asks where the page is, a few times where it is between two documents.
func (g *guest) settled(ctx context.Context) (title, address string, err error) {
	for range 10 {
		if title, address, err = g.where(ctx); err == nil || fault.ReasonOf(err) != "privileged_page" {
			return title, address, err
		}
		if err := pauseFor(ctx, 100*time.Millisecond); err != nil {
			return "", "", err
		}
	}
	return title, address, err
}

// typeText is page.type. The bridge's own way to send a form acts twice and asks nobody, so it is not used.
func (g *guest) typeText(ctx context.Context, r *browserv1.TypeRequest) (*browserv1.TypeResponse, error) {
	if r.GetSubmit() || r.GetText() == "" {
		return nil, errGuest().Field("submit").Hint("the public bridge types a text that is not empty; click the form's button to send it")
	}
	leave, err := g.enter(ctx, r.GetPageId())
	if err != nil {
		return nil, err
	}
	defer leave()
	c, err := g.aim(ctx, r.GetTarget())
	if err != nil {
		return nil, err
	}
	var got struct {
		Typed *bool `json:"typed"`
	}
	err = g.ask(ctx, "type", map[string]any{
		"selector": c.selector, "text": r.GetText(), "append": !r.GetReplace(), "clear": r.GetReplace(), "submit": false, "dispatchEvents": true,
	}, &got)
	if err != nil {
		return nil, err
	}
	if got.Typed != nil && !*got.Typed {
		return nil, fault.New(fault.ElementNotFound, "the page has no such element")
	}
	return &browserv1.TypeResponse{PageId: guestPage, Typed: true, Url: g.url, Warnings: []*browserv1.Warning{{
		Code: "reduced_fidelity", Message: "the text was set without keys, and what the field holds now is not known",
	}}}, nil
}

// pollTime is how often a waiting call asks the page.
const pollTime = 150 * time.Millisecond

// poll asks the page until all conditions hold at once, or the time is over.
func (g *guest) poll(ctx context.Context, r *browserv1.WaitRequest) (*browserv1.WaitResponse, error) {
	var pattern *regexp.Regexp
	if r.UrlMatches != nil {
		var err error
		if pattern, err = globOf(r.GetUrlMatches()); err != nil {
			return nil, fault.New(fault.InvalidRequest, "url_matches is no glob").Field("url_matches").Cause(err)
		}
	}
	for {
		met, want, address, err := g.look(ctx, r, pattern)
		if err != nil && ctx.Err() == nil && fault.ReasonOf(err) != "privileged_page" {
			return nil, err
		}
		if err == nil && len(met) == want {
			return &browserv1.WaitResponse{Satisfied: true, MatchedCondition: strings.Join(met, ","), Url: address}, nil
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) < 2*pollTime || pauseFor(ctx, pollTime) != nil {
			return &browserv1.WaitResponse{Url: address}, nil
		}
	}
}

// look tells which of the conditions hold now, and how many there are.
func (g *guest) look(ctx context.Context, r *browserv1.WaitRequest, pattern *regexp.Regexp) (met []string, want int, address string, err error) {
	if r.TextPresent != nil || r.TextAbsent != nil {
		text, err := g.text(ctx)
		if err != nil {
			return nil, 1, "", err
		}
		flat := func(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }
		for _, c := range []struct {
			name string
			text *string
			want bool
		}{{"text_present", r.TextPresent, true}, {"text_absent", r.TextAbsent, false}} {
			if c.text == nil {
				continue
			}
			want++
			if strings.Contains(flat(text), flat(*c.text)) == c.want {
				met = append(met, c.name)
			}
		}
	}
	_, address, err = g.where(ctx)
	if err != nil {
		return met, want + 1, "", err
	}
	if r.SelectorPresent != nil {
		want++
		var got struct{ Found bool }
		err := g.ask(ctx, "waitFor", map[string]any{"selector": r.GetSelectorPresent(), "timeout": 1, "interval": 1}, &got)
		if err == nil && got.Found {
			met = append(met, "selector_present")
		} else if fault.CodeOf(err) == fault.InvalidSelector {
			return nil, want, address, err
		}
	}
	if pattern != nil {
		want++
		if pattern.MatchString(address) {
			met = append(met, "url_matches")
		}
	}
	if r.GetNavigationComplete() { // The bridge's content script runs in a document that is there.
		want++
		met = append(met, "navigation_complete")
	}
	return met, want, address, nil
}

// globOf reads a glob over a whole URL: * within a segment, ** across.
func globOf(glob string) (*regexp.Regexp, error) {
	quoted := strings.ReplaceAll(regexp.QuoteMeta(glob), `\*\*`, "\x00")
	return regexp.Compile("^" + strings.ReplaceAll(strings.ReplaceAll(quoted, `\*`, "[^/]*"), "\x00", ".*") + "$")
}

func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
