package conformance

// pictureChecks are about screenshots, which no transcript can read.
func pictureChecks() []check {
	c := func(name, guards string, do func(*T)) check {
		return check{id: "page.screenshot/" + name, method: "page.screenshot", guards: guards, do: do}
	}
	full := c("full-page", "A picture of the full page is higher than one of the viewport.", fullPage)
	full.features = []string{"full_page_screenshot"}
	return []check{
		full,
		c("clip", "A clip has the size that was asked for, in the pixels of the screen.", clip),
		c("element", "A picture of an element has the element's size.", elementPicture),
		c("jpeg", "A JPEG that was asked for is one.", func(t *T) { t.open("form.html"); t.picture(map[string]any{"format": "jpeg", "quality": 60}) }),
		c("stale", "A picture of an element that is gone is element_not_found.", func(t *T) {
			t.open("form.html")
			if a := t.Call("page.screenshot", map[string]any{"element_ref": "d99999e1"}); !says(a, "element_not_found") {
				t.Errorf("it must answer element_not_found, and it answers %s", a.said())
			}
		}),
	}
}

func fullPage(t *T) {
	t.open("tall.html")
	_, view := t.picture(nil)
	_, full := t.picture(map[string]any{"full_page": true})
	if full <= view || full < 2400 {
		t.Errorf("the full page is %d pixels high and the viewport %d; the page has 2,450 CSS pixels at least", full, view)
	}
}

func clip(t *T) {
	t.open("tall.html")
	w, h := t.picture(map[string]any{"clip": map[string]any{"x": 10, "y": 5, "width": 100, "height": 40}})
	if w%100 != 0 || h%40 != 0 || w/100 != h/40 || w == 0 {
		t.Errorf("a clip of 100 by 40 is %d by %d", w, h)
	}
}

func elementPicture(t *T) {
	t.open("form.html")
	w, h := t.picture(map[string]any{"element_ref": t.ref("button", "Count")})
	fw, fh := t.picture(nil)
	if w <= 0 || h <= 0 || w >= fw || h >= fh {
		t.Errorf("a picture of a button is %d by %d, and one of the viewport %d by %d", w, h, fw, fh)
	}
}
