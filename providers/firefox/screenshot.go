package firefox

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/jpeg" // the sizes of pictures are read from their bytes
	_ "image/png"
	"math"
	"strings"
	"time"

	"github.com/droverhq/drover/plugins/inpage"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// shot is a screenshot as Firefox encoded it.
type shot struct {
	data          []byte
	kind          string
	width, height int
}

// area is a part of the document, in CSS pixels.
type area struct {
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
}

const (
	maxInline = 16 << 20 // bytes of a picture that is given inline
	maxSide   = 16384    // the largest side of a picture, in CSS pixels
)

// screenshot is page.screenshot. The picture is the tab's own, wherever the tab is.
func (p *Provider) screenshot(ctx context.Context, r *browserv1.ScreenshotRequest) (*browserv1.ScreenshotResponse, error) {
	s, pg, err := p.find(r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	ctx, leave, err := pg.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	pic, err := pg.capture(ctx, r)
	if err != nil {
		return nil, pg.explain(ctx, err)
	}
	resp := &browserv1.ScreenshotResponse{PageId: pg.id, MediaType: pic.kind, Width: int32(pic.width), Height: int32(pic.height)}
	if (r.Inline == nil || r.GetInline()) && len(pic.data) <= maxInline {
		resp.Image = pic.data
		return resp, nil
	}
	resp.ImageRef, err = s.storePicture(pic)
	return resp, err
}

func (s *session) storePicture(pic *shot) (*string, error) {
	ext := ".png"
	if pic.kind == "image/jpeg" {
		ext = ".jpg"
	}
	ref, err := s.files.Store(pic.data, pic.kind, ext)
	return &ref, err
}

// capture takes a picture. Scroll positions are as before when it returns.
func (p *page) capture(ctx context.Context, r *browserv1.ScreenshotRequest) (*shot, error) {
	params := map[string]any{"format": "png", "scale": 1}
	quality := 80
	if r.GetFormat() == browserv1.ImageFormat_IMAGE_FORMAT_JPEG {
		if r.Quality != nil {
			quality = int(r.GetQuality())
		}
		params["format"], params["quality"] = "jpeg", quality
	}
	st, err := p.state(ctx)
	if refused(err, "privileged") && r.ElementRef == nil && r.Clip == nil && !r.GetFullPage() {
		err = nil // A page of Firefox's own can be pictured as it stands.
	}
	if err != nil {
		return nil, err
	}
	box := area{X: st.X, Y: st.Y, Width: st.Width, Height: st.Height}
	switch {
	case r.ElementRef != nil:
		restore, at, err := p.aimAt(ctx, r.GetElementRef())
		defer restore()
		if err != nil {
			return nil, err
		}
		box = at
	case r.GetFullPage() || r.Clip != nil:
		if box, err = region(r, st); err != nil {
			return nil, err
		}
	}
	if box.Width > 0 {
		params["rect"] = box
	}
	found, err := p.marksFor(ctx, r)
	if err != nil {
		return nil, err
	}
	var got struct {
		Data string `json:"data"`
	}
	if err := p.request(ctx, "shot", params, &got); err != nil {
		return nil, err
	}
	pic, err := readPicture(got.Data)
	if err == nil && len(found) > 0 {
		err = pic.annotate(found, box.X-st.X, box.Y-st.Y, box.Width, quality)
	}
	return pic, err
}

// readPicture reads a data: URL of a picture.
func readPicture(address string) (*shot, error) {
	_, text, ok := strings.Cut(address, ";base64,")
	if !ok {
		return nil, fault.New(fault.InternalError, "Firefox gave no picture")
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("reading the picture: %w", err)
	}
	size, kind, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("reading the picture: %w", err)
	}
	return &shot{data: data, kind: "image/" + kind, width: size.Width, height: size.Height}, nil
}

// region is the part of the document that a request without an element asks for.
func region(r *browserv1.ScreenshotRequest, st pageState) (area, error) {
	box := area{Width: st.PageWidth, Height: st.PageHeight}
	if c := r.GetClip(); c != nil {
		box = area{c.GetX(), c.GetY(), c.GetWidth(), c.GetHeight()}
		if !r.GetFullPage() {
			box.X, box.Y = box.X+st.X, box.Y+st.Y
		}
		if box.X >= st.PageWidth || box.Y >= st.PageHeight || box.X+box.Width <= 0 || box.Y+box.Height <= 0 {
			return box, fault.New(fault.InvalidRequest, "the clip lies outside the page").Field("clip")
		}
		// What lies outside the page has no pixels.
		right, bottom := math.Min(box.X+box.Width, st.PageWidth), math.Min(box.Y+box.Height, st.PageHeight)
		box.X, box.Y = math.Max(box.X, 0), math.Max(box.Y, 0)
		box.Width, box.Height = right-box.X, bottom-box.Y
	}
	if box.Width > maxSide || box.Height > maxSide {
		return box, fault.New(fault.InvalidRequest, "the picture would be %.0f by %.0f, larger than %d", box.Width, box.Height, maxSide).
			Reason("payload_too_large").With("limit", maxSide).Hint("take it in parts with clip")
	}
	return box, nil
}

// aimAt scrolls an element into view and gives its box in the document. restore puts the scroll positions back, also when the
// call's time is over.
func (p *page) aimAt(ctx context.Context, ref string) (restore func(), box area, err error) {
	var held []inpage.FrameID
	restore = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		for _, frame := range held {
			_, _ = hand[bool](ctx, p, frame, "scrolls", "put") // A document that is gone has nothing to put back.
		}
	}
	frame, err := p.driver.FrameOf(ctx, ref)
	if err != nil {
		return restore, box, err
	}
	for _, id := range []inpage.FrameID{topFrame, frame} {
		if len(held) == 1 && id == topFrame {
			break
		}
		of := ref
		if id != frame {
			of = ""
		}
		if _, err := hand[bool](ctx, p, id, "scrolls", "keep", of); err != nil {
			return restore, box, err
		}
		held = append(held, id)
	}
	at, err := p.driver.ElementRect(ctx, ref)
	if err != nil {
		return restore, box, err
	}
	x, y := math.Floor(at.DocumentX+0.001), math.Floor(at.DocumentY+0.001)
	return restore, area{
		X: x, Y: y, Width: math.Max(1, math.Ceil(at.DocumentX+at.Width-0.001)-x), Height: math.Max(1, math.Ceil(at.DocumentY+at.Height-0.001)-y),
	}, nil
}
