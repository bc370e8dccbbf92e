package inpage

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// reading is what the engine read of one document.
type reading struct {
	Title     string          `json:"title"`
	URL       string          `json:"url"`
	Nodes     []rawNode       `json:"nodes"`
	Outline   []string        `json:"outline"`
	Text      string          `json:"text"`
	Total     int             `json:"total"`
	Truncated bool            `json:"truncated"`
	Omitted   []omission      `json:"omitted"`
	Frames    []framePlace    `json:"frames"`
	Unopened  int             `json:"unopened"`
	HTML      *string         `json:"html"`
	DOM       json.RawMessage `json:"dom"`

	// inner are the documents that the frames show, by the frame element's ref.
	inner map[string]*reading
}

// rawNode is a node of the engine's snapshot; Children are indices. What is empty or does not hold is not said.
type rawNode struct {
	Role         string  `json:"role"`
	Name         string  `json:"name"`
	Text         string  `json:"text"`
	Ref          string  `json:"ref"`
	Actionable   bool    `json:"actionable"`
	Children     []int   `json:"children"`
	Value        *string `json:"value"`
	Checked      string  `json:"checked"`
	Pressed      string  `json:"pressed"`
	Selected     bool    `json:"selected"`
	Expanded     *bool   `json:"expanded"`
	Disabled     bool    `json:"disabled"`
	Required     bool    `json:"required"`
	Level        int     `json:"level"`
	Focused      bool    `json:"focused"`
	A11yHidden   bool    `json:"a11y_hidden"`
	Readonly     bool    `json:"readonly"`
	Invalid      bool    `json:"invalid"`
	SelectorHint string  `json:"selector_hint"`
}

// framePlace is where a frame element stands in the nodes and in the lines of the outline.
type framePlace struct {
	Ref  string `json:"ref"`
	Node *int   `json:"node"`
	Line *int   `json:"line"`
}

// omission names a part of the page that could not be read.
type omission struct {
	ElementRef   string `json:"element_ref"`
	Kind         string `json:"kind"` // closed_shadow_root or frame
	SelectorHint string `json:"selector_hint,omitempty"`
	URL          string `json:"url,omitempty"`
}

// wants is what a reading shall hold.
type wants struct {
	Nodes   bool `json:"nodes"`
	Outline bool `json:"outline"`
	Text    bool `json:"text"`
	HTML    bool `json:"html,omitempty"`
	DOM     bool `json:"dom,omitempty"`
}

// query is how a document is read.
type query struct {
	MaxNodes        int    `json:"max_nodes"`
	InteractiveOnly bool   `json:"interactive_only"`
	RootRef         string `json:"root_ref,omitempty"`
	Want            wants  `json:"want"`
	Roots           bool   `json:"roots"`
}

// frameShare is the longest that a frame's document may take, of half the time that is left.
const frameShare = 5 * time.Second

// read reads a document and, all at once, those of its frames. A frame that does not answer is an omission.
func (p *Page) read(ctx context.Context, frame FrameID, q query) (*reading, error) {
	_, canOpen := p.eval.(RootOpener)
	q.Roots = canOpen
	r := &reading{}
	if err := p.call(ctx, frame, "read", q, r); err != nil {
		return nil, err
	}
	if r.Unopened > 0 {
		n, err := p.openRoots(ctx, frame)
		if err != nil && !errors.Is(err, ErrDocumentGone) {
			return nil, err
		}
		if n > 0 || len(r.Omitted) > 0 {
			r = &reading{}
			if err := p.call(ctx, frame, "read", q, r); err != nil {
				return nil, err
			}
		}
	}
	if len(r.Frames) > 0 {
		r.inner = map[string]*reading{}
		p.readFrames(ctx, frame, q, r)
	}
	return r, nil
}

// readFrames reads the documents of a document's frames into r.
func (p *Page) readFrames(ctx context.Context, frame FrameID, q query, r *reading) {
	share := min(max(patience(ctx)/2, 50*time.Millisecond), frameShare)
	ctx, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	q.RootRef, q.Want.HTML, q.Want.DOM = "", false, false
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(8)
	lost := make([]bool, len(r.Frames))
	for i, f := range r.Frames {
		if f.Node == nil && f.Line == nil {
			continue // It was cut off.
		}
		group.Go(func() error {
			child, err := p.child(ctx, frame, f.Ref)
			var inner *reading
			if err == nil {
				inner, err = p.readSettled(ctx, child, q)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				lost[i] = true // Named in omitted; the rest of the page is still worth having.
				return nil
			}
			r.inner[f.Ref] = inner
			return nil
		})
	}
	_ = group.Wait() // The functions give no error.
	for i, f := range r.Frames {
		if lost[i] {
			r.Omitted = append(r.Omitted, p.omit(ctx, frame, f.Ref))
		}
	}
}

// readSettled is read, once more when the frame is just getting another document.
func (p *Page) readSettled(ctx context.Context, frame FrameID, q query) (*reading, error) {
	for {
		r, err := p.read(ctx, frame, q)
		if err == nil || !errors.Is(err, ErrDocumentGone) || patience(ctx) < 50*time.Millisecond {
			return r, err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// omit describes a frame that could not be read.
func (p *Page) omit(ctx context.Context, frame FrameID, ref string) omission {
	o := omission{ElementRef: ref, Kind: "frame"}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	// Without an answer the ref alone names it.
	_ = p.call(ctx, frame, "about", map[string]any{"ref": ref}, &o)
	return o
}
