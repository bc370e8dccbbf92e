package bidi

import (
	"bytes"
	"encoding/base64"
	"image"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Redirects are a request each, in order; kinds, failures and filters hold; what scripts say is kept.
func TestNetworkAndConsole(t *testing.T) {
	each(t, func(t *testing.T, r *rig, family string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		closed := "http://" + l.Addr().String() + "/"
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		base := site(t, map[string]string{
			"/": `<!doctype html><title>N</title><link rel="stylesheet" href="/s.css"><script>
console.log('one', {a: 1}, [2, 'x']); console.warn('careful'); console.debug('deep'); console.error('bad');
fetch('/data'); fetch('` + closed + `').catch(() => 0); setTimeout(() => { throw new Error('uncaught here') });
</script>`, "/s.css": "", "/data": "d",
		})
		u := r.session("net", prefer(family))
		ask[*browserv1.OpenResponse](r, &browserv1.OpenRequest{SessionId: u.id, Url: base + "/go?to=/", WaitUntil: browserv1.WaitUntil_WAIT_UNTIL_NETWORKIDLE.Enum()})
		list := ask[*browserv1.ListRequestsResponse](r, &browserv1.ListRequestsRequest{SessionId: u.id}).GetRequests()
		if len(list) < 5 || list[0].GetStatus() != 302 || list[1].GetStatus() != 200 || list[1].GetRedirectedFrom() != list[0].GetRequestId() {
			t.Fatalf("the requests are %v", list)
		}
		kinds := map[string]string{}
		for _, q := range list {
			kinds[strings.TrimPrefix(q.GetUrl(), base)] = q.GetResourceType()
		}
		if kinds["/"] != "document" || kinds["/s.css"] != "stylesheet" || kinds["/data"] != "fetch" {
			t.Errorf("the kinds are %v", kinds)
		}
		failed := ask[*browserv1.ListRequestsResponse](r, &browserv1.ListRequestsRequest{SessionId: u.id, Failed: ptr(true), UrlContains: &closed}).GetRequests()
		if len(failed) != 1 || failed[0].GetErrorText() == "" {
			t.Errorf("the failed ones are %v", failed)
		}
		var said []*browserv1.ConsoleMessage
		eventually(t, "five messages", func() bool {
			said = ask[*browserv1.ListMessagesResponse](r, &browserv1.ListMessagesRequest{SessionId: u.id}).GetMessages()
			return slices.ContainsFunc(said, func(m *browserv1.ConsoleMessage) bool {
				return m.GetSource() == browserv1.ConsoleSource_CONSOLE_SOURCE_EXCEPTION
			}) && len(said) >= 5
		})
		said = slices.DeleteFunc(said, func(m *browserv1.ConsoleMessage) bool {
			return m.GetLevel() != browserv1.ConsoleLevel_CONSOLE_LEVEL_INFO
		})
		if said[0].GetText() != `one {a: 1} [2, "x"]` || said[0].GetUrl() != base+"/" || said[0].GetLine() != 2 {
			t.Errorf("the first message is %v", said[0])
		}
		bad := ask[*browserv1.ListMessagesResponse](r, &browserv1.ListMessagesRequest{
			SessionId: u.id, Levels: []browserv1.ConsoleLevel{browserv1.ConsoleLevel_CONSOLE_LEVEL_ERROR}, Contains: ptr("uncaught here"),
		}).GetMessages()
		if len(bad) != 1 {
			t.Errorf("the exceptions are %v", bad)
		}
	})
}

func TestCookiesAndStorage(t *testing.T) {
	each(t, func(t *testing.T, r *rig, family string) {
		base := site(t, map[string]string{"/": formPage, "/deep/": formPage})
		u := r.session("jar", prefer(family))
		u.open(base + "/")
		set := ask[*browserv1.SetCookiesResponse](r, &browserv1.SetCookiesRequest{SessionId: u.id, Cookies: []*browserv1.Cookie{
			{Name: "a", Value: "1", HttpOnly: true, SameSite: browserv1.SameSite_SAME_SITE_LAX.Enum()}, {Name: "b", Value: "2", Path: "/deep/"},
		}}).GetCookies()
		if len(set) != 2 || !set[0].GetHttpOnly() || set[0].GetSameSite() != browserv1.SameSite_SAME_SITE_LAX || set[0].GetDomain() != "127.0.0.1" {
			t.Errorf("set said %v", set)
		}
		sent := func(url string) int {
			return len(ask[*browserv1.ListCookiesResponse](r, &browserv1.ListCookiesRequest{SessionId: u.id, Urls: []string{url}}).GetCookies())
		}
		if sent(base+"/") != 1 || sent(base+"/deep/x") != 2 || sent("http://other.test/") != 0 {
			t.Errorf("sent are %d, %d, %d", sent(base+"/"), sent(base+"/deep/x"), sent("http://other.test/"))
		}
		left := ask[*browserv1.ClearCookiesResponse](r, &browserv1.ClearCookiesRequest{SessionId: u.id, Urls: []string{base + "/"}}).GetCookies()
		if len(left) != 1 || left[0].GetName() != "b" {
			t.Errorf("left are %v", left)
		}
		if left := ask[*browserv1.ClearCookiesResponse](r, &browserv1.ClearCookiesRequest{SessionId: u.id}).GetCookies(); len(left) != 0 {
			t.Errorf("still left are %v", left)
		}
		local := browserv1.StorageArea_STORAGE_AREA_LOCAL
		ask[*browserv1.SetStorageResponse](r, &browserv1.SetStorageRequest{SessionId: u.id, Area: local, Items: map[string]string{"k": "v", "l": "w"}})
		if got := u.eval("localStorage.k+localStorage.l"); got != `"vw"` {
			t.Errorf("the page sees %s", got)
		}
		ask[*browserv1.ClearStorageResponse](r, &browserv1.ClearStorageRequest{SessionId: u.id, Area: local, Keys: []string{"k"}})
		if got := ask[*browserv1.GetStorageResponse](r, &browserv1.GetStorageRequest{SessionId: u.id, Area: local}).GetItems(); len(got) != 1 || got["l"] != "w" {
			t.Errorf("storage holds %v", got)
		}
	})
}

// Pictures have the size that was asked for and show what was asked for, and scroll positions stay.
func TestScreenshots(t *testing.T) {
	each(t, func(t *testing.T, r *rig, family string) {
		base := site(t, map[string]string{"/": `<!doctype html><title>P</title><style>body{margin:0;height:3000px}#box{position:absolute;left:100px;top:1500px;width:50px;height:40px;background:#00f;border:0}</style><button id="box"></button>`})
		u := r.session("pics", prefer(family))
		u.open(base + "/")
		u.eval("scrollTo(0, 200)")
		shoot := func(q *browserv1.ScreenshotRequest) (*browserv1.ScreenshotResponse, image.Image) {
			t.Helper()
			q.SessionId = u.id
			resp := ask[*browserv1.ScreenshotResponse](r, q)
			img, _, err := image.Decode(bytes.NewReader(resp.GetImage()))
			if err != nil {
				t.Fatal(err)
			}
			return resp, img
		}
		blue := func(img image.Image, x, y int) bool {
			red, _, b, _ := img.At(x, y).RGBA()
			return red < 0x4000 && b > 0xc000
		}
		full, img := shoot(&browserv1.ScreenshotRequest{FullPage: true})
		if full.GetHeight() != 3000 || !blue(img, 120, 1520) {
			t.Errorf("full page is %d by %d, blue %v", full.GetWidth(), full.GetHeight(), blue(img, 120, 1520))
		}
		el, img := shoot(&browserv1.ScreenshotRequest{ElementRef: ptr(u.snapshot().GetElements()[0].GetElementRef())})
		if el.GetWidth() != 50 || el.GetHeight() != 40 || !blue(img, 1, 1) || !blue(img, 48, 38) {
			t.Errorf("the element is %d by %d", el.GetWidth(), el.GetHeight())
		}
		if got := u.eval("scrollY"); got != "200" {
			t.Errorf("the page is scrolled to %s", got)
		}
		clip, img := shoot(&browserv1.ScreenshotRequest{FullPage: true, Clip: &browserv1.Rect{X: 90, Y: 1490, Width: 30, Height: 20}})
		if clip.GetWidth() != 30 || clip.GetHeight() != 20 || blue(img, 5, 5) || !blue(img, 15, 15) {
			t.Errorf("the clip is %d by %d", clip.GetWidth(), clip.GetHeight())
		}
		jpg, _ := shoot(&browserv1.ScreenshotRequest{Format: browserv1.ImageFormat_IMAGE_FORMAT_JPEG.Enum(), Quality: ptr(int32(30)), Annotate: true})
		if jpg.GetMediaType() != "image/jpeg" || jpg.GetWidth() != defaultWidth {
			t.Errorf("the jpeg is %v", jpg.GetMediaType())
		}
		kept := ask[*browserv1.ScreenshotResponse](r, &browserv1.ScreenshotRequest{SessionId: u.id, Inline: ptr(false)})
		got := ask[*browserv1.GetArtifactResponse](r, &browserv1.GetArtifactRequest{SessionId: u.id, Ref: kept.GetImageRef(), Limit: 8})
		if string(got.GetData()[1:4]) != "PNG" || got.GetEof() {
			t.Errorf("the artifact begins with %q", got.GetData())
		}
	})
}

func TestDownloadsAndUploads(t *testing.T) {
	each(t, func(t *testing.T, r *rig, family string) {
		base := site(t, map[string]string{"/": `<!doctype html><title>F</title><a href="/dl/x?name=report.csv">Get</a>
<input type="file" hidden onchange="document.title=[...this.files].map(f=>f.name+f.size).join()">`})
		u := r.session("files", prefer(family))
		u.open(base + "/")
		for range 2 {
			u.clickOn("link", "Get")
			done := ask[*browserv1.WaitDownloadResponse](r, &browserv1.WaitDownloadRequest{SessionId: u.id}).GetDownloads()
			if len(done) != 1 || done[0].GetState() != browserv1.DownloadState_DOWNLOAD_STATE_COMPLETE || done[0].GetSuggestedFilename() != "report.csv" || done[0].GetReceivedBytes() != 14 {
				t.Fatalf("the download is %v", done)
			}
			if text, err := os.ReadFile(done[0].GetPath()); err != nil || string(text) != "id,total\n1,42\n" {
				t.Errorf("the file holds %q (%v)", text, err)
			}
		}
		if got := ask[*browserv1.ListDownloadsResponse](r, &browserv1.ListDownloadsRequest{SessionId: u.id}).GetDownloads(); len(got) != 2 || got[0].GetPath() == got[1].GetPath() {
			t.Errorf("the downloads are %v", got)
		}
		path := filepath.Join(r.upload, "up.txt")
		if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
			t.Fatal(err)
		}
		ask[*browserv1.SetFilesResponse](r, &browserv1.SetFilesRequest{SessionId: u.id, Target: bySelector("input"), Paths: []string{"up.txt"}})
		if got := u.eval("document.title"); got != `"up.txt5"` {
			t.Errorf("the page got %s", got)
		}
		fails(r, &browserv1.SetFilesRequest{SessionId: u.id, Target: bySelector("input"), Paths: []string{"/etc/passwd"}}, fault.PermissionDenied, "path_refused")
	})
}

// Custom methods reach the session's own pages alone, and an extension that is installed runs.
func TestCustomMethods(t *testing.T) {
	eachOwn(t, func(t *testing.T, r *rig, family string) {
		base := site(t, map[string]string{"/": formPage})
		u, other := r.session("mine", prefer(family)), r.session("other", prefer(family))
		u.open(base + "/")
		tree, err := other.send("script.getRealms", nil)
		if err != nil {
			t.Fatal(err)
		}
		foreign := tree.GetStructValue().GetFields()["realms"].GetListValue().GetValues()[0].GetStructValue().GetFields()["context"].GetStringValue()
		got, err := u.send("script.evaluate", map[string]any{"expression": "document.title", "awaitPromise": false})
		if err != nil || got.GetStructValue().GetFields()["result"].GetStructValue().GetFields()["value"].GetStringValue() != "Form" {
			t.Errorf("script.evaluate gave %v (%v)", got, err)
		}
		if _, err := u.send("browsingContext.print", nil); err != nil {
			t.Errorf("browsingContext.print: %v", err)
		}
		if _, err := u.send("browser.close", nil); fault.ReasonOf(err) != "command_refused" {
			t.Errorf("browser.close: %v", err)
		}
		if _, err := u.send("nonsense.command", nil); fault.ReasonOf(err) != "command_failed" {
			t.Errorf("nonsense.command: %v", err)
		}
		if _, err := u.send("browsingContext.close", map[string]any{"context": foreign}); fault.CodeOf(err) != fault.PageNotFound {
			t.Errorf("another session's page: %v", err)
		}
		dir := filepath.Join(r.upload, "ext")
		manifest := `{"manifest_version": 3, "name": "t", "version": "1", "content_scripts": [{"matches": ["<all_urls>"], "js": ["c.js"]}], "browser_specific_settings": {"gecko": {"id": "t@drover.test"}}}`
		for name, text := range map[string]string{"manifest.json": manifest, "c.js": "document.documentElement.dataset.ext = 'on'"} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		body, _ := structpb.NewStruct(map[string]any{"path": dir})
		resp, err := r.srv.Custom(t.Context(), &browserv1.CustomRequest{SessionId: u.id, Method: "bidi.install_extension", Params: body})
		if err != nil || resp.GetResult().GetStructValue().GetFields()["extension"].GetStringValue() == "" {
			t.Fatalf("the extension: %v (%v)", resp, err)
		}
		if family == familyFirefox { // A Chromium's user contexts do not let extensions in.
			u.open(base + "/")
			eventually(t, "the extension's script", func() bool { return u.eval("document.documentElement.dataset.ext") == `"on"` })
		}
		body, _ = structpb.NewStruct(map[string]any{"archive": base64.StdEncoding.EncodeToString([]byte("no zip"))})
		if _, err := r.srv.Custom(t.Context(), &browserv1.CustomRequest{SessionId: u.id, Method: "bidi.install_extension", Params: body}); fault.ReasonOf(err) != "command_failed" {
			t.Errorf("a broken archive: %v", err)
		}
	})
}
