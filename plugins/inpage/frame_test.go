package inpage_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// other gives an address of the server under its other name, which is another site.
func other(address string) string { return strings.Replace(address, "127.0.0.1", "localhost", 1) }

const doc = `<!doctype html><meta charset=utf-8><script>log=[]</script>`

func TestFrames(t *testing.T) {
	inner := serve(t, doc+`<div style="height:300px">spacer</div><button onclick="log.push('deep');top.postMessage('deep:'+event.isTrusted,'*')">Deep</button><button onclick="top.postMessage('wrong','*')">Neighbour</button>
<label>Card <input id=card onchange="top.postMessage('card:'+value,'*')"></label>`)
	for name, address := range map[string]string{"same site": inner, "other site": other(inner)} {
		t.Run(name, func(t *testing.T) {
			mid := serve(t, doc+`<p style="height:400px">m</p><iframe title=Inner src="`+address+`" width=360 height=150 style="border:3px solid red;margin-left:40px"></iframe>`)
			s := stage(t, `<script>addEventListener('message',e=>log.push(e.data))</script><header style="position:sticky;top:0;height:90px;background:#ccc;z-index:3">bar</header><p style="height:900px">t</p><iframe title=Middle src="`+mid+`" width=500 height=260 style="border:11px solid;padding:13px"></iframe><p style="height:600px">tail`)
			r := s.snap(&browserv1.SnapshotRequest{IncludeOutline: new(true)})
			ref := s.ref(r, "button", "Deep")
			if !strings.Contains(r.GetOutline(), "- iframe \"Middle\"") || !strings.Contains(r.GetOutline(), "    - button \"Deep\" [ref="+ref+"]") {
				t.Errorf("outline:\n%s", r.GetOutline())
			}
			if i, j := strings.Index(r.GetText(), "Neighbour"), strings.Index(r.GetText(), "tail"); i < strings.Index(r.GetText(), "m\n") || j < i {
				t.Errorf("text %q", r.GetText())
			}
			up := map[string]*browserv1.Node{}
			for _, n := range append(r.GetSnapshot().GetNodes(), r.GetSnapshot().GetRoot()) {
				for _, c := range n.GetChildren() {
					up[c] = n
				}
			}
			path := ""
			for _, n := range r.GetSnapshot().GetNodes() {
				if n.GetElementRef() == ref {
					for ; n != nil; n = up[n.GetNodeId()] {
						path += n.GetRole() + ":" + n.GetName() + " "
					}
					break
				}
			}
			if !strings.Contains(path, "iframe:Inner") || !strings.Contains(path, "iframe:Middle") {
				t.Errorf("the button stands in %s", path)
			}
			for range 3 {
				s.click(byRef(ref))
				s.tab.js(t, "scrollTo(0,0)")
			}
			s.soon("log.join()", `"deep:true,deep:true,deep:true"`)
			s.click(words("Deep"))
			if got := s.typed(byRef(s.ref(r, "textbox", "Card")), "4111", false); got != "4111" {
				t.Errorf("typed %q", got)
			}
			if got := s.typed(nil, "9", false); got != "41119" {
				t.Errorf("typed into the focused field of the frame: %q", got)
			}
			if _, err := s.Press(s.ctx(5*time.Second), &browserv1.PressRequest{Key: "Enter"}); err != nil {
				t.Error(err)
			}
			frame := s.ref(r, "iframe", "Inner")
			s.click(byRef(frame))
			sel := "#card"
			if got := s.typed(&browserv1.Target{Selector: &sel, FrameRef: &frame}, "5", true); got != "5" {
				t.Errorf("typed with frame_ref: %q", got)
			}
			_, err := s.Click(s.ctx(400*time.Millisecond), &browserv1.ClickRequest{Target: css("#card")})
			s.fails(err, fault.ElementNotFound, "")
			w, err := s.Wait(s.ctx(3*time.Second), &browserv1.WaitRequest{TextPresent: new("Neighbour"), TextAbsent: new("no such text")}, nil)
			if err != nil || !w.Satisfied {
				t.Errorf("wait %+v %v", w, err)
			}
			w, err = s.Wait(s.ctx(500*time.Millisecond), &browserv1.WaitRequest{TextAbsent: new("Neighbour")}, nil)
			if err != nil || w.Satisfied {
				t.Errorf("wait %+v %v", w, err)
			}
			box, err := s.ElementRect(s.ctx(3*time.Second), ref)
			if err != nil || box.Width < 30 || box.Height < 15 || box.Y < 0 || box.Y > 700 {
				t.Errorf("box %+v %v", box, err)
			}
			// A point of the viewport inside the frame reaches the same button.
			s.tab.js(t, "log.length=0")
			s.click(&browserv1.Target{Position: &browserv1.Position{X: box.X + box.Width/2, Y: box.Y + box.Height/2}})
			s.soon("log.join()", `"card:5,deep:true"`)
		})
	}
}

// A frame that hangs is named, and the rest of the page is read all the same.
func TestFrameThatHangs(t *testing.T) {
	busy := other(serve(t, doc+`<p>busy<script>setTimeout(()=>{for(;;);},100)</script>`))
	s := stage(t, `<button>Here</button><iframe title=Busy src="`+busy+`"></iframe>`)
	end := time.Now().Add(10 * time.Second)
	for {
		r, err := s.Snapshot(s.ctx(2*time.Second), &browserv1.SnapshotRequest{})
		must(t, err)
		s.ref(r, "button", "Here")
		omitted := fmt.Sprint(r.GetProviderData().AsMap()["omitted"])
		if strings.Contains(omitted, "frame") && strings.Contains(omitted, busy) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("omitted %s", omitted)
		}
	}
}

func TestClosedRoots(t *testing.T) {
	s := stage(t, `<h1>Pay</h1><pay-box></pay-box><script>
customElements.define('inner-box',class extends HTMLElement{constructor(){super();const r=this.attachShadow({mode:'closed'});r.innerHTML='<button>Nested help</button>';r.querySelector('button').onclick=()=>log.push('help')}});
customElements.define('pay-box',class extends HTMLElement{constructor(){super();const r=this.attachShadow({mode:'closed'});r.innerHTML='<label for=i>IBAN</label><input id=i><button>Confirm</button><div><inner-box></inner-box></div>';r.querySelector('button').onclick=()=>log.push('paid:'+r.getElementById('i').value)}})</script>`)
	s.click(words("Nested help"))
	r := s.snap(&browserv1.SnapshotRequest{})
	s.typed(byRef(s.ref(r, "textbox", "IBAN")), "XX00", false)
	s.click(byRef(s.ref(r, "button", "Confirm")))
	s.click(words("Confirm"))
	s.want("log.join()", `"help,paid:XX00,paid:XX00"`)
}

func TestScroll(t *testing.T) {
	s := stage(t, `<body style="height:5000px"><div id=vp style="height:200px;width:300px;overflow:auto;scroll-behavior:smooth"><div style="height:20000px;width:2000px"><p id=in style="margin:0">inside</p></div></div><p id=far style="position:absolute;top:4000px">far
<script>vp.onscroll=()=>log.push(vp.scrollTop)</script>`)
	dy := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		r    *browserv1.ScrollRequest
		x, y float64
		warn int
	}{
		{&browserv1.ScrollRequest{Target: css("#vp"), Dy: dy(8000)}, 0, 8000, 0},
		{&browserv1.ScrollRequest{Target: css("#in"), Dy: dy(-500), Dx: dy(40)}, 40, 7500, 0},
		{&browserv1.ScrollRequest{Target: css("#vp"), To: browserv1.ScrollTo_SCROLL_TO_BOTTOM.Enum()}, 40, 19815, 0},
		{&browserv1.ScrollRequest{Target: css("#vp"), To: browserv1.ScrollTo_SCROLL_TO_BOTTOM.Enum()}, 40, 19815, 1},
		{&browserv1.ScrollRequest{Dy: dy(123)}, 0, 123, 0},
		{&browserv1.ScrollRequest{To: browserv1.ScrollTo_SCROLL_TO_TOP.Enum()}, 0, 0, 0},
	} {
		got, err := s.Scroll(s.ctx(4*time.Second), c.r)
		if err != nil || got.X != c.x || got.Y != c.y || len(got.Warnings) != c.warn {
			t.Errorf("%v: %+v %v", c.r, got, err)
		}
	}
	s.want("vp.scrollTop+'/'+scrollY+'/'+log[0]", `"19815/0/8000"`)
	if _, err := s.Scroll(s.ctx(4*time.Second), &browserv1.ScrollRequest{Target: css("#far"), To: browserv1.ScrollTo_SCROLL_TO_INTO_VIEW.Enum()}); err != nil {
		t.Error(err)
	}
	s.want("far.getBoundingClientRect().top>0&&far.getBoundingClientRect().top<innerHeight", "true")
	_, err := s.Scroll(s.ctx(4*time.Second), &browserv1.ScrollRequest{Target: css("#far")})
	s.fails(err, fault.InvalidRequest, "")
}

func TestDrag(t *testing.T) {
	s := stage(t, `<div id=a draggable=true style="width:80px;height:40px;background:#9cf">Card</div><div id=b style="margin-top:40px;width:200px;height:120px;background:#fc9">Bin</div>
<script>a.ondragstart=e=>{log.push('start');e.dataTransfer.setData('text','card')};b.ondragover=e=>e.preventDefault();b.ondrop=e=>{e.preventDefault();log.push('drop:'+e.dataTransfer.getData('text'))}</script>`)
	drag := func(from, to *browserv1.Target) bool {
		got, _, err := s.Drag(s.ctx(5*time.Second), &browserv1.DragRequest{From: from, To: to})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if !drag(words("Card"), words("Bin")) {
		t.Error("not dropped")
	}
	s.want("log.join()", `"start,drop:card"`)
	s.show(`<body style="margin:0"><div id=h style="position:absolute;left:50px;top:50px;width:60px;height:60px;background:#9cf">Knob</div><div id=z style="position:absolute;left:400px;top:300px;width:100px;height:100px;background:#eee">Zone</div>
<script>let on=false;h.onpointerdown=()=>{on=true};onpointermove=e=>{if(on){h.style.left=e.clientX-30+'px';h.style.top=e.clientY-30+'px'}};onpointerup=()=>{on=false;const r=h.getBoundingClientRect();log.push(Math.round(r.left)+','+Math.round(r.top))}</script>`)
	if !drag(css("#h"), css("#z")) {
		t.Error("not dropped")
	}
	s.want("log.join()", `"420,320"`)
}

func TestSetFiles(t *testing.T) {
	s := stage(t, `<main><input id=f type=file multiple style="display:none"><label>One <input id=o type=file></label><p id=p>x<script>f.onchange=()=>log.push([...f.files].map(x=>x.name+x.size).join('+'))</script>`)
	dir := t.TempDir()
	var paths []string
	for _, n := range []string{"a.txt", "b.txt"} {
		paths = append(paths, filepath.Join(dir, n))
		must(t, os.WriteFile(paths[len(paths)-1], []byte("hello\n"), 0o600))
	}
	if got, err := s.SetFiles(s.ctx(4*time.Second), css("#f"), paths); err != nil || strings.Join(got, "|") != "a.txt|b.txt" {
		t.Errorf("%v %v", got, err)
	}
	if got, err := s.SetFiles(s.ctx(4*time.Second), css("#f"), paths[1:]); err != nil || strings.Join(got, "|") != "b.txt" {
		t.Errorf("%v %v", got, err)
	}
	s.want("log.join()", `"a.txt6+b.txt6,b.txt6"`)
	_, err := s.SetFiles(s.ctx(4*time.Second), words("One"), paths)
	s.fails(err, fault.InvalidRequest, "")
	_, err = s.SetFiles(s.ctx(4*time.Second), css("#p"), paths)
	s.fails(err, fault.UnsupportedTarget, "")
}

func TestWait(t *testing.T) {
	s := stage(t, `<button onclick="setTimeout(()=>{done.style.display='';w.remove()},300)">Start</button><p id=w>Working…</p><p id=done style="display:none">Export finished</p><p style="font-size:0" id=z></p>`)
	wait := func(d time.Duration, r *browserv1.WaitRequest) (bool, string) {
		t.Helper()
		w, err := s.Wait(s.ctx(d), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		return w.Satisfied, strings.Join(w.Met, ",")
	}
	began := time.Now()
	if ok, _ := wait(800*time.Millisecond, &browserv1.WaitRequest{TextPresent: new("Export finished")}); ok {
		t.Error("hidden text is present")
	}
	if took := time.Since(began); took < 650*time.Millisecond || took > time.Second {
		t.Errorf("it took %v", took)
	}
	s.click(css("button"))
	if ok, met := wait(5*time.Second, &browserv1.WaitRequest{TextPresent: new("Export finished"), TextAbsent: new("Working…"), SelectorPresent: new("#done"), SelectorAbsent: new("#w")}); !ok || met != "text_present,text_absent,selector_present,selector_absent" {
		t.Errorf("%v %s", ok, met)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	if ok, _ := wait(300*time.Millisecond, &browserv1.WaitRequest{TextPresent: new("Export finished"), TextAbsent: new("Export finished")}); ok {
		t.Error("conditions hold apart")
	}
	if ok, _ := wait(300*time.Millisecond, &browserv1.WaitRequest{ElementRefPresent: new("no-such-ref")}); ok {
		t.Error("an unknown ref is present")
	}
	r := s.snap(&browserv1.SnapshotRequest{})
	if ok, _ := wait(300*time.Millisecond, &browserv1.WaitRequest{ElementRefPresent: new("@" + s.ref(r, "button", "Start"))}); !ok {
		t.Error("a ref is not present")
	}
	_, err := s.Wait(s.ctx(5*time.Second), &browserv1.WaitRequest{SelectorPresent: new("p[")}, nil)
	s.fails(err, fault.InvalidSelector, "")
	_, err = s.Wait(s.ctx(5*time.Second), &browserv1.WaitRequest{}, nil)
	s.fails(err, fault.InvalidRequest, "")
	// A wait goes on in the next document.
	next := site.URL + "/other.html?q=(1)"
	s.tab.js(t, fmt.Sprintf("setTimeout(()=>location.href=%q,300)", next))
	u, _ := url.Parse(next)
	if ok, _ := wait(5*time.Second, &browserv1.WaitRequest{TextPresent: new("other page"), UrlMatches: new("http://*/other.html?q=(1)"), NavigationComplete: true}); !ok {
		t.Errorf("%s was not reached", u)
	}
	for glob, want := range map[string]bool{"**/other.html**": true, "http://*": false, "**other*": true, next: true, "**/Other.html**": false} {
		if ok, _ := wait(200*time.Millisecond, &browserv1.WaitRequest{UrlMatches: &glob}); ok != want {
			t.Errorf("%s: %v", glob, ok)
		}
	}
}

func TestSince(t *testing.T) {
	s := stage(t, `<main><nav><a href="#a">Home</a></nav><ul id=l><li><button id=b1>One</button><li><button id=b2>Two</button></ul></main>`)
	r1 := s.snap(&browserv1.SnapshotRequest{IncludeOutline: new(true)})
	two := s.ref(r1, "button", "Two")
	s.tab.js(t, "b1.textContent='First';b2.parentNode.remove();l.insertAdjacentHTML('beforeend','<li><button>Three</button>')")
	r2 := s.snap(&browserv1.SnapshotRequest{IncludeOutline: new(true), Since: &r1.SnapshotId})
	var names []string
	for _, e := range r2.GetElements() {
		names = append(names, e.GetName())
	}
	if strings.Join(names, ",") != "First,Three" {
		t.Errorf("elements %v", names)
	}
	if got := strings.Join(r2.GetSnapshot().GetRemovedRefs(), ","); !strings.Contains(got, two) {
		t.Errorf("removed %s, want %s", got, two)
	}
	for _, n := range r2.GetSnapshot().GetNodes() {
		if n.GetName() == "Home" {
			t.Error("an unchanged node is there")
		}
	}
	if !strings.Contains(r2.GetOutline(), `+ button "First"`) || strings.Contains(r2.GetOutline(), "Home") {
		t.Errorf("outline:\n%s", r2.GetOutline())
	}
	r3 := s.snap(&browserv1.SnapshotRequest{Since: &r2.SnapshotId})
	if n := len(r3.GetElements()); n != 0 {
		t.Errorf("%d elements changed", n)
	}
	r4 := s.snap(&browserv1.SnapshotRequest{Since: new("s999")})
	if len(r4.GetWarnings()) != 1 || len(r4.GetElements()) != 3 {
		t.Errorf("%v", r4.GetWarnings())
	}
}

func TestSnapshotBudgetAndData(t *testing.T) {
	s := stage(t, `<title>Big</title><input type=password value=geheim><script>for(let i=0;i<500;i++)document.body.insertAdjacentHTML('beforeend','<button>B'+i+'</button>')</script>`)
	most := int32(50)
	r := s.snap(&browserv1.SnapshotRequest{MaxNodes: &most, IncludeHtml: new(true), IncludeDom: new(true)})
	if n := len(r.GetSnapshot().GetNodes()); n > 50 || n < 20 || !r.GetSnapshot().GetTruncated() || r.GetSnapshot().GetTotalNodes() < 500 {
		t.Errorf("%d nodes, truncated %v of %d", n, r.GetSnapshot().GetTruncated(), r.GetSnapshot().GetTotalNodes())
	}
	data := fmt.Sprint(r.GetProviderData().AsMap())
	if strings.Contains(data, "geheim") || !strings.Contains(data, "B499") {
		t.Error("the html holds a password, or not the page")
	}
	o := s.snap(&browserv1.SnapshotRequest{Format: browserv1.SnapshotFormat_SNAPSHOT_FORMAT_OUTLINE.Enum()})
	if len(o.GetSnapshot().GetNodes()) != 0 || !strings.Contains(o.GetOutline(), "B499") {
		t.Error("the outline is not alone")
	}
	before := s.tab.evals
	s.snap(&browserv1.SnapshotRequest{})
	if n := s.tab.evals - before; n != 1 {
		t.Errorf("%d evaluations", n)
	}
}

// An editor whose field is the body of a frame.
func TestTypeIntoTheBodyOfAFrame(t *testing.T) {
	s := stage(t, `<iframe title=Editor srcdoc="<body contenteditable aria-label=Letter><p>Dear</p></body>"></iframe>`)
	r := s.snap(&browserv1.SnapshotRequest{})
	frame := s.ref(r, "iframe", "Editor")
	sel := "body"
	if got := s.typed(&browserv1.Target{Selector: &sel, FrameRef: &frame}, " Ada", false); got != "Dear Ada" {
		t.Errorf("value %q", got)
	}
	if got := s.typed(nil, "Hello", true); got != "Hello" {
		t.Errorf("value %q", got)
	}
}
