package cdp

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// What page.eval gives for values of every kind, in every world and frame.
func TestEval(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": "<title>E</title><script>var secret=7; big='z'.repeat(5<<20)</script><iframe src=/in title=Inner></iframe>", "/in": "<title>In</title><script>var inner='yes'</script>"})
	u := r.session("eval")
	u.open(base + "/")
	eval := func(q *browserv1.EvalRequest) *browserv1.EvalResponse {
		t.Helper()
		q.SessionId = u.id
		return do[*browserv1.EvalResponse](r, q)
	}
	for _, c := range []struct{ expression, kind, odd string }{
		{"undefined", "undefined", "undefined"},
		{"NaN", "number", "NaN"},
		{"-0", "number", "-0"},
		{"Infinity", "number", "Infinity"},
		{"1n", "bigint", "1n"},
		{"Symbol('s')", "symbol", "Symbol(s)"},
		{"var o={};o.o=o;o", "object", "[object Object]"},
		{"null", "null", ""},
	} {
		got := eval(&browserv1.EvalRequest{Expression: c.expression})
		if got.GetType() != c.kind || !strings.HasPrefix(got.GetUnserializable(), c.odd) || (c.odd == "") != (got.Unserializable == nil) {
			t.Errorf("%s gave %v", c.expression, got)
		}
		if _, null := got.GetValue().GetKind().(*structpb.Value_NullValue); !null {
			t.Errorf("%s gave the value %v", c.expression, got.GetValue())
		}
	}
	for _, c := range [][2]string{
		{"1+1", "2"},
		{"'a\\u2028\\ud800b'", `"a\u2028` + "\ufffd" + `b"`},
		{"({a:[1,{b:null}],c:undefined})", `{"a":[1,{"b":null}]}`},
		{"Promise.resolve([5])", "[5]"},
		{"new Date(0)", `"1970-01-01T00:00:00.000Z"`},
		{"document.querySelectorAll('iframe').length", "1"},
		{"secret", "7"},
		{"true", "true"},
	} {
		if got := u.eval(c[0]); got != c[1] {
			t.Errorf("%s gave %s", c[0], got)
		}
	}
	if got := eval(&browserv1.EvalRequest{Expression: "big"}); len(got.GetValue().GetStringValue()) != 5<<20 {
		t.Errorf("a big value came with %d bytes", len(got.GetValue().GetStringValue()))
	}
	args := []*structpb.Value{structpb.NewNumberValue(2), structpb.NewStringValue("x")}
	for _, f := range []string{"(a, b) => b.repeat(a)", "function(a, b) { return b.repeat(a) }", "async (a, b) => b.repeat(a)"} {
		if got := eval(&browserv1.EvalRequest{Expression: f, Args: args}); got.GetValue().GetStringValue() != "xx" {
			t.Errorf("%s gave %v", f, got)
		}
	}
	if got := eval(&browserv1.EvalRequest{Expression: "typeof secret", World: browserv1.World_WORLD_ISOLATED.Enum()}); got.GetValue().GetStringValue() != "undefined" {
		t.Errorf("the isolated world sees secret as %v", got)
	}
	var frame string
	for _, n := range u.snapshot().GetSnapshot().GetNodes() {
		if n.GetRole() == "iframe" {
			frame = n.GetElementRef()
		}
	}
	if got := eval(&browserv1.EvalRequest{Expression: "inner", FrameRef: &frame}); got.GetValue().GetStringValue() != "yes" {
		t.Errorf("in the frame: %v", got)
	}
	if got := eval(&browserv1.EvalRequest{Expression: "new Promise(()=>{})", AwaitPromise: ptr(false)}); got.GetType() != "object" {
		t.Errorf("a promise that is not awaited: %v", got)
	}
	for _, c := range [][2]string{{"nope.x", "ReferenceError"}, {"(()=>{throw new Error('broken')})()", "broken"}, {"Promise.reject(new TypeError('late'))", "late"}, {"throw 5", "5"}, {"a b", "SyntaxError"}} {
		e := fails(r, &browserv1.EvalRequest{SessionId: u.id, Expression: c[0]}, fault.InvalidRequest, "script_error")
		if m, _ := e.Details["message"].(string); !strings.Contains(m, c[1]) {
			t.Errorf("%s: %v", c[0], e.Details)
		}
	}
	if got := u.eval("Object.keys(globalThis).filter(k=>/drover/i.test(k)).length + (typeof __drover)"); got != `"0undefined"` {
		t.Errorf("the page sees the engine: %s", got)
	}
}

const colours = `<!doctype html><title>P</title><style>body{margin:0;background:#fff}#far{position:absolute;left:40px;top:1500px;width:60px;height:30px;background:rgb(0,160,0)}
#pane{width:120px;height:80px;overflow:auto;background:rgb(0,0,200)}#in{margin:300px 0 300px 10px;width:50px;height:20px;background:rgb(200,0,0)}
iframe{border:0;width:200px;height:60px;display:block}</style><div id=pane><div id=in role=img aria-label=In></div></div>
<iframe src=/inner title=Frame></iframe><div id=far role=img aria-label=Far></div><button>Go</button><script>scrollTo(0,10);document.getElementById('pane').scrollTop=5</script>`

// Pictures show what was asked, in the size that is told, and leave the page as it was.
func TestScreenshots(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": colours, "/inner": "<style>body{margin:0}</style><div style='height:400px'></div><div role=img aria-label=Deep style='width:40px;height:24px;background:rgb(160,0,160)'></div>"})
	u := r.session("pictures", func(q *browserv1.EnsureSessionRequest) { q.Viewport = &browserv1.Size{Width: 600, Height: 400} })
	u.open(base + "/")
	named := map[string]string{}
	for _, n := range u.snapshot().GetSnapshot().GetNodes() {
		named[n.GetName()] = n.GetElementRef()
	}
	where := "[scrollX,scrollY,document.getElementById('pane').scrollTop,document.querySelector('iframe').contentWindow.scrollY]"
	before := u.eval(where)
	for _, c := range []struct {
		name   string
		req    *browserv1.ScreenshotRequest
		w, h   int
		colour color.RGBA
	}{
		{"viewport", &browserv1.ScreenshotRequest{}, 600, 400, color.RGBA{}},
		{"full page", &browserv1.ScreenshotRequest{FullPage: true}, 600, 1530, color.RGBA{}},
		{"clip", &browserv1.ScreenshotRequest{Clip: &browserv1.Rect{X: 2, Y: 2, Width: 30, Height: 20}}, 30, 20, color.RGBA{0, 0, 200, 255}},
		{"clip of the page", &browserv1.ScreenshotRequest{FullPage: true, Clip: &browserv1.Rect{X: 40, Y: 1500, Width: 60, Height: 30}}, 60, 30, color.RGBA{0, 160, 0, 255}},
		{"element", &browserv1.ScreenshotRequest{ElementRef: ptr(named["Far"])}, 60, 30, color.RGBA{0, 160, 0, 255}},
		{"element in a pane", &browserv1.ScreenshotRequest{ElementRef: ptr(named["In"])}, 50, 20, color.RGBA{200, 0, 0, 255}},
		{"element in a frame", &browserv1.ScreenshotRequest{ElementRef: ptr(named["Deep"])}, 40, 24, color.RGBA{160, 0, 160, 255}},
		{"jpeg", &browserv1.ScreenshotRequest{Format: browserv1.ImageFormat_IMAGE_FORMAT_JPEG.Enum(), Quality: ptr(int32(50))}, 600, 400, color.RGBA{}},
		{"tall", &browserv1.ScreenshotRequest{FullPage: true, Clip: &browserv1.Rect{Width: 10, Height: 20000}}, 10, 16384, color.RGBA{}},
		{"annotated", &browserv1.ScreenshotRequest{Annotate: true}, 600, 400, color.RGBA{}},
	} {
		c.req.SessionId = u.id
		got := do[*browserv1.ScreenshotResponse](r, c.req)
		pic, kind, err := image.Decode(bytes.NewReader(got.GetImage()))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		size := pic.Bounds().Size()
		if size.X != int(got.GetWidth()) || size.Y != int(got.GetHeight()) || size.X != c.w || size.Y != c.h || got.GetMediaType() != "image/"+kind {
			t.Errorf("%s: the picture is %v %s, said to be %d by %d %s, want %d by %d", c.name, size, kind, got.GetWidth(), got.GetHeight(), got.GetMediaType(), c.w, c.h)
		}
		if c.colour.A == 255 {
			for y := range size.Y {
				for x := range size.X {
					if p := color.RGBAModel.Convert(pic.At(x, y)); p != c.colour {
						t.Fatalf("%s: the pixel %d, %d is %v", c.name, x, y, p)
					}
				}
			}
		}
		if after := u.eval(where); after != before {
			t.Errorf("%s: scrolled from %s to %s", c.name, before, after)
		}
	}
	fails(r, &browserv1.ScreenshotRequest{SessionId: u.id, Clip: &browserv1.Rect{X: 5000, Y: 0, Width: 5, Height: 5}}, fault.InvalidRequest, "")
	fails(r, &browserv1.ScreenshotRequest{SessionId: u.id, ElementRef: ptr("d99e1")}, fault.ElementNotFound, "stale_ref")
	ref := do[*browserv1.ScreenshotResponse](r, &browserv1.ScreenshotRequest{SessionId: u.id, Inline: ptr(false)})
	art := do[*browserv1.GetArtifactResponse](r, &browserv1.GetArtifactRequest{SessionId: u.id, Ref: ref.GetImageRef()})
	if size, _, err := image.DecodeConfig(bytes.NewReader(art.GetData())); err != nil || size.Width != 600 || !art.GetEof() || art.GetMediaType() != "image/png" {
		t.Errorf("the artifact is %v %v %v", size, art.GetMediaType(), err)
	}
	part := do[*browserv1.GetArtifactResponse](r, &browserv1.GetArtifactRequest{SessionId: u.id, Ref: ref.GetImageRef(), Offset: 1, Limit: 3})
	if string(part.GetData()) != "PNG" || part.GetEof() {
		t.Errorf("the part is %q", part.GetData())
	}
	fails(r, &browserv1.GetArtifactRequest{SessionId: u.id, Ref: "../../etc/passwd"}, fault.InvalidRequest, "")
	snap := do[*browserv1.SnapshotResponse](r, &browserv1.SnapshotRequest{SessionId: u.id, IncludeScreenshot: ptr(true)})
	if snap.GetScreenshotRef() == "" {
		t.Error("the snapshot has no screenshot_ref")
	}
}

// A frame of another site, in another process, is read and acted on like any other; so is one inside that.
func TestFrames(t *testing.T) {
	r := newRig(t, nil)
	pages := map[string]string{
		"/in":   `<title>In</title><button onclick="this.textContent='pressed'">Deep</button><input aria-label=Card>`,
		"/form": "<title>F</title>",
	}
	base := site(t, pages)
	far := strings.Replace(base, "127.0.0.1", "localhost", 1)
	pages["/mid"] = fmt.Sprintf("<title>Mid</title><p style='height:700px'></p><iframe title=Inner src='%s/in'></iframe>", base)
	pages["/"] = fmt.Sprintf("<title>Top</title><p style='height:500px'></p><iframe title=Outer src='%s/mid' style='height:200px'></iframe>", far)
	u := r.session("frames")
	u.open(base + "/")
	if w := do[*browserv1.WaitResponse](r, &browserv1.WaitRequest{SessionId: u.id, TextPresent: ptr("Deep")}); !w.GetSatisfied() {
		t.Fatal("the inner frame is not there")
	}
	card := u.ref("textbox", "Card")
	typed := do[*browserv1.TypeResponse](r, &browserv1.TypeRequest{SessionId: u.id, Target: byRef(card), Text: "42é"})
	if typed.GetValue() != "42é" {
		t.Errorf("typing said %v", typed)
	}
	do[*browserv1.PressResponse](r, &browserv1.PressRequest{SessionId: u.id, Target: byRef(card), Key: "Backspace"})
	u.clickOn("button", "Deep")
	if u.ref("button", "pressed") == "" {
		t.Error("the click did not arrive")
	}
	s := do[*browserv1.SnapshotResponse](r, &browserv1.SnapshotRequest{SessionId: u.id, IncludeOutline: ptr(true)})
	if o := s.GetOutline(); !strings.Contains(o, `textbox "Card"`) || !strings.Contains(o, ": 42") {
		t.Errorf("the outline is\n%s", o)
	}
}

// The ways of a page that a model must be able to trust: closed shadow roots are read, a select is chosen from.
func TestClosedRoots(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": `<title>C</title><x-box></x-box><script>customElements.define('x-box', class extends HTMLElement {
		connectedCallback() { this.attachShadow({mode:'closed'}).innerHTML = "<button onclick=\"document.title='got it'\">Hidden</button>" } })</script>`})
	u := r.session("closed")
	u.open(base + "/")
	u.clickOn("button", "Hidden")
	if got := u.eval("document.title"); got != `"got it"` {
		t.Errorf("the title is %s", got)
	}
}
