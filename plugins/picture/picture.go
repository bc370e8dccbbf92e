// Package picture draws refs into screenshots.
package picture

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"math"
	"slices"
	"strings"
)

// Mark is what Annotate draws: the box of something that can be acted on, in CSS pixels of the page's viewport.
type Mark struct {
	Ref                 string
	X, Y, Width, Height float64
}

// Annotate draws the marks into an encoded picture and gives it in the same encoding. kind is its media type; left and top
// are where it begins in the page's viewport, scale is its pixels a CSS pixel, quality is that of a JPEG, from 1 to 100.
func Annotate(data []byte, kind string, marks []Mark, left, top, scale float64, quality int) ([]byte, error) {
	src, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("reading the picture: %w", err)
	}
	canvas := image.NewRGBA(src.Bounds())
	draw.Draw(canvas, canvas.Bounds(), src, src.Bounds().Min, draw.Src)
	at := func(x, y float64) image.Point { return image.Pt(int((x-left)*scale), int((y-top)*scale)) }
	boxes := make([]image.Rectangle, len(marks))
	for i, m := range marks {
		boxes[i] = image.Rectangle{at(m.X, m.Y), at(m.X+m.Width, m.Y+m.Height)}
		outline(canvas, boxes[i], palette[i%len(palette)])
	}
	// Labels come last, so that no outline strikes one through.
	var taken []image.Rectangle
	for i, m := range marks {
		if boxes[i].Overlaps(canvas.Bounds()) {
			where := free(boxes[i].Intersect(canvas.Bounds()), size(m.Ref), canvas.Bounds(), taken, boxes)
			taken = append(taken, where)
			label(canvas, where, m.Ref, palette[i%len(palette)])
		}
	}
	var buf bytes.Buffer
	if kind == "image/jpeg" {
		err = jpeg.Encode(&buf, canvas, &jpeg.Options{Quality: quality})
	} else {
		err = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&buf, canvas)
	}
	if err != nil {
		return nil, fmt.Errorf("writing the picture: %w", err)
	}
	return buf.Bytes(), nil
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

// A label writes its glyphs at dot times their size, gap pixels from one another and from its edge.
const dot, gap = 2, 2

// size is how large the label of a ref is, in pixels.
func size(ref string) image.Point {
	return image.Pt(len(ref)*(5*dot+gap)+gap, 7*dot+2*gap)
}

// free finds a place for a label of the given size: at its box where it covers neither another label nor what any box holds,
// or at least not what its own holds; else in a corner of it; else the nearest place that covers no other label. A picture that is full of labels has
// them covered.
func free(box image.Rectangle, size image.Point, canvas image.Rectangle, taken, boxes []image.Rectangle) image.Rectangle {
	within := func(x, y int) image.Rectangle {
		at := image.Pt(max(canvas.Min.X, min(x, canvas.Max.X-size.X)), max(canvas.Min.Y, min(y, canvas.Max.Y-size.Y)))
		return image.Rectangle{at, at.Add(size)}
	}
	left, top, right, bottom := box.Min.X, box.Min.Y, box.Max.X, box.Max.Y
	beside := []image.Rectangle{
		within(left, top-size.Y), within(left, bottom), within(right, top), within(left-size.X, top), within(right-size.X, top-size.Y), within(right-size.X, bottom),
	}
	for _, r := range beside {
		if vacant(r, taken) && vacant(r, boxes) {
			return r
		}
	}
	for _, r := range beside {
		if vacant(r, taken) && !r.Overlaps(box) {
			return r
		}
	}
	for _, r := range append([]image.Rectangle{within(left, top), within(right-size.X, top), within(right-size.X, bottom-size.Y)}, beside...) {
		if vacant(r, taken) {
			return r
		}
	}
	best, near := within(left, top), math.MaxInt
	for y := canvas.Min.Y; y < canvas.Max.Y; y += size.Y {
		for x := canvas.Min.X; x < canvas.Max.X; x += size.X {
			if d := (x-left)*(x-left) + (y-top)*(y-top); d < near {
				if r := within(x, y); vacant(r, taken) {
					best, near = r, d
				}
			}
		}
	}
	return best
}

// vacant says whether a rectangle overlaps none of the others.
func vacant(r image.Rectangle, others []image.Rectangle) bool {
	return !slices.ContainsFunc(others, r.Overlaps)
}

// label writes a ref on a ground of the mark's colour.
func label(canvas *image.RGBA, where image.Rectangle, ref string, c color.RGBA) {
	draw.Draw(canvas, where.Intersect(canvas.Bounds()), image.NewUniform(c), image.Point{}, draw.Src)
	x, y := where.Min.X+gap, where.Min.Y+gap
	for _, r := range strings.ToLower(ref) {
		for i, bit := range glyphs[r] {
			if bit == '1' {
				at := image.Pt(x+i%5*dot, y+i/5*dot)
				draw.Draw(canvas, image.Rectangle{at, at.Add(image.Pt(dot, dot))}.Intersect(canvas.Bounds()), image.White, image.Point{}, draw.Src)
			}
		}
		x += 5*dot + gap
	}
}
