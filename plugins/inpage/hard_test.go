package inpage_test

import (
	"strings"
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// What is only not ready yet is waited for.
func TestClickWaitsUntilReady(t *testing.T) {
	for name, html := range map[string]string{
		"enabled later": `<button id=b disabled onclick="log.push('b')">B</button><script>setTimeout(()=>b.disabled=false,500)</script>`,
		"shown later":   `<button id=b style="display:none" onclick="log.push('b')">B</button><script>setTimeout(()=>b.style.display='',700)</script>`,
		"grown later":   `<button id=b style="width:0;height:0;padding:0;border:0;overflow:hidden" onclick="log.push('b')"></button><script>setTimeout(()=>b.style.width=b.style.height='40px',700)</script>`,
		"uncovered later": `<button id=b onclick="log.push('b')">B</button><div id=o style="position:fixed;inset:0;background:#fff" onclick="log.push('o')">Loading</div>
<script>setTimeout(()=>o.remove(),900)</script>`,
		"faded out later": `<button id=b onclick="log.push('b')">B</button><div id=o style="position:fixed;inset:0;background:#fff;transition:opacity 500ms" onclick="log.push('o')">Loading</div>
<script>setTimeout(()=>{o.style.opacity=0;o.style.pointerEvents='none'},300)</script>`,
	} {
		t.Run(name, func(t *testing.T) {
			s := stage(t, html)
			s.click(css("#b"))
			s.want("log.join()", `"b"`)
		})
	}
}

// A page that draws itself anew under the pointer gets the click on the new element, never on a neighbour.
func TestClickWhileThePageRedraws(t *testing.T) {
	s := stage(t, `<div id=root></div><script>let n=0;function draw(){root.innerHTML='<button class=x onclick="log.push(\'x\')">Go '+(++n)+'</button>'}
draw();root.addEventListener('mouseover',()=>{if(n<3)draw()})</script>`)
	s.click(css(".x"))
	s.want("log.join()", `"x"`)
	// The element moves away when the pointer comes near, and another takes its place: the other gets nothing.
	s = stage(t, `<body style="margin:0"><button id=a style="position:absolute;left:50px;top:50px;width:100px;height:40px" onclick="log.push('a')">A</button><button id=z style="position:absolute;left:50px;top:150px;width:100px;height:40px" onclick="log.push('z')" onmousedown="log.push('zdown')">Z</button>
<script>let once=true;a.onpointerover=()=>{if(once){once=false;a.style.top='150px';z.style.top='50px'}}</script>`)
	s.click(css("#a"))
	s.want("log.join()", `"a"`)
}

// A page that swallows events on its window is not pressed twice.
func TestClickOnAPageThatHidesEvents(t *testing.T) {
	s := stage(t, `<button id=b>B</button><script>for(const k of ['pointerdown','mousedown','pointerup','mouseup','click'])window.addEventListener(k,e=>{log.push(k);e.stopImmediatePropagation()},true)</script>`)
	if _, err := s.Click(s.ctx(5*time.Second), &browserv1.ClickRequest{Target: css("#b")}); err != nil {
		t.Fatal(err)
	}
	s.want("log.filter(k=>k==='click').length", "1")
}

func TestFramesOfEveryShape(t *testing.T) {
	inner := serve(t, doc+`<body style="margin:0"><div style="height:500px"></div><button onclick="top.postMessage('hit','*')">In</button>`)
	for name, c := range map[string]struct{ html, reason string }{
		"scaled":          {`<iframe style="transform:scale(.5);transform-origin:0 0;border:20px solid;padding:9px" width=400 height=300 src="SRC"></iframe>`, ""},
		"in a pane":       {`<div style="height:200px;overflow:auto"><div style="height:800px"></div><iframe width=300 height=150 src="SRC"></iframe><div style="height:800px"></div></div>`, ""},
		"taller than all": {`<div style="height:300px"></div><iframe width=300 height=3000 src="SRC"></iframe>`, ""},
		"in a shadow":     {`<x-f></x-f><script>document.querySelector('x-f').attachShadow({mode:'open'}).innerHTML='<iframe src="SRC"></iframe>'</script>`, ""},
		"covered":         {`<iframe width=300 height=150 src="SRC"></iframe><div id=over style="position:fixed;inset:0;background:#0003">Over</div>`, "covered"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stage(t, `<script>addEventListener('message',e=>log.push(e.data))</script>`+strings.ReplaceAll(c.html, "SRC", other(inner)))
			_, err := s.Click(s.ctx(9*time.Second), &browserv1.ClickRequest{Target: words("In")})
			if c.reason != "" {
				e := s.fails(err, fault.ElementNotActionable, c.reason)
				if !strings.Contains(e.Message, "div#over") {
					t.Errorf("message %q", e.Message)
				}
				return
			}
			must(t, err)
			s.soon("log.join()", `"hit"`)
		})
	}
}

// A frame that is replaced, and a frame that comes late, are found again.
func TestFrameThatComesLate(t *testing.T) {
	inner := other(serve(t, doc+`<button onclick="top.postMessage('late','*')">Late one</button>`))
	s := stage(t, `<script>addEventListener('message',e=>log.push(e.data));setTimeout(()=>{document.body.insertAdjacentHTML('beforeend','<iframe src="`+inner+`"></iframe>')},500)</script><p>x`)
	if w, err := s.Wait(s.ctx(6*time.Second), &browserv1.WaitRequest{TextPresent: new("Late one")}, nil); err != nil || !w.Satisfied {
		t.Errorf("%+v %v", w, err)
	}
	s.click(words("Late one"))
	r := s.snap(&browserv1.SnapshotRequest{})
	ref := s.ref(r, "button", "Late one")
	s.tab.js(t, "document.querySelector('iframe').remove()")
	_, err := s.Click(s.ctx(5*time.Second), &browserv1.ClickRequest{Target: byRef(ref)})
	s.fails(err, fault.ElementNotFound, "stale_ref")
}

func TestWaitSeesClosedRoots(t *testing.T) {
	s := stage(t, `<x-c></x-c><script>customElements.define('x-c',class extends HTMLElement{constructor(){super();const r=this.attachShadow({mode:'closed'});setTimeout(()=>r.innerHTML='<p>Ready inside</p>',300)}})</script>`)
	if w, err := s.Wait(s.ctx(5*time.Second), &browserv1.WaitRequest{TextPresent: new("Ready inside")}, nil); err != nil || !w.Satisfied {
		t.Errorf("%+v %v", w, err)
	}
	if w, err := s.Wait(s.ctx(500*time.Millisecond), &browserv1.WaitRequest{TextAbsent: new("Ready inside")}, nil); err != nil || w.Satisfied {
		t.Errorf("%+v %v", w, err)
	}
}

// The engine leaves nothing that a page could see.
func TestNoTraces(t *testing.T) {
	s := stage(t, `<button id=b>B</button><input id=i><script>const before=document.documentElement.outerHTML;let changes=0;new MutationObserver(l=>changes+=l.length).observe(document,{subtree:true,childList:true,attributes:true,characterData:true})</script>`)
	s.snap(&browserv1.SnapshotRequest{IncludeOutline: new(true)})
	s.click(words("B"))
	s.typed(css("#i"), "x", false)
	s.want("changes+'|'+typeof __drover+'|'+Object.keys(window).filter(k=>/drover/i.test(k))", `"0|undefined|"`)
}
