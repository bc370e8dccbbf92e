package inpage_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// acting lists what can be acted on, as "role name".
func acting(r *browserv1.SnapshotResponse) []string {
	out := []string{}
	for _, e := range r.GetElements() {
		out = append(out, e.GetRole()+" "+e.GetName())
	}
	return out
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// A control keeps its name and its handle however little of the page is asked for.
func TestControlsStayInEveryForm(t *testing.T) {
	s := stage(t, `<div><div><button onclick="log.push('create')"><svg aria-hidden=true width=9 height=9><title>plus</title><path d="M0 0h9"/></svg><span><span>Create invoice</span></span></button></div>
<p>`+strings.Repeat("words ", 200)+`</p><a href="#p"><svg aria-hidden=true width=9 height=9></svg> Price list</a></div>
<div id=gear style="cursor:pointer;width:24px;height:24px" onclick="log.push('gear')"><svg width=20 height=20><circle r=9 /></svg></div>
<style>label input{position:absolute;opacity:0;width:0;height:0}.gone input{display:none}</style>
<label class=card><input type=radio name=r checked> Standard</label><label class="card gone"><input type=radio name=r onchange="log.push('exp')"> Express</label>
<label class="card gone"><input type=checkbox onchange="log.push('gift')"> Gift wrap</label>`)
	want := []string{"button Create invoice", "link Price list", "generic ", "radio Standard", "radio Express", "checkbox Gift wrap"}
	forty := int32(40)
	for _, form := range []*browserv1.SnapshotRequest{{}, {InteractiveOnly: true}, {MaxNodes: &forty}} {
		same(t, fmt.Sprint(form), acting(s.snap(form)), want)
	}
	outline := s.snap(&browserv1.SnapshotRequest{Format: browserv1.SnapshotFormat_SNAPSHOT_FORMAT_OUTLINE.Enum()}).GetOutline()
	for _, line := range []string{`- button "Create invoice" [ref=`, `- link "Price list" [ref=`, `- radio "Standard" [checked] [ref=`, `- checkbox "Gift wrap" [ref=`} {
		if strings.Count(outline, line) != 1 {
			t.Errorf("%q stands %d times in\n%s", line, strings.Count(outline, line), outline)
		}
	}
	r := s.snap(&browserv1.SnapshotRequest{})
	for _, e := range r.GetElements() {
		if e.GetName() != "Standard" && e.GetName() != "Price list" {
			s.click(byRef(e.GetElementRef()))
		}
	}
	s.want("log.join()", `"create,gear,exp,gift"`)
	after := s.snap(&browserv1.SnapshotRequest{})
	if s.ref(after, "radio", "Express") != s.ref(r, "radio", "Express") {
		t.Error("the radio has another ref")
	}
	for _, n := range after.GetSnapshot().GetNodes() {
		if n.GetName() == "Express" && n.GetChecked() != browserv1.Tristate_TRISTATE_TRUE || n.GetName() == "Standard" && n.GetChecked() != browserv1.Tristate_TRISTATE_FALSE {
			t.Errorf("%v", n)
		}
	}
}

// Elements that are called the same have refs of their own, which mean the place in the page and not the words.
func TestRefsOfTheSameName(t *testing.T) {
	s := stage(t, `<ul>`+many(3, `<li>Row <button onclick="log.push(%[1]d)">Delete</button><button onclick="log.push('i'+%[1]d)"><svg width=9 height=9></svg></button></li>`)+`</ul>`)
	r := s.snap(&browserv1.SnapshotRequest{})
	var refs, named []string
	for _, e := range r.GetElements() {
		if refs = append(refs, e.GetElementRef()); e.GetName() == "Delete" {
			named = append(named, e.GetElementRef())
		}
	}
	if len(refs) != 6 || len(named) != 3 {
		t.Fatalf("%v", r.GetElements())
	}
	for _, i := range []int{0, 2, 4, 5, 1} {
		s.click(byRef(refs[i]))
	}
	s.want("log.join()", `"0,1,2,i2,i0"`)
	_, err := s.Click(s.ctx(5*time.Second), &browserv1.ClickRequest{Target: words("Delete")})
	said := fmt.Sprint(s.fails(err, fault.InvalidRequest, "ambiguous_target").Details)
	for _, ref := range named {
		if !strings.Contains(said, ref) {
			t.Errorf("the candidates do not name %s: %s", ref, said)
		}
	}
}

// A list that uses its rows again shows new words in old elements: a ref does what the last snapshot says of it.
func TestRecycledRows(t *testing.T) {
	s := stage(t, `<div id=vp role=list aria-label=Messages style="height:140px;overflow:auto"><div style="height:9000px;position:relative">`+
		many(7, `<button style="position:absolute;top:0;height:40px" onclick="log.push(this.textContent)">x</button>`)+`</div></div>
<script>const draw=()=>{const first=Math.floor(vp.scrollTop/40);[...vp.querySelectorAll('button')].forEach((b,i)=>{b.textContent='Open '+(first+i);b.style.top=(first+i)*40+'px'})};vp.onscroll=draw;draw()</script>`)
	first := s.snap(&browserv1.SnapshotRequest{})
	old := s.ref(first, "button", "Open 0")
	list := s.ref(first, "list", "Messages")
	if _, err := s.Scroll(s.ctx(5*time.Second), &browserv1.ScrollRequest{Target: byRef(list), Dy: new(4000.0)}); err != nil {
		t.Fatal(err)
	}
	s.soon("vp.querySelector('button').textContent", `"Open 100"`)
	second := s.snap(&browserv1.SnapshotRequest{})
	if now := s.ref(second, "button", "Open 100"); now != old {
		t.Errorf("the element was %s, is %s", old, now)
	}
	s.click(byRef(old))
	s.click(byRef(s.ref(second, "button", "Open 102")))
	s.want("log.join()", `"Open 100,Open 102"`)
}

// What is put elsewhere in the page when it opens is read where it is, and its refs end with it.
func TestPortal(t *testing.T) {
	s := stage(t, `<button id=c role=combobox aria-haspopup=listbox aria-expanded=false>Country <span id=v>None</span></button>
<script>c.onclick=()=>{c.setAttribute('aria-expanded','true');setTimeout(()=>{const l=document.createElement('ul');l.setAttribute('role','listbox');l.setAttribute('aria-label','Country');
for(const n of ['Austria','Brazil']){const o=document.createElement('li');o.setAttribute('role','option');o.textContent=n;o.onclick=()=>{v.textContent=n;l.remove();c.setAttribute('aria-expanded','false')};l.append(o)}
document.body.append(l)},50)}</script>`)
	s.click(words("None"))
	if w, err := s.Wait(s.ctx(5*time.Second), &browserv1.WaitRequest{TextPresent: new("Brazil")}, nil); err != nil || !w.Satisfied {
		t.Fatalf("%v %v", w, err)
	}
	open := s.snap(&browserv1.SnapshotRequest{})
	s.ref(open, "listbox", "Country")
	brazil := s.ref(open, "option", "Brazil")
	for _, n := range open.GetSnapshot().GetNodes() {
		if n.GetRole() == "combobox" && (n.Expanded == nil || !n.GetExpanded()) {
			t.Errorf("it is not expanded: %v", n)
		}
	}
	s.click(byRef(brazil))
	s.want("v.textContent", `"Brazil"`)
	_, err := s.Click(s.ctx(5*time.Second), &browserv1.ClickRequest{Target: byRef(brazil)})
	s.fails(err, fault.ElementNotFound, "stale_ref")
}

// Broken letters in names, texts, values and titles come out as valid UTF-8, in every part of the answer.
func TestBrokenLetters(t *testing.T) {
	s := stage(t, `<title>x</title><p id=p>x</p><button id=b>x</button><input id=i aria-label=x><a id=a href="#">x</a>
<script>const bad='A\ud800B\udc00C \ud83d\ude00';document.title=bad;p.textContent=bad;b.textContent=bad;i.value=bad;a.setAttribute('aria-label',bad+'!');a.id=bad</script>`)
	r := s.snap(&browserv1.SnapshotRequest{IncludeOutline: new(true), IncludeHtml: new(true), IncludeDom: new(true)})
	const fine = "A\ufffdB\ufffdC 😀"
	if r.GetTitle() != fine || !strings.Contains(r.GetText(), fine) || !strings.Contains(r.GetOutline(), fine) {
		t.Errorf("title %q, text %q, outline %q", r.GetTitle(), r.GetText(), r.GetOutline())
	}
	s.ref(r, "button", fine)
	s.ref(r, "link", fine+"!")
	data, err := json.Marshal(r)
	if err != nil || !utf8.Valid(data) {
		t.Errorf("not UTF-8: %v", err)
	}
	s.click(words(fine))
}

// Circles in what a page says of itself end: what owns itself, what labels itself, labels that name each other.
func TestCircles(t *testing.T) {
	s := stage(t, `<div id=a aria-owns="b"><p>In a</p></div><div id=b aria-owns="c a"><p>In b</p></div><div id=c aria-owns="a b c"><button aria-labelledby="l1">x</button></div>
<span id=l1 aria-labelledby="l2">One</span><span id=l2 aria-labelledby="l1">Two</span><button id=self aria-labelledby="self other" aria-label="Self">y</button><span id=other>and other</span>`)
	r := s.snap(&browserv1.SnapshotRequest{})
	for _, text := range []string{"In a", "In b"} {
		n := 0
		for _, node := range r.GetSnapshot().GetNodes() {
			if node.GetText() == text || node.GetName() == text {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%q is said %d times", text, n)
		}
	}
	same(t, "controls", acting(r), []string{"button One", "button Self and other"})
}

// A page that is nested as deep as a browser can lay out is read to its bottom and acted on there. (With 3,000 elements
// inside one another Chromium's own layout ends the renderer.)
func TestDeepNesting(t *testing.T) {
	s := stage(t, `<main></main><script>const nest=(tag,n,html)=>{let top=document.createElement(tag),c=top;for(let i=1;i<n;i++){const d=document.createElement(tag);if(tag=='section')d.ariaLabel='s';c.append(d);c=d}c.innerHTML=html;return top};
const main=document.querySelector('main');main.append(nest('div',2000,'<button onclick="log.push(1)">Bottom</button>'),nest('section',101,'<a href="#l">Low</a>'))</script>`)
	r := s.snap(&browserv1.SnapshotRequest{IncludeOutline: new(true)})
	s.click(byRef(s.ref(r, "button", "Bottom")))
	s.want("log.join()", `"1"`)
	if !strings.Contains(r.GetOutline(), "\n"+strings.Repeat("  ", 101)+`- link "Low"`) {
		t.Errorf("the link is not at its depth in the outline")
	}
}

// In the back-forward cache a document sleeps with its elements: its refs are stale while another is shown, and live again
// when it comes back. One that is loaded anew instead gives new refs.
func TestRefsAcrossTheBackForwardCache(t *testing.T) {
	s := stage(t, `<title>First</title><script>born=Math.random()</script><button onclick="log.push('draft')">Delete</button>`)
	born := s.tab.js(t, "born")
	old := s.ref(s.snap(&browserv1.SnapshotRequest{}), "button", "Delete")
	s.show(`<title>Second</title><button onclick="log.push('account')">Delete</button>`)
	between := s.ref(s.snap(&browserv1.SnapshotRequest{}), "button", "Delete")
	_, err := s.Click(s.ctx(5*time.Second), &browserv1.ClickRequest{Target: byRef(old)})
	s.fails(err, fault.ElementNotFound, "stale_ref")
	s.want("log.length", "0")
	s.tab.js(t, "history.back()")
	if w, err := s.Wait(s.ctx(5*time.Second), &browserv1.WaitRequest{UrlMatches: new("**"), TextPresent: new("Delete")}, nil); err != nil || !w.Satisfied {
		t.Fatalf("%v %v", w, err)
	}
	s.soon("document.title", `"First"`)
	kept := s.tab.js(t, "born") == born
	now := s.ref(s.snap(&browserv1.SnapshotRequest{}), "button", "Delete")
	if kept != (now == old) || now == between {
		t.Errorf("kept: %v; the ref was %s, is %s; the other document's was %s", kept, old, now, between)
	}
	_, err = s.Click(s.ctx(5*time.Second), &browserv1.ClickRequest{Target: byRef(old)})
	if kept != (err == nil) {
		t.Errorf("kept: %v; the old ref said %v", kept, err)
	}
	_, err = s.Click(s.ctx(5*time.Second), &browserv1.ClickRequest{Target: byRef(between)})
	s.fails(err, fault.ElementNotFound, "stale_ref")
	if kept {
		s.want("log.join()", `"draft"`)
	}
	t.Logf("the document was kept: %v", kept)
}
