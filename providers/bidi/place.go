package bidi

import (
	"context"
	"encoding/json"
	"fmt"
)

// spot is where input goes: a frame, and where its viewport begins in the page's, with the scale in which it is shown.
type spot struct {
	frame          string
	left, top      float64
	scaleX, scaleY float64
}

func (p *page) topSpot() spot { return spot{frame: p.context, scaleX: 1, scaleY: 1} }

// inside turns a point of the page's viewport into one of the frame's.
func (s spot) inside(x, y float64) (float64, float64) {
	return (x - s.left) / s.scaleX, (y - s.top) / s.scaleY
}

// framed says whether input has to be sent to the frame that it is meant for. Firefox gives what is sent to a page to
// the page's own process; a frame of another site lives in another one. Chromium finds the frame itself.
func (p *page) framed() bool {
	if !p.b.firefox() {
		return false
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	for _, f := range p.b.frames {
		if f.parent == p.context {
			return true
		}
	}
	return false
}

// frameAt gives the frame element at a point of a document's viewport: its window, where its content begins, and the scale.
const frameAt = `(() => {
	const x = %g, y = %g;
	let e = document.elementFromPoint(x, y);
	for (let inner; e && e.shadowRoot && (inner = e.shadowRoot.elementFromPoint(x, y)) && inner !== e;) e = inner;
	if (!e || !e.contentWindow) return [null];
	const b = e.getBoundingClientRect(), s = getComputedStyle(e);
	const sx = e.offsetWidth ? b.width / e.offsetWidth : 1, sy = e.offsetHeight ? b.height / e.offsetHeight : 1;
	return [e.contentWindow, b.left + sx * (e.clientLeft + parseFloat(s.paddingLeft)), b.top + sy * (e.clientTop + parseFloat(s.paddingTop)), sx, sy];
})()`

// spotAt finds the innermost frame at a point of the page's viewport.
func (p *page) spotAt(ctx context.Context, x, y float64) (spot, error) {
	at := p.topSpot()
	for {
		ix, iy := at.inside(x, y)
		res, err := do(ctx, p.b.conn, scriptEvaluate, evaluateParams{
			Expression: fmt.Sprintf(frameAt, ix, iy), Target: scriptTarget{at.frame, sandbox}, Ownership: "none",
			Serialization: &serialization{MaxDomDepth: depth(0), MaxObjectDepth: depth(1)},
		})
		if err != nil {
			return at, gone(err)
		}
		list := res.Result.list()
		if len(list) != 5 {
			return at, nil
		}
		id, ok := list[0].window()
		if !ok {
			return at, nil
		}
		var n [4]float64
		for i := range n {
			if json.Unmarshal(list[i+1].Value, &n[i]) != nil {
				return at, nil
			}
		}
		at = spot{
			frame: id, left: at.left + n[0]*at.scaleX, top: at.top + n[1]*at.scaleY, scaleX: at.scaleX * n[2], scaleY: at.scaleY * n[3],
		}
	}
}

// focusedFrame finds the innermost frame that has the focus.
func (p *page) focusedFrame(ctx context.Context) (string, error) {
	frame := p.context
	for {
		res, err := do(ctx, p.b.conn, scriptEvaluate, evaluateParams{
			Expression: `(() => { let e = document.activeElement; for (let i; (i = e?.shadowRoot?.activeElement);) e = i; return e?.contentWindow ?? null })()`,
			Target:     scriptTarget{frame, sandbox}, Ownership: "none", Serialization: flat,
		})
		if err != nil {
			return frame, gone(err)
		}
		id, ok := res.Result.window()
		if !ok {
			return frame, nil
		}
		frame = id
	}
}

// acting is what a call that acts remembers: the documents that were there when its input went out. A document that the
// input replaced counts as gone for the call, also when the next one is there already.
type acting struct {
	docs map[string]*document
}

type actingKey struct{}

// remember notes the documents of the page before input goes out.
func (p *page) remember(ctx context.Context) {
	a, ok := ctx.Value(actingKey{}).(*acting)
	if !ok {
		return
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	a.docs = map[string]*document{}
	for id, f := range p.b.frames {
		if f.page == p && f.doc != nil {
			a.docs[id] = f.doc
		}
	}
}

// replacedLocked says, once, that the document which the call's input met is another now.
func replacedLocked(ctx context.Context, id string, doc *document) bool {
	a, ok := ctx.Value(actingKey{}).(*acting)
	if !ok || a.docs[id] == nil || a.docs[id] == doc {
		return false
	}
	delete(a.docs, id)
	return true
}
