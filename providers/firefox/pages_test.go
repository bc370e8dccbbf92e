package firefox

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Where a navigation leads is told as it is: a place in the page, a download, no document, a refused connection, a program of another
// kind, a slow page that is waited for.
func TestWhereNavigationsLead(t *testing.T) {
	person(t)
	r := newRig(t)
	base := site(t, map[string]string{
		"/": formPage, "/slow": "<title>Slow</title>", "/app": "<title>App</title><h1>Opening</h1><script>location = 'nonsense-scheme:x'</script>",
	})
	u := r.session("navigation")
	u.open(base + "/")
	for _, c := range []struct {
		url    string
		state  browserv1.NavigationState
		title  string
		status int32
	}{
		{"/#here", browserv1.NavigationState_NAVIGATION_STATE_SAME_DOCUMENT, "Form", 0},
		{"/#here", browserv1.NavigationState_NAVIGATION_STATE_SAME_DOCUMENT, "Form", 0},
		{"/file", browserv1.NavigationState_NAVIGATION_STATE_DOWNLOAD, "Form", 0},
		{"/empty", browserv1.NavigationState_NAVIGATION_STATE_SAME_DOCUMENT, "Form", 204},
		{"/slow?ms=700", browserv1.NavigationState_NAVIGATION_STATE_COMPLETE, "Slow", 200},
		{"/app", browserv1.NavigationState_NAVIGATION_STATE_COMPLETE, "App", 200},
		{"/none", browserv1.NavigationState_NAVIGATION_STATE_COMPLETE, "", 404},
	} {
		if o := u.open(base + c.url); o.GetNavigationState() != c.state || o.GetTitle() != c.title || o.GetHttpStatus() != c.status {
			t.Errorf("%s: open said %v", c.url, o)
		}
	}
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	fails(r, &browserv1.OpenRequest{SessionId: u.id, Url: dead.URL}, fault.NotReady, "navigation_failed")
	u.open(base + "/")
	downloads := ask[*browserv1.WaitDownloadResponse](r, &browserv1.WaitDownloadRequest{SessionId: u.id, UrlContains: ptr("/file")})
	d := downloads.GetDownloads()[0]
	// A person's Firefox numbers the name when the folder has it already.
	named := strings.HasPrefix(d.GetSuggestedFilename(), "numbers") && strings.HasSuffix(d.GetSuggestedFilename(), ".csv")
	if data, err := os.ReadFile(d.GetPath()); err != nil || !strings.Contains(string(data), "42") || !named {
		t.Errorf("the download is %v (%v)", d, err)
	}
}

// What the WebExtension interfaces give: requests, cookies of the session's pages, storage, tabs that a page opened, files.
func TestObserveAndStore(t *testing.T) {
	person(t)
	r := newRig(t)
	base := site(t, map[string]string{
		"/": `<title>Form</title><a target="_blank" href="/next">New</a><input type="file" multiple><p id="o"></p><script>
			document.cookie = 'a=1'; localStorage.k = 'v'; fetch('/none');
			document.querySelector('input').onchange = async e => { o.textContent = (await Promise.all([...e.target.files].map(f => f.text()))).join() }</script>`,
		"/next": "<title>Next page</title>",
	})
	u := r.session("observe")
	u.open(base + "/")
	c := u.clickOn("link", "New")
	if len(c.GetNewPageIds()) != 1 {
		tabs := ask[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: u.id})
		if len(tabs.GetTabs()) != 2 {
			t.Errorf("the click said %v; the tabs are %v", c, tabs.GetTabs())
		}
	}
	cookies := ask[*browserv1.ListCookiesResponse](r, &browserv1.ListCookiesRequest{SessionId: u.id})
	if len(cookies.GetCookies()) != 1 || cookies.GetCookies()[0].GetValue() != "1" || len(cookies.GetWarnings()) != 1 {
		t.Errorf("the cookies are %v", cookies)
	}
	set := ask[*browserv1.SetCookiesResponse](r, &browserv1.SetCookiesRequest{SessionId: u.id, Cookies: []*browserv1.Cookie{{Name: "b", Value: "2", HttpOnly: true}}})
	if len(set.GetCookies()) != 1 || !set.GetCookies()[0].GetHttpOnly() {
		t.Errorf("set %v", set)
	}
	if left := ask[*browserv1.ClearCookiesResponse](r, &browserv1.ClearCookiesRequest{SessionId: u.id}); len(left.GetCookies()) != 0 {
		t.Errorf("left %v", left)
	}
	local := browserv1.StorageArea_STORAGE_AREA_LOCAL
	if got := ask[*browserv1.GetStorageResponse](r, &browserv1.GetStorageRequest{SessionId: u.id, Area: local}); got.GetItems()["k"] != "v" {
		t.Errorf("stored %v", got)
	}
	ask[*browserv1.ClearStorageResponse](r, &browserv1.ClearStorageRequest{SessionId: u.id, Area: local})
	reqs := ask[*browserv1.ListRequestsResponse](r, &browserv1.ListRequestsRequest{SessionId: u.id, UrlContains: ptr("/none")})
	if len(reqs.GetRequests()) != 1 || reqs.GetRequests()[0].GetStatus() != 404 || reqs.GetRequests()[0].GetResourceType() != "xhr" {
		t.Errorf("the requests are %v", reqs)
	}
	var paths []string
	for _, name := range []string{"one", "two"} {
		path := filepath.Join(r.upload, name)
		if err := os.WriteFile(path, []byte(name+strings.Repeat("é", 1<<20)), 0o600); err != nil { // in pieces on the way
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	ask[*browserv1.SetFilesResponse](r, &browserv1.SetFilesRequest{SessionId: u.id, Target: bySelector("input"), Paths: paths})
	ask[*browserv1.WaitResponse](r, &browserv1.WaitRequest{SessionId: u.id, TextPresent: ptr("two")})
	if got := u.eval("o.textContent.length"); got != "2097159" {
		t.Errorf("the page read %s characters", got)
	}
	for _, name := range []string{"dialog.get", "console.list"} {
		if r.srv.Handles(name) {
			t.Errorf("%s is listed, and no add-on can do it", name)
		}
	}
}
