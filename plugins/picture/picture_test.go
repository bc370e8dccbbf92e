package picture

import (
	"bytes"
	"image"
	"image/png"
	"testing"
)

// A mark is drawn where its box lies in the picture, and the picture keeps its size.
func TestAnnotate(t *testing.T) {
	var plain bytes.Buffer
	if err := png.Encode(&plain, image.NewRGBA(image.Rect(0, 0, 200, 100))); err != nil {
		t.Fatal(err)
	}
	data, err := Annotate(plain.Bytes(), "image/png", []Mark{{Ref: "d1e2", X: 30, Y: 20, Width: 40, Height: 20}}, 10, 0, 2, 80)
	if err != nil {
		t.Fatal(err)
	}
	got, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if got.Bounds() != image.Rect(0, 0, 200, 100) {
		t.Errorf("the picture is %v", got.Bounds())
	}
	want := palette[0]
	if r, g, b, _ := got.At(119, 60).RGBA(); byte(r>>8) != want.R || byte(g>>8) != want.G || byte(b>>8) != want.B {
		t.Errorf("no edge at the mark's right side: %v", got.At(119, 60))
	}
	if _, _, _, a := got.At(150, 60).RGBA(); a != 0 {
		t.Errorf("something is drawn beside the mark")
	}
}

// No label covers another, and none is drawn for what lies outside the picture.
func TestLabelsKeepApart(t *testing.T) {
	canvas := image.Rect(0, 0, 300, 200)
	var taken []image.Rectangle
	box := image.Rect(100, 50, 140, 60)
	if where := free(box, size("d1e2"), canvas, nil, []image.Rectangle{box}); where.Overlaps(box) {
		t.Errorf("the label at %v covers what it names", where)
	}
	for range 25 { // As with a link in a card in a row, boxes that begin at one point.
		where := free(box, size("d1e20"), canvas, taken, []image.Rectangle{box})
		if !where.In(canvas) {
			t.Errorf("a label lies at %v, outside the picture", where)
		}
		for _, other := range taken {
			if where.Overlaps(other) {
				t.Errorf("the labels at %v and %v overlap", where, other)
			}
		}
		taken = append(taken, where)
	}

	var plain bytes.Buffer
	if err := png.Encode(&plain, image.NewRGBA(canvas)); err != nil {
		t.Fatal(err)
	}
	data, err := Annotate(plain.Bytes(), "image/png", []Mark{{Ref: "d1e1", X: 10, Y: -50, Width: 40, Height: 20}, {Ref: "d1e2", X: 10, Y: 500, Width: 40, Height: 20}}, 0, 0, 1, 80)
	if err != nil {
		t.Fatal(err)
	}
	got, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for y := range 200 {
		for x := range 300 {
			if _, _, _, a := got.At(x, y).RGBA(); a != 0 {
				t.Fatalf("something is drawn at %d, %d", x, y)
			}
		}
	}
}
