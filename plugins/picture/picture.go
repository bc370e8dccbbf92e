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
	for i, m := range marks {
		c := palette[i%len(palette)]
		box := image.Rect(int((m.X-left)*scale), int((m.Y-top)*scale), int((m.X-left+m.Width)*scale), int((m.Y-top+m.Height)*scale))
		outline(canvas, box, c)
		label(canvas, box.Min, m.Ref, c)
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
