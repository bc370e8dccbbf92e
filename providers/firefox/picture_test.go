package firefox

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"testing"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

func (u *user) picture(r *browserv1.ScreenshotRequest) image.Image {
	u.t.Helper()
	r.SessionId = u.id
	resp := ask[*browserv1.ScreenshotResponse](u.rig, r)
	img, err := png.Decode(bytes.NewReader(resp.GetImage()))
	if err != nil {
		u.t.Fatal(err)
	}
	return img
}

func colour(img image.Image, x, y int) string {
	r, g, b, _ := img.At(x, y).RGBA()
	return fmt.Sprintf("%02x%02x%02x", r>>8, g>>8, b>>8)
}

// A picture is of the tab that is asked for, also behind another; of the whole page, of an element below the fold, with the page
// scrolled as it was.
func TestPictures(t *testing.T) {
	person(t)
	r := newRig(t)
	page := func(colour string) string {
		return `<!doctype html><style>body{margin:0;background:#` + colour + `}div{height:3000px}</style><div></div><button style="background:#00ff00;border:0;width:90px;height:40px">x</button>`
	}
	base := site(t, map[string]string{"/red": page("ff0000"), "/blue": page("0000ff")})
	u := r.session("pictures")
	red := u.open(base + "/red").GetPageId()
	ask[*browserv1.NewTabResponse](r, &browserv1.NewTabRequest{SessionId: u.id, Url: ptr(base + "/blue")})
	if got := colour(u.picture(&browserv1.ScreenshotRequest{}), 5, 5); got != "0000ff" {
		t.Errorf("the tab in front is %s", got)
	}
	if got := colour(u.picture(&browserv1.ScreenshotRequest{PageId: &red}), 5, 5); got != "ff0000" {
		t.Errorf("the tab behind is %s", got)
	}
	if img := u.picture(&browserv1.ScreenshotRequest{PageId: &red, FullPage: true}); img.Bounds().Dy() < 3000 {
		t.Errorf("the whole page is %v", img.Bounds())
	}
	ref := u.ref("button", "x")
	if img := u.picture(&browserv1.ScreenshotRequest{ElementRef: &ref}); img.Bounds().Dx() != 90 || img.Bounds().Dy() != 40 || colour(img, 3, 3) != "00ff00" {
		t.Errorf("the element is %v of %s", img.Bounds(), colour(img, 3, 3))
	}
	if got := u.eval("scrollY"); got != "0" {
		t.Errorf("the page is scrolled to %s", got)
	}
}
