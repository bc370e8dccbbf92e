package inpage_test

import (
	"strings"
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

func TestTypeText(t *testing.T) {
	s := stage(t, `<main><label>City <input id=q></label><textarea id=t aria-label=Bio></textarea><input id=m maxlength=4><input id=e type=email value="a@b"><input id=n type=number value=1>
<input id=p type=password><input id=h value="old">
<script>for(const el of document.querySelectorAll('input,textarea'))for(const k of ['keydown','input','change'])el.addEventListener(k,e=>log.push(k+(e.key||'')+e.isTrusted))</script>`)
	for _, c := range []struct {
		sel, text string
		replace   bool
		want      string
	}{
		{"#q", "ąčiū Čačak ñ 狛江市 👩‍👩‍👧‍👦 é 𠀀", false, "ąčiū Čačak ñ 狛江市 👩‍👩‍👧‍👦 é 𠀀"},
		{"#q", "!", false, "ąčiū Čačak ñ 狛江市 👩‍👩‍👧‍👦 é 𠀀!"},
		{"#q", "two\nlines", true, "twolines"},
		{"#q", "", true, ""},
		{"#t", "line1\nline2 ½", false, "line1\nline2 ½"},
		{"#m", "abcdef", false, "abcd"},
		{"#e", ".org", false, "a@b.org"},
		{"#n", "7", false, "17"},
		{"#n", "7", true, "7"},
		{"#p", "secret", false, "<nil>"},
		{"#h", " new", false, "old new"},
	} {
		if got := s.typed(css(c.sel), c.text, c.replace); got != c.want {
			t.Errorf("%s after %q: %q, want %q", c.sel, c.text, got, c.want)
		}
	}
	s.want("p.value", `"secret"`)
	if log := s.tab.js(t, "log.join()"); strings.Contains(log, "keydownShift") || strings.Contains(log, "inputfalse") || !strings.Contains(log, "inputtrue") {
		t.Errorf("events %s", log)
	}
	if got := s.typed(words("City"), "by label", true); got != "by label" {
		t.Errorf("by label: %q", got)
	}
	if got := s.typed(nil, "+", false); got != "by label+" {
		t.Errorf("focused: %q", got)
	}
}

func TestTypeSlowly(t *testing.T) {
	s := stage(t, `<input id=q><script>for(const k of ['keydown','keypress','keyup','input'])q.addEventListener(k,e=>log.push(k+(e.key||e.data)))</script>`)
	delay := int32(5)
	got, err := s.Type(s.ctx(5*time.Second), &browserv1.TypeRequest{Target: css("#q"), Text: "aB é👍🏽", DelayMs: &delay})
	if err != nil || got.Value == nil || *got.Value != "aB é👍🏽" {
		t.Fatalf("%v %v", got.Value, err)
	}
	s.want("log.join()", `"keydowna,keypressa,inputa,keyupa,keydownB,keypressB,inputB,keyupB,keydown ,keypress ,input ,keyup ,inputé,input👍🏽"`)
}

func TestTypeRefusals(t *testing.T) {
	s := stage(t, `<main><input id=ro readonly value=fixed><input id=off disabled><input id=c type=checkbox><input id=f type=file><select id=s><option>1</select><p id=p>text</p><input id=hid style="display:none">`)
	for _, c := range []struct {
		sel    string
		code   fault.Code
		reason string
	}{
		{"#ro", fault.ElementNotActionable, "readonly"},
		{"#off", fault.ElementNotActionable, "disabled"},
		{"#hid", fault.ElementNotActionable, "not_visible"},
		{"#c", fault.UnsupportedTarget, ""},
		{"#f", fault.UnsupportedTarget, ""},
		{"#s", fault.UnsupportedTarget, ""},
		{"#p", fault.ElementNotActionable, "not_editable"},
		{"#none", fault.ElementNotFound, ""},
	} {
		_, err := s.Type(s.ctx(4*time.Second), &browserv1.TypeRequest{Target: css(c.sel), Text: "x"})
		s.fails(err, c.code, c.reason)
	}
	s.want("ro.value+off.value", `"fixed"`)
}

func TestTypePicked(t *testing.T) {
	s := stage(t, `<main><input id=d type=date><input id=t type=time><input id=dl type=datetime-local><input id=mo type=month><input id=w type=week>
<input id=r type=range min=0 max=100 step=10 value=20><input id=c type=color value="#000000">
<script>for(const el of document.querySelectorAll('input'))for(const k of ['input','change'])el.addEventListener(k,e=>log.push(el.id+k+el.value))</script>`)
	for _, c := range [][3]string{
		{"#d", "2031-02-09", "2031-02-09"},
		{"#t", "18:45", "18:45"},
		{"#dl", "2031-02-09T18:45", "2031-02-09T18:45"},
		{"#mo", "2031-02", "2031-02"},
		{"#w", "2031-W06", "2031-W06"},
		{"#r", "70", "70"},
		{"#c", "#12AB9f", "#12ab9f"},
	} {
		if got := s.typed(css(c[0]), c[1], true); got != c[2] {
			t.Errorf("%s: %q, want %q", c[0], got, c[2])
		}
	}
	for _, sign := range []string{"dinput2031-02-09", "dchange2031-02-09", "rchange70", "cchange#12ab9f"} {
		if log := s.tab.js(t, "log.join()"); !strings.Contains(log, sign) {
			t.Errorf("%s is not in %s", sign, log)
		}
	}
	s.tab.js(t, "log.length=0")
	for sel, text := range map[string]string{"#d": "2031-02-31", "#t": "25:00", "#c": "red", "#r": "loud", "#mo": "2031"} {
		_, err := s.Type(s.ctx(4*time.Second), &browserv1.TypeRequest{Target: css(sel), Text: text, Replace: true})
		s.fails(err, fault.InvalidRequest, "")
	}
	s.want("log.join()+d.value+t.value+c.value+r.value", `"2031-02-0918:45#12ab9f70"`)
	if got := s.typed(css("#r"), "73", true); got != "70" {
		t.Errorf("73 on a step of 10: %q", got)
	}
}

const modelEditor = `<div id=ed contenteditable role=textbox aria-label=Body style="min-height:60px;white-space:pre-wrap"></div><script>
let model='',busy=false;function render(){ed.textContent=model;if(ed.firstChild)getSelection().collapse(ed.firstChild,model.length);mo.takeRecords()}
const mo=new MutationObserver(()=>{if(ed.textContent!==model)render()});mo.observe(ed,{childList:true,characterData:true,subtree:true});
ed.addEventListener('beforeinput',e=>{e.preventDefault();const all=model&&getSelection().toString().length>=model.length;if(all)model='';
if(e.inputType==='insertText')model+=e.data;else if(/insertParagraph|insertLineBreak/.test(e.inputType))model+='\n';else if(/^delete/.test(e.inputType)&&!all)model=model.slice(0,-1);render()})</script>`

func TestTypeEditors(t *testing.T) {
	s := stage(t, modelEditor)
	s.typed(css("#ed"), "Hello team", false)
	s.want("model", `"Hello team"`)
	if got := s.typed(css("#ed"), " again", false); got != "Hello team again" {
		t.Errorf("value %q", got)
	}
	if got := s.typed(css("#ed"), "Second\nthird", true); got != "Second\nthird" {
		t.Errorf("value %q", got)
	}
	s.want("model", `"Second\nthird"`)
	s.typed(css("#ed"), "", true)
	s.want("model", `""`)

	s = stage(t, `<div id=ed contenteditable><p>One <b>bold</b></p><p id=last>Two</p></div>`)
	if got := s.typed(css("#last"), " more", false); got != "One bold\n\nTwo more" {
		t.Errorf("value %q", got)
	}
	if got := s.typed(css("#ed"), "New\ntext", true); got != "New\ntext" {
		t.Errorf("value %q", got)
	}
}

func TestTypeControlled(t *testing.T) {
	// Like React: the page keeps the value itself, and writes it back when it did not hear of a change.
	s := stage(t, `<input id=q><script>let state='';const set=Object.getOwnPropertyDescriptor(HTMLInputElement.prototype,'value').set;
q.addEventListener('input',()=>{state=q.value.toUpperCase();queueMicrotask(()=>set.call(q,state))});setInterval(()=>{if(q.value!==state)set.call(q,state)},10)</script>`)
	if got := s.typed(css("#q"), "abc", false); got != "ABC" {
		t.Errorf("value %q", got)
	}
}

func TestTypeIntoHiddenEditorOfACanvas(t *testing.T) {
	s := stage(t, `<div id=term tabindex=-1 style="width:300px;height:100px;background:#222"><textarea id=in style="position:absolute;left:-9999px;width:0;height:0;opacity:0"></textarea></div>
<script>term.onclick=()=>document.getElementById('in').focus();document.getElementById('in').oninput=e=>log.push(e.data)</script>`)
	s.typed(css("#term"), "ls -l", false)
	s.want("log.join()", `"ls -l"`)
	s = stage(t, `<canvas id=c tabindex=0 style="background:#eee"></canvas><script>c.onkeydown=e=>log.push(e.key)</script>`)
	s.typed(css("#c"), "aé", false)
	s.want("log.join()", `"a,é"`)
}

func TestSubmit(t *testing.T) {
	s := stage(t, `<form id=f><input id=q><button id=b onclick="log.push('click'+event.detail)">Go</button></form><script>
for(const k of ['keydown','keypress','keyup'])q.addEventListener(k,e=>log.push(k+e.key+e.keyCode));f.onsubmit=e=>{e.preventDefault();log.push('submit:'+q.value+e.submitter.id)}</script>`)
	if _, err := s.Type(s.ctx(5*time.Second), &browserv1.TypeRequest{Target: css("#q"), Text: "tea", Submit: true}); err != nil {
		t.Fatal(err)
	}
	s.want("log.join()", `"keydownEnter13,keypressEnter13,click0,submit:teab,keyupEnter13"`)
}

func TestPress(t *testing.T) {
	s := stage(t, `<main><input id=q value="abc"><button id=b onclick="log.push('clicked')">B</button><script>
for(const k of ['keydown','keyup'])addEventListener(k,e=>log.push(k[3]+e.key+'/'+e.code+'/'+e.keyCode+(e.ctrlKey?'C':'')+(e.shiftKey?'S':'')+e.location))</script>`)
	press := func(target *browserv1.Target, key string, n int32) string {
		s.tab.js(t, "log.length=0")
		if _, err := s.Press(s.ctx(4*time.Second), &browserv1.PressRequest{Target: target, Key: key, Repeat: &n}); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return strings.Trim(s.tab.js(t, "log.join(' ')"), `"`)
	}
	for _, c := range []struct {
		target    *browserv1.Target
		key, want string
	}{
		{css("#q"), "End", "dEnd/End/350 uEnd/End/350"},
		{nil, "Backspace", "dBackspace/Backspace/80 uBackspace/Backspace/80"},
		{nil, "Control+Shift+z", "dControl/ControlLeft/17C1 dShift/ShiftLeft/16CS1 dZ/KeyZ/90CS0 uZ/KeyZ/90CS0 uShift/ShiftLeft/16C1 uControl/ControlLeft/171"},
		{nil, "x", "dx/KeyX/880 ux/KeyX/880"},
		{nil, "+", "d+/Equal/1870 u+/Equal/1870"},
		{nil, "F2", "dF2/F2/1130 uF2/F2/1130"},
		{css("#b"), "Space", "d /Space/320 u /Space/320 clicked"},
	} {
		got := press(c.target, c.key, 1)
		if c.key == "Space" {
			got = strings.Replace(got, "clicked u", "u", 1)
			if !strings.Contains(got, "clicked") {
				got += " clicked"
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.key, got, c.want)
		}
	}
	s.want("q.value", `"abx+"`)
	if got := press(css("#q"), "ArrowLeft", 3); strings.Count(got, "dArrowLeft") != 3 {
		t.Errorf("repeat: %s", got)
	}
	press(css("#q"), "Control+a", 1)
	press(nil, "Delete", 1)
	s.want("q.value", `""`)
	_, err := s.Press(s.ctx(4*time.Second), &browserv1.PressRequest{Key: "Entre"})
	s.fails(err, fault.InvalidRequest, "")
	_, err = s.Press(s.ctx(4*time.Second), &browserv1.PressRequest{Key: "Foo+a"})
	s.fails(err, fault.InvalidRequest, "")
}

func TestSelect(t *testing.T) {
	s := stage(t, `<main><label>Way <select id=s><option value=x>North<option value=North>South<option value=z selected>Centre<option value=y>North<option value="">Any way<option value=off disabled>Off</select></label>
<select id=m multiple><option selected>a<option>b<option>c</select><div id=d role=combobox tabindex=0>Custom</div>
<select id=rev><option>a<option>b</select><script>for(const e of [s,m])for(const k of ['input','change'])e.addEventListener(k,()=>log.push(k+e.selectedIndex));rev.onchange=()=>{rev.value='a'}</script>`)
	sel := func(target *browserv1.Target, values, labels []string) (string, int, error) {
		got, warn, err := s.Select(s.ctx(4*time.Second), &browserv1.SelectRequest{Target: target, Values: values, Labels: labels})
		return strings.Join(got, "|"), len(warn), err
	}
	for _, c := range []struct {
		target         *browserv1.Target
		values, labels []string
		want           string
		warnings       int
	}{
		{css("#s"), []string{"North"}, nil, "North", 0},
		{words("Way"), nil, []string{"Any way"}, "", 0},
		{css("#m"), []string{"b", "c"}, nil, "b|c", 0},
		{css("#rev"), []string{"b"}, nil, "a", 1},
	} {
		if got, warn, err := sel(c.target, c.values, c.labels); err != nil || got != c.want || warn != c.warnings {
			t.Errorf("%v: %q, %d warnings, %v", c, got, warn, err)
		}
	}
	for _, c := range []struct{ values, labels []string }{
		{[]string{"East"}, nil},
		{nil, []string{"North"}},
		{[]string{"x", "z"}, nil},
		{[]string{"off"}, nil},
		{nil, []string{"north"}},
	} {
		_, _, err := sel(css("#s"), c.values, c.labels)
		s.fails(err, fault.InvalidRequest, "")
	}
	_, _, err := sel(css("#d"), []string{"a"}, nil)
	s.fails(err, fault.UnsupportedTarget, "")
	s.want("s.selectedIndex+log.join()", `"4input1,change1,input4,change4,input1,change1"`)
}
