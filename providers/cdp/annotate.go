package cdp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"strings"

	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"

	"github.com/droverhq/drover/plugins/inpage"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// mark is what annotate draws: the box of something that can be acted on, in CSS pixels of the page's viewport.
type mark struct {
	ref        string
	x, y, w, h float64
}

// marks finds what can be acted on and where it is. Nothing is scrolled.
func (p *page) marks(ctx context.Context) ([]mark, error) {
	no := false
	snap, err := p.driver.Snapshot(ctx, &browserv1.SnapshotRequest{InteractiveOnly: true, IncludeText: &no})
	if err != nil {
		return nil, err
	}
	refs := map[inpage.FrameID][]string{}
	for _, e := range snap.GetElements() {
		frame, err := p.driver.FrameOf(ctx, e.GetElementRef())
		if err != nil {
			continue
		}
		refs[frame] = append(refs[frame], e.GetElementRef())
	}
	var out []mark
	for frame, list := range refs {
		dx, dy, err := p.offset(ctx, protocol.FrameID(frame))
		if err != nil {
			continue // The frame went away.
		}
		data, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		text, err := p.Eval(ctx, frame, "JSON.stringify("+string(data)+".map(r => { const e = __drover.element(r), b = e && e.getBoundingClientRect(); return b ? [b.x, b.y, b.width, b.height] : null }))")
		if err != nil {
			continue
		}
		var boxes [][]float64
		if err := json.Unmarshal([]byte(text), &boxes); err != nil {
			return nil, err
		}
		for i, b := range boxes {
			if len(b) == 4 && b[2] > 0 && b[3] > 0 {
				out = append(out, mark{list[i], b[0] + dx, b[1] + dy, b[2], b[3]})
			}
		}
	}
	return out, nil
}

// offset is where a frame's viewport begins in the page's viewport.
func (p *page) offset(ctx context.Context, frame protocol.FrameID) (x, y float64, err error) {
	for frame != p.main {
		up, o, err := p.owner(ctx, frame)
		if err != nil {
			return 0, 0, err
		}
		res, err := protocol.Call(ctx, o.world.ch, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
			FunctionDeclaration: "function() { const b = this.getBoundingClientRect(), s = getComputedStyle(this); return [b.x + this.clientLeft + parseFloat(s.paddingLeft), b.y + this.clientTop + parseFloat(s.paddingTop)] }",
			ObjectID:            o.id, ReturnByValue: yes(),
		})
		p.release(o.world, o.id)
		if err != nil {
			return 0, 0, gone(err)
		}
		var at []float64
		if err := json.Unmarshal(res.Result.Value, &at); err != nil || len(at) != 2 {
			return 0, 0, inpage.ErrDocumentGone
		}
		x, y, frame = x+at[0], y+at[1], up
	}
	return x, y, nil
}

// annotate draws the marks into a picture. left and top are where the picture begins in the page's viewport, scale its
// pixels a CSS pixel.
func annotate(pic *picture, marks []mark, left, top, scale float64, quality int) error {
	src, _, err := image.Decode(bytes.NewReader(pic.data))
	if err != nil {
		return fmt.Errorf("reading the picture: %w", err)
	}
	canvas := image.NewRGBA(src.Bounds())
	draw.Draw(canvas, canvas.Bounds(), src, src.Bounds().Min, draw.Src)
	for i, m := range marks {
		c := palette[i%len(palette)]
		box := image.Rect(int((m.x-left)*scale), int((m.y-top)*scale), int((m.x-left+m.w)*scale), int((m.y-top+m.h)*scale))
		outline(canvas, box, c)
		label(canvas, box.Min, m.ref, c)
	}
	var buf bytes.Buffer
	if pic.kind == "image/jpeg" {
		err = jpeg.Encode(&buf, canvas, &jpeg.Options{Quality: quality})
	} else {
		err = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&buf, canvas)
	}
	if err != nil {
		return fmt.Errorf("writing the picture: %w", err)
	}
	pic.data = buf.Bytes()
	return nil
}

var palette = []color.RGBA{{200, 0, 60, 255}, {0, 90, 200, 255}, {0, 130, 50, 255}, {150, 60, 180, 255}, {190, 90, 0, 255}}

func outline(canvas *image.RGBA, r image.Rectangle, c color.RGBA) {
	const thick = 2
	u := image.NewUniform(c)
	for _, edge := range []image.Rectangle{
		image.Rect(r.Min.X, r.Min.Y, r.Max.X, r.Min.Y+thick), image.Rect(r.Min.X, r.Max.Y-thick, r.Max.X, r.Max.Y),
		image.Rect(r.Min.X, r.Min.Y, r.Min.X+thick, r.Max.Y), image.Rect(r.Max.X-thick, r.Min.Y, r.Max.X, r.Max.Y),
	} {
		draw.Draw(canvas, edge.Intersect(canvas.Bounds()), u, image.Point{}, draw.Src)
	}
}

// glyphs are the characters of refs, five by seven, a row a string.
var glyphs = map[rune]string{
	'0': "01110100011001110101110011000101110", '1': "00100011000010000100001000010001110", '2': "01110100010000100010001000100011111",
	'3': "11111000100010000010000011000101110", '4': "00010001100101010010111110001000010", '5': "11111100001111000001000011000101110",
	'6': "00110010001000011110100011000101110", '7': "11111000010001000100010000100001000", '8': "01110100011000101110100011000101110",
	'9': "01110100011000101111000010001001100", 'd': "00001000010110110011100011000101111", 'e': "00000000000111010001111111000001110",
}

// label writes a ref on a ground of the mark's colour, at twice the size of the glyphs.
func label(canvas *image.RGBA, at image.Point, text string, c color.RGBA) {
	const size, gap = 2, 2
	width := len(text)*(5*size+gap) + gap
	at.X = max(0, min(at.X, canvas.Bounds().Max.X-width))
	at.Y = max(0, at.Y)
	draw.Draw(canvas, image.Rect(at.X, at.Y, at.X+width, at.Y+7*size+2*gap).Intersect(canvas.Bounds()), image.NewUniform(c), image.Point{}, draw.Src)
	x := at.X + gap
	for _, r := range strings.ToLower(text) {
		for i, bit := range glyphs[r] {
			if bit == '1' {
				px, py := x+i%5*size, at.Y+gap+i/5*size
				draw.Draw(canvas, image.Rect(px, py, px+size, py+size).Intersect(canvas.Bounds()), image.White, image.Point{}, draw.Src)
			}
		}
		x += 5*size + gap
	}
}
