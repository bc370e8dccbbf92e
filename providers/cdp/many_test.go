package cdp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/wire"
)

const visitorsPage = `<!doctype html><meta charset=utf-8><title>Counter</title><h1>Counter</h1>
<label>Name <input id=n></label><button id=b>Greet</button><select aria-label=Size><option value=s>Small<option value=l>Large</select>
<p id=out></p><button onclick="window.open('/other')">Pop up</button>
<script>let k=0;b.onclick=()=>{k++;setTimeout(()=>out.textContent='Hello '+n.value+' '+k,20)}</script>`

// visitorSteps is what each session does: a method, its params, and what the answer must hold. $ME is the visitor's name,
// $BASE the site, $(Name) the ref of what is called so in the last snapshot, $(new) the page that the last step opened.
var visitorSteps = [][3]string{
	{"page.open", `"url":"$BASE/?$ME"`, `"title":"Counter"`},
	{"page.snapshot", ``, `"name":"Greet"`},
	{"cookie.set", `"cookies":[{"name":"who","value":"$ME","domain":"127.0.0.1","path":"/"}]`, ``},
	{"storage.set", `"area":"local","items":{"who":"$ME"}`, ``},
	{"page.type", `"element_ref":"$(Name)","text":"$ME"`, `"value":"$ME"`},
	{"page.click", `"element_ref":"$(Greet)"`, `"clicked":true`},
	{"page.wait", `"text_present":"Hello $ME 1"`, `"satisfied":true`},
	{"page.select", `"element_ref":"$(Size)","values":["l"]`, `"selected":["l"]`},
	{"page.press", `"element_ref":"$(Name)","key":"Control+a"`, `"pressed":`},
	{"page.eval", `"expression":"document.cookie+' '+localStorage.who+' '+document.getElementById('out').textContent"`, `"value":"who=$ME $ME Hello $ME 1"`},
	{"cookie.list", ``, `"value":"$ME"`},
	{"storage.get", `"area":"local"`, `"items":{"who":"$ME"}`},
	{"page.click", `"element_ref":"$(Pop up)"`, `"new_page_ids":["`},
	{"tab.new", `"url":"$BASE/other?own-$ME"`, `"page_id":"`},
	{"tab.list", ``, `own-$ME`},
	{"tab.close", `"page_id":"$(new)"`, ``},
	{"network.list", ``, `$BASE/?$ME`},
	{"console.list", ``, `"messages":[]`},
	{"page.screenshot", `"inline":false`, `"image_ref":"`},
	{"session.close", ``, `"closed":true`},
}

// Sixty-four sessions at once on one Chromium, each twenty steps: every step gives what it should, nobody is told anything
// of another, and when all are closed nothing of them is left.
func TestManySessions(t *testing.T) {
	const sessions = 64
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": visitorsPage, "/other": "<title>Other</title><p>Another page"})
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for i := range sessions {
		group.Go(func() error {
			v := &visitor{rig: r, name: fmt.Sprintf("visitor-%d-", i), base: base, refs: map[string]string{}}
			if err := v.visit(ctx); err != nil {
				return fmt.Errorf("%s%s: %w", v.name, v.at, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d sessions of %d steps took %v", sessions, len(visitorSteps), time.Since(began).Round(time.Millisecond))
	last := r.session("last")
	if tabs := do[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: last.id}).GetTabs(); len(tabs) != 1 {
		t.Errorf("the next session sees tabs %v", tabs)
	}
	var targets struct {
		TargetInfos []struct{ Type, URL, BrowserContextID string }
	}
	body, err := wire.ToStruct(map[string]any{"method": "Target.getTargets", "target": "browser"})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.srv.Custom(t.Context(), &browserv1.CustomRequest{SessionId: last.id, Method: "cdp.send", Params: body})
	if err != nil {
		t.Fatal(err)
	}
	if err := reread(resp.GetResult(), &targets); err != nil {
		t.Fatal(err)
	}
	for _, info := range targets.TargetInfos {
		if strings.HasPrefix(info.URL, base) {
			t.Errorf("a page of a closed session is left: %v", info)
		}
	}
	main := 0
	for _, pid := range processesOf(r.run) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(line), "--remote-debugging-pipe") && !strings.Contains(string(line), "--type=") {
			main++
		}
	}
	if main != 1 {
		t.Errorf("%d browsers served the sessions", main)
	}
}

// visitor is one session's script under way.
type visitor struct {
	*rig
	name, base, id, at string
	refs               map[string]string
}

var (
	visitorNames = regexp.MustCompile(`visitor-\d+-`)
	visitorHoles = regexp.MustCompile(`\$\(([^)]*)\)`)
)

func (v *visitor) visit(ctx context.Context) error {
	v.at = "session.ensure"
	said, err := v.call(ctx, "session.ensure", `"client_session_id":"$ME"`)
	if err != nil {
		return err
	}
	v.id = said["session_id"].(string)
	for i, s := range visitorSteps {
		v.at = fmt.Sprintf("step %d, %s", i+1, s[0])
		params := fmt.Sprintf(`"session_id":%q`, v.id)
		if s[1] != "" {
			params += "," + s[1]
		}
		said, err := v.call(ctx, s[0], params)
		if err != nil {
			return err
		}
		data, _ := json.Marshal(said)
		if want := v.fill(s[2]); !strings.Contains(string(data), want) {
			return fmt.Errorf("the answer %s holds no %s", data, want)
		}
	}
	return nil
}

// fill puts what is known into the holes of a step.
func (v *visitor) fill(s string) string {
	s = visitorHoles.ReplaceAllStringFunc(s, func(hole string) string { return v.refs[hole[2:len(hole)-1]] })
	return strings.NewReplacer("$ME", v.name, "$BASE", v.base).Replace(s)
}

// call makes a call by its name and the inside of its JSON, and remembers refs and new pages. An answer that names another
// visitor is an error.
func (v *visitor) call(ctx context.Context, method, params string) (map[string]any, error) {
	m, ok := catalog.Lookup(method)
	if !ok {
		return nil, fmt.Errorf("there is no method %s", method)
	}
	req := m.NewRequest()
	if method != "session.close" {
		params += `,"timeout_ms":120000` // All of them share a small machine.
	}
	if err := wire.Unmarshal([]byte("{"+v.fill(params)+"}"), req); err != nil {
		return nil, err
	}
	resp, err := v.srv.Call(ctx, m, req)
	if err != nil {
		return nil, err
	}
	data, err := wire.Marshal(resp)
	if err != nil {
		return nil, err
	}
	for _, name := range visitorNames.FindAllString(string(data), -1) {
		if name != v.name {
			return nil, fmt.Errorf("the answer names %s: %s", name, data)
		}
	}
	var said map[string]any
	if err := json.Unmarshal(data, &said); err != nil {
		return nil, err
	}
	switch r := resp.(type) {
	case *browserv1.SnapshotResponse:
		for _, e := range r.GetElements() {
			v.refs[e.GetName()] = e.GetElementRef()
		}
	case *browserv1.NewTabResponse:
		v.refs["new"] = r.GetPageId()
	}
	return said, nil
}
