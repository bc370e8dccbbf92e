package cdp

import (
	"context"
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// What a page requested and said can be listed, filtered, and comes as it happened.
func TestObserve(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": `<title>O</title><script>console.log('hello', 5, {a:1}); console.warn('careful'); console.debug('small');
		fetch('/go?to=/data').then(()=>fetch('/missing',{method:'POST'})).then(()=>fetch('http://127.0.0.1:9/')).catch(()=>{document.title='done'}); setTimeout(()=>{throw new Error('lost')})</script>`, "/data": "x"})
	u := r.session("observe")
	u.open(base + "/")
	for u.eval("document.title") != `"done"` {
	}
	list := func(q *browserv1.ListRequestsRequest) []*browserv1.NetworkRequest {
		q.SessionId = u.id
		return do[*browserv1.ListRequestsResponse](r, q).GetRequests()
	}
	all := list(&browserv1.ListRequestsRequest{ResourceTypes: []string{"document", "fetch"}})
	var told []string
	for _, q := range all {
		told = append(told, q.GetMethod()+" "+q.GetUrl()[len("http://127.0.0.1:"):]+" "+itoa(int(q.GetStatus())))
	}
	if len(all) != 5 || all[1].GetStatus() != 302 || all[2].GetRedirectedFrom() != all[1].GetRequestId() || all[3].GetStatus() != 404 || !all[4].GetFailed() || all[4].GetErrorText() == "" {
		t.Errorf("the requests are %v", told)
	}
	if got := list(&browserv1.ListRequestsRequest{Methods: []string{"post"}}); len(got) != 1 || got[0].GetStatus() != 404 {
		t.Errorf("by method: %v", got)
	}
	if got := list(&browserv1.ListRequestsRequest{Failed: ptr(true)}); len(got) != 1 {
		t.Errorf("those that failed: %v", got)
	}
	if got := list(&browserv1.ListRequestsRequest{Limit: ptr(int32(2))}); len(got) != 2 {
		t.Errorf("with a limit: %v", got)
	}
	messages := func(q *browserv1.ListMessagesRequest) []*browserv1.ConsoleMessage {
		q.SessionId = u.id
		return do[*browserv1.ListMessagesResponse](r, q).GetMessages()
	}
	said := messages(&browserv1.ListMessagesRequest{})
	if len(said) != 4 || said[0].GetText() != "hello 5 {a: 1}" || said[1].GetLevel() != browserv1.ConsoleLevel_CONSOLE_LEVEL_WARN || said[0].GetLine() != 1 || said[3].GetSource() != browserv1.ConsoleSource_CONSOLE_SOURCE_EXCEPTION {
		t.Errorf("the messages are %v", said)
	}
	if got := messages(&browserv1.ListMessagesRequest{Levels: []browserv1.ConsoleLevel{browserv1.ConsoleLevel_CONSOLE_LEVEL_DEBUG}}); len(got) != 1 || got[0].GetText() != "small" {
		t.Errorf("by level: %v", got)
	}
	if got := messages(&browserv1.ListMessagesRequest{Contains: ptr("lost"), Since: said[0].GetTimestamp()}); len(got) != 1 {
		t.Errorf("by text: %v", got)
	}
}

// Cookies and web storage belong to the session and the page's origin.
func TestStorageAndCookies(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": "<title>S</title>"})
	u := r.session("storage")
	u.open(base + "/")
	local, session := browserv1.StorageArea_STORAGE_AREA_LOCAL, browserv1.StorageArea_STORAGE_AREA_SESSION
	do[*browserv1.SetStorageResponse](r, &browserv1.SetStorageRequest{SessionId: u.id, Area: local, Items: map[string]string{"a": "1", "b": "zwei ü", "__proto__": "p"}})
	if got := do[*browserv1.GetStorageResponse](r, &browserv1.GetStorageRequest{SessionId: u.id, Area: local, Keys: []string{"b", "nope"}}).GetItems(); len(got) != 1 || got["b"] != "zwei ü" {
		t.Errorf("the items are %v", got)
	}
	if got := u.eval("localStorage.length+sessionStorage.length"); got != "3" {
		t.Errorf("the page counts %s", got)
	}
	do[*browserv1.ClearStorageResponse](r, &browserv1.ClearStorageRequest{SessionId: u.id, Area: local, Keys: []string{"a"}})
	do[*browserv1.ClearStorageResponse](r, &browserv1.ClearStorageRequest{SessionId: u.id, Area: session})
	if got := do[*browserv1.GetStorageResponse](r, &browserv1.GetStorageRequest{SessionId: u.id, Area: local}).GetItems(); len(got) != 2 {
		t.Errorf("what is left is %v", got)
	}
	set := do[*browserv1.SetCookiesResponse](r, &browserv1.SetCookiesRequest{SessionId: u.id, Cookies: []*browserv1.Cookie{
		{Name: "plain", Value: "1"}, {Name: "hidden", Value: "2", HttpOnly: true, Path: "/deep", SameSite: browserv1.SameSite_SAME_SITE_STRICT.Enum()}, {Name: "wide", Value: "3", Domain: ".example.test"},
	}})
	if len(set.GetCookies()) != 3 {
		t.Errorf("set said %v", set.GetCookies())
	}
	if got := u.eval("document.cookie"); got != `"plain=1"` {
		t.Errorf("the page sees %s", got)
	}
	names := func(urls ...string) (out []string) {
		for _, c := range do[*browserv1.ListCookiesResponse](r, &browserv1.ListCookiesRequest{SessionId: u.id, Urls: urls}).GetCookies() {
			out = append(out, c.GetName())
		}
		return out
	}
	for _, c := range []struct {
		urls []string
		want int
	}{{nil, 3}, {[]string{base + "/"}, 1}, {[]string{base + "/deep/x"}, 2}, {[]string{"http://a.example.test/"}, 1}, {[]string{"http://other.test/"}, 0}} {
		if got := names(c.urls...); len(got) != c.want {
			t.Errorf("%v: %v", c.urls, got)
		}
	}
	left := do[*browserv1.ClearCookiesResponse](r, &browserv1.ClearCookiesRequest{SessionId: u.id, Urls: []string{base + "/deep"}})
	if len(left.GetCookies()) != 1 || len(names()) != 1 {
		t.Errorf("left are %v", left.GetCookies())
	}
	do[*browserv1.ClearCookiesResponse](r, &browserv1.ClearCookiesRequest{SessionId: u.id})
	if got := names(); len(got) != 0 {
		t.Errorf("left are %v", got)
	}
	u.open("about:blank")
	fails(r, &browserv1.GetStorageRequest{SessionId: u.id, Area: local}, fault.UnsupportedTarget, "no_storage")
	fails(r, &browserv1.SetCookiesRequest{SessionId: u.id, Cookies: []*browserv1.Cookie{{Name: "x"}}}, fault.InvalidRequest, "")
}

// The protocol below is reachable by name, and not what would take the browser away.
func TestCustom(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": "<title>S</title>"})
	u := r.session("custom")
	u.open(base + "/")
	send := func(method string, params string) (map[string]any, error) {
		body := &structpb.Struct{}
		if err := body.UnmarshalJSON([]byte(params)); err != nil {
			t.Fatal(err)
		}
		resp, err := r.srv.Custom(context.Background(), &browserv1.CustomRequest{SessionId: u.id, Method: method, Params: body})
		if err != nil {
			return nil, err
		}
		data, err := resp.GetResult().MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]any{}
		return out, json.Unmarshal(data, &out)
	}
	got, err := send("cdp.send", `{"method":"Runtime.evaluate","params":{"expression":"6*7"}}`)
	if v, _ := got["result"].(map[string]any); err != nil || v["value"] != 42.0 {
		t.Errorf("evaluate gave %v, %v", got, err)
	}
	if got, err := send("cdp.send", `{"method":"Browser.getVersion","target":"browser"}`); err != nil || got["product"] == "" {
		t.Errorf("getVersion gave %v, %v", got, err)
	}
	for _, c := range []struct {
		params, reason string
		code           fault.Code
	}{
		{`{"method":"Browser.close","target":"browser"}`, "command_refused", fault.PermissionDenied},
		{`{"method":"No.such"}`, "command_failed", fault.InvalidRequest},
		{`{}`, "", fault.InvalidRequest},
		{`{"method":"Page.enable","sesion":1}`, "", fault.InvalidRequest},
	} {
		if _, err := send("cdp.send", c.params); fault.CodeOf(err) != c.code || fault.ReasonOf(err) != c.reason {
			t.Errorf("%s: %v", c.params, err)
		}
	}
	if _, err := send("cdp.events", `{"methods":["Page.*"]}`); err != nil {
		t.Error(err)
	}
	u.open(base + "/?again")
	got, err = send("cdp.events", `{"methods":["Page.*"],"wait_ms":2000,"limit":3}`)
	if list, _ := got["events"].([]any); err != nil || len(list) != 3 {
		t.Errorf("the events are %v, %v", got, err)
	}
}
