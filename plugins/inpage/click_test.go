package inpage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/plugins/inpage"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

func TestClickPlain(t *testing.T) {
	s := stage(t, `<button onclick="log.push('a:'+event.isTrusted)">Save</button>`)
	r := s.snap(&browserv1.SnapshotRequest{})
	s.click(byRef("@" + s.ref(r, "button", "Save")))
	s.click(words("Save"))
	s.click(words("save"))
	s.click(css("button"))
	s.want("log.join()", `"a:true,a:true,a:true,a:true"`)
	before := s.tab.evals
	s.click(css("button"))
	if n := s.tab.evals - before; n > 2 {
		t.Errorf("a click took %d evaluations", n)
	}
}

func TestClickMissing(t *testing.T) {
	s := stage(t, `<p>nothing`)
	for _, target := range []*browserv1.Target{css("#nothing"), words("Save")} {
		began := time.Now()
		_, err := s.Click(s.ctx(500*time.Millisecond), &browserv1.ClickRequest{Target: target})
		s.fails(err, fault.ElementNotFound, "")
		if took := time.Since(began); took < 350*time.Millisecond || took > 650*time.Millisecond {
			t.Errorf("%v took %v", target, took)
		}
	}
	_, err := s.Click(s.ctx(5*time.Second), &browserv1.ClickRequest{Target: css("p[")})
	s.fails(err, fault.InvalidSelector, "")
}

func TestClickWaitsForLateTarget(t *testing.T) {
	s := stage(t, `<script>setTimeout(()=>{document.body.innerHTML='<button onclick="log.push(1)">Late</button>'},400)</script>`)
	s.click(words("Late"))
	s.want("log.length", "1")
}

func TestClickRefusals(t *testing.T) {
	s := stage(t, `<main>
<button id=off disabled onclick="log.push('off')">Off</button>
<button id=aria aria-disabled=true onclick="log.push('aria')">Aria</button>
<button id=gone style="display:none">Gone</button>
<button id=flat style="width:0;height:0;padding:0;border:0;overflow:hidden"></button>
<select><option>One<option id=opt>Two</select>
<fieldset disabled><legend><button id=leg onclick="log.push('leg')">Leg</button></legend><button id=fs onclick="log.push('fs')">Fs</button></fieldset>
<div inert><button id=inert onclick="log.push('inert')">Inert</button></div>`)
	for _, c := range []struct {
		sel, reason string
		within      time.Duration
	}{
		{"#off", "disabled", 4 * time.Second},
		{"#aria", "disabled", 4 * time.Second},
		{"#fs", "disabled", 4 * time.Second},
		{"#inert", "disabled", 4 * time.Second},
		{"#gone", "not_visible", 6 * time.Second},
		{"#flat", "zero_size", 6 * time.Second},
		{"#opt", "not_visible", time.Second},
	} {
		began := time.Now()
		_, err := s.Click(s.ctx(10*time.Second), &browserv1.ClickRequest{Target: css(c.sel)})
		s.fails(err, fault.ElementNotActionable, c.reason)
		if took := time.Since(began); took > c.within {
			t.Errorf("%s took %v", c.sel, took)
		}
	}
	s.click(css("#leg"))
	s.want("log.join()", `"leg"`)
}

func TestClickCovered(t *testing.T) {
	s := stage(t, `<a href="#deal" onclick="log.push('deal')">Claim</a>
<div id=ov style="position:fixed;inset:0;background:#0006" onclick="log.push('ov')"><div style="background:#fff;margin:150px">Cookie notice
<button onclick="event.stopPropagation();log.push('ok');ov.remove()">Accept</button></div></div>`)
	began := time.Now()
	_, err := s.Click(s.ctx(10*time.Second), &browserv1.ClickRequest{Target: words("Claim")})
	e := s.fails(err, fault.ElementNotActionable, "covered")
	if by, _ := e.Details["covered_by"].(string); !strings.Contains(by, "div#ov") || !strings.Contains(by, "Cookie notice") {
		t.Errorf("covered by %q", by)
	}
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("it took %v", took)
	}
	s.click(words("Accept"))
	s.click(words("Claim"))
	s.want("log.join()+location.hash", `"ok,deal#deal"`)
}

func TestClickForce(t *testing.T) {
	s := stage(t, `<button onclick="log.push('b')">Under</button><div style="position:fixed;inset:0" onclick="log.push('over')"></div>`)
	_, err := s.Click(s.ctx(5*time.Second), &browserv1.ClickRequest{Target: css("button"), Force: true})
	if err != nil {
		t.Fatal(err)
	}
	s.want("log.join()", `"over"`)
}

func TestClickPlaces(t *testing.T) {
	for name, c := range map[string]struct{ html, target, want string }{
		"wrapped link": {
			`<div style="width:170px;font:16px/40px monospace" onclick="event.target===this&&log.push('missed')"><span>aaaaaaaaaaaa </span><a href="#x" onclick="log.push('link')">bb cc</a><span> dddddddddddd</span></div>`, "a", "link",
		},
		"part covered": {
			`<button style="width:300px;height:60px" onclick="log.push('b')">Wide</button><div style="position:absolute;left:60px;top:0;width:200px;height:90px;background:red" onclick="log.push('cover')"></div>`, "button", "b",
		},
		"radio in label": {
			`<label style="display:block;padding:9px"><input type=radio name=a style="display:none" onchange="log.push('r')">Fast</label>`, "input", "r",
		},
		"clipped checkbox": {
			`<input id=c type=checkbox style="position:absolute;width:1px;height:1px;clip:rect(0 0 0 0);overflow:hidden" onchange="log.push('c='+checked)"><label for=c style="margin-left:40px">Agree</label>`, "input", "c=true",
		},
		"no size but children": {
			`<a href="#k" style="display:inline-block;width:0;height:0" onclick="log.push('k')"><span style="position:absolute;left:50px;top:50px;width:80px;height:30px;background:#eee">Kid</span></a>`, "a", "k",
		},
		"display contents": {
			`<a href="#k" style="display:contents" onclick="log.push('k')"><b>Bold</b></a>`, "a", "k",
		},
		"text in a link without pointer events": {
			`<a href="#k" onclick="log.push('k')"><span id=s style="pointer-events:none">In link</span></a>`, "#s", "k",
		},
		"card with a button in its middle": {
			`<div id=card role=button tabindex=0 style="width:200px;padding:40px" onclick="log.push(event.target===this?'card':'inner')"><button style="width:100%" onclick="log.push('inner button')">Buy</button></div>`, "#card", "card",
		},
		"image map": {
			`<img usemap="#m" width=200 height=100 style="border:5px solid;padding:7px" src="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>"><map name=m><area id=z shape=rect coords="150,50,190,90" href="#z" onclick="log.push('area')"></map>`, "#z", "area",
		},
		"scrolled pane": {
			`<div style="height:100px;overflow:auto;border:1px solid"><div style="height:900px">x</div><button onclick="log.push('deep')">Deep</button></div>`, "button", "deep",
		},
		"far to the right": {
			`<div style="width:6000px;text-align:right"><button onclick="log.push('right')">R</button></div>`, "button", "right",
		},
		"smooth scrolling": {
			`<style>html{scroll-behavior:smooth}</style><div style="height:5000px"></div><button onclick="log.push('s')">S</button>`, "button", "s",
		},
		"shadow and slot": {
			`<x-a><b>Slotted</b></x-a><script>customElements.define('x-a',class extends HTMLElement{constructor(){super();this.attachShadow({mode:'open'}).innerHTML='<div style="padding:30px"><button><slot></slot></button></div>';this.shadowRoot.querySelector('button').onclick=e=>log.push('shadow:'+e.isTrusted)}})</script>`, "button", "shadow:true",
		},
		"removed on press": {
			`<button onmousedown="log.push('down');this.remove()">Gone</button>`, "button", "down",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := stage(t, c.html)
			s.click(css(c.target))
			s.want("log.join()", fmt.Sprintf("%q", c.want))
		})
	}
}

func TestClickUnderStickyHeader(t *testing.T) {
	s := stage(t, `<header style="position:sticky;top:0;height:140px;background:#fc8;z-index:5" onclick="log.push('header')">H</header>
<div id=before style="height:700px"></div><button onclick="log.push('row')">Row</button><div style="height:3000px"></div>
<footer style="position:fixed;bottom:0;left:0;right:0;height:400px;background:#8cf" onclick="log.push('footer')">F</footer>`)
	for _, y := range []int{0, 2500, 640, 800} {
		s.tab.js(t, fmt.Sprintf("scrollTo(0,%d)", y))
		s.click(css("button"))
	}
	s.want("log.join()", `"row,row,row,row"`)
}

func TestClickMovingThenStill(t *testing.T) {
	s := stage(t, `<style>@keyframes s{to{left:600px}}button{position:absolute;top:80px;left:0;width:90px;animation:s 700ms linear 1 forwards}</style>
<body style="height:600px" onclick="event.target===document.body&&log.push('body')"><button onclick="log.push('hit')">Run</button>`)
	s.click(css("button"))
	s.want("log.join()", `"hit"`)
}

func TestClickForeverMoving(t *testing.T) {
	s := stage(t, `<style>@keyframes s{from{left:0}to{left:600px}}button{position:absolute;top:80px;width:60px;height:30px;animation:s 2500ms linear infinite alternate}</style>
<body style="height:600px" onclick="event.target===document.body&&log.push('body')"><button onclick="log.push('hit')">Run</button>`)
	for range 3 {
		s.click(css("button"))
	}
	s.want("log.join()", `"hit,hit,hit"`)
}

func TestClickWays(t *testing.T) {
	s := stage(t, `<button id=b>B</button><script>for(const k of ['click','dblclick','auxclick','contextmenu'])b.addEventListener(k,e=>{e.preventDefault();log.push(k+e.detail+(e.ctrlKey?'C':'')+(e.shiftKey?'S':''))})
for(const k of ['keydown','keyup'])addEventListener(k,e=>log.push(k[3]+e.key))</script>`)
	click := func(r *browserv1.ClickRequest) string {
		s.tab.js(t, "log.length=0")
		r.Target = css("#b")
		if _, err := s.Click(s.ctx(5*time.Second), r); err != nil {
			t.Fatal(err)
		}
		return s.tab.js(t, "log.join()")
	}
	two := int32(2)
	for _, c := range []struct {
		r    *browserv1.ClickRequest
		want string
	}{
		{&browserv1.ClickRequest{ClickCount: &two}, `"click1,click2,dblclick2"`},
		{&browserv1.ClickRequest{Button: browserv1.MouseButton_MOUSE_BUTTON_RIGHT.Enum()}, `"contextmenu0,auxclick1"`},
		{&browserv1.ClickRequest{Button: browserv1.MouseButton_MOUSE_BUTTON_MIDDLE.Enum()}, `"auxclick1"`},
		{&browserv1.ClickRequest{Modifiers: []browserv1.Modifier{browserv1.Modifier_MODIFIER_SHIFT, browserv1.Modifier_MODIFIER_CONTROL}}, `"dControl,dShift,click1CS,uShift,uControl"`},
	} {
		if got := click(c.r); got != c.want {
			t.Errorf("%v: %s, want %s", c.r, got, c.want)
		}
	}
}

func TestTextQuery(t *testing.T) {
	s := stage(t, `<ul><li>One <button onclick="log.push(1)">Delete</button><li>Two <button onclick="log.push(2)">Delete</button></ul>
<p>Please sign in to go on</p><a href="#s" onclick="log.push('sign')">Sign in now</a>
<label for=e>E-mail</label><input id=e onfocus="log.push('mail')">
<a href="#p" onclick="log.push('price')"><strong>Price</strong> <span>list</span></a>
<button aria-label="Close dialog" onclick="log.push('x')">X</button>
<button><img alt="Print it" onclick="log.push('print')"></button>
<h2 onclick="log.push('h2')">Settings</h2><button>Settings of all</button>
<button style="display:none">Hidden one</button><div onclick="log.push('twice')"><span>Twice</span> told</div>`)
	_, err := s.Click(s.ctx(5*time.Second), &browserv1.ClickRequest{Target: words("Delete")})
	e := s.fails(err, fault.InvalidRequest, "ambiguous_target")
	if c, _ := e.Details["candidates"].([]any); len(c) != 2 {
		t.Errorf("candidates %v", e.Details["candidates"])
	}
	for _, text := range []string{"sign in", "E-mail", "Price list", "close dialog", "Print it", "Settings", "Twice told"} {
		s.click(words(text))
	}
	s.want("log.join()", `"sign,mail,price,x,print,h2,twice"`)
	_, err = s.Click(s.ctx(400*time.Millisecond), &browserv1.ClickRequest{Target: words("Hidden one")})
	s.fails(err, fault.ElementNotFound, "")
}

// Of hits that are equally good as texts, a person means the one that can be seen and acted on.
func TestTextQueryTies(t *testing.T) {
	for name, html := range map[string]string{
		"a copy off the screen": `<a href="#x" style="position:absolute;left:-9999px">Pay</a><a href="#y" onclick="log.push('y')">Pay</a>`,
		"a silent copy":         `<div aria-hidden=true><button>Pay</button></div><button onclick="log.push('y')">Pay</button>`,
		"a disabled one":        `<button disabled>Pay</button><button onclick="log.push('y')">Pay</button>`,
		"one behind a dialog":   `<button>Pay</button><dialog id=d><button onclick="log.push('y')">Pay</button></dialog><script>d.showModal()</script>`,
	} {
		t.Run(name, func(t *testing.T) {
			s := stage(t, html)
			s.click(words("Pay"))
			s.want("log.join()", `"y"`)
		})
	}
}

func TestLocate(t *testing.T) {
	s := stage(t, `<button id=b aria-label=Close>x</button>`)
	got, err := s.Locate(s.ctx(5*time.Second), css("#b"))
	if err != nil || got.Role != "button" || got.Name != "Close" || got.Tag != "button" || got.Ref == "" || got.Frame == "" {
		t.Errorf("%+v %v", got, err)
	}
	if frame, err := s.FrameOf(t.Context(), got.Ref); err != nil || frame != got.Frame {
		t.Errorf("%v %v", frame, err)
	}
	_, err = s.ContentFrame(s.ctx(5*time.Second), got.Ref)
	s.fails(err, fault.UnsupportedTarget, "")
	s.want("log.length", "0")
}

func TestPosition(t *testing.T) {
	s := stage(t, `<body style="margin:0"><button style="position:absolute;left:100px;top:50px;width:100px;height:40px" onclick="log.push('p')">P</button>`)
	s.click(&browserv1.Target{Position: &browserv1.Position{X: 150, Y: 70}})
	s.want("log.join()", `"p"`)
	_, err := s.Click(s.ctx(5*time.Second), &browserv1.ClickRequest{Target: &browserv1.Target{Position: &browserv1.Position{X: 5000, Y: 70}}})
	s.fails(err, fault.ElementNotFound, "")
}

func TestRefs(t *testing.T) {
	s := stage(t, `<button id=a onclick="log.push('a')">Alpha</button><button id=b onclick="log.push('b')">Beta</button>`)
	r1 := s.snap(&browserv1.SnapshotRequest{})
	a, b := s.ref(r1, "button", "Alpha"), s.ref(r1, "button", "Beta")
	s.tab.js(t, "document.body.prepend(Object.assign(document.createElement('button'),{textContent:'New'}));a.replaceWith(a.cloneNode(true))")
	r2 := s.snap(&browserv1.SnapshotRequest{})
	if got := s.ref(r2, "button", "Beta"); got != b {
		t.Errorf("Beta was %s, is %s", b, got)
	}
	alpha := s.ref(r2, "button", "Alpha")
	if alpha == a {
		t.Error("another element got the same ref")
	}
	began := time.Now()
	_, err := s.Click(s.ctx(5*time.Second), &browserv1.ClickRequest{Target: byRef(a)})
	e := s.fails(err, fault.ElementNotFound, "stale_ref")
	if c := fmt.Sprint(e.Details["candidates"]); !strings.Contains(c, alpha) {
		t.Errorf("candidates %s, want %s", c, alpha)
	}
	s.show(`<button onclick="log.push('other')">Alpha</button>`)
	for _, ref := range []string{alpha, b, "d9999e1", "no-such-ref", ""} {
		_, err := s.Click(s.ctx(5*time.Second), &browserv1.ClickRequest{Target: byRef(ref)})
		s.fails(err, fault.ElementNotFound, "stale_ref")
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("stale refs took %v", took)
	}
	s.want("log.length", "0")
	r3 := s.snap(&browserv1.SnapshotRequest{})
	if s.ref(r3, "button", "Alpha") == alpha {
		t.Error("a ref was used twice")
	}
}

func TestHover(t *testing.T) {
	s := stage(t, `<style>#m{display:none}#t:hover #m{display:block}</style><div id=t onmouseenter="log.push('enter')"><span>Reports</span><div id=m><button onclick="log.push('y')">Yearly</button></div></div>`)
	for range 2 {
		if _, err := s.Hover(s.ctx(5*time.Second), &browserv1.HoverRequest{Target: words("Reports")}); err != nil {
			t.Fatal(err)
		}
	}
	s.click(words("Yearly"))
	s.want("log.join()", `"enter,y"`)
}

func TestClickThatNavigatesAndOneThatAsks(t *testing.T) {
	s := stage(t, `<a href="/other.html">Go</a>`)
	s.click(words("Go"))
	s = stage(t, `<button onclick="alert('hello')">Ask</button>`)
	ctx, cancel := newCause(s.ctx(5 * time.Second))
	s.tab.onDialog(func() { cancel(errDialog) })
	_, err := s.Click(ctx, &browserv1.ClickRequest{Target: words("Ask")})
	if !isDialog(err) || !inpage.Acted(err) {
		t.Errorf("got %v, acted %v", err, inpage.Acted(err))
	}
	must(t, browser.send(t.Context(), s.tab.session, "Page.handleJavaScriptDialog", map[string]any{"accept": true}, nil))
}
