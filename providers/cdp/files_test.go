package cdp

import (
	"os"
	"path/filepath"
	"testing"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Downloads and uploads through a real page.
func TestFiles(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": `<title>Files</title><a href="/dl/a?name=report.csv">Get</a>
		<input type=file id=one><input type=file id=many multiple hidden><script>onchange=e=>{window.got=[...e.target.files].map(f=>f.name+f.size)}</script>`})
	u := r.session("files")
	u.open(base + "/")
	list := func() []*browserv1.Download {
		return do[*browserv1.ListDownloadsResponse](r, &browserv1.ListDownloadsRequest{SessionId: u.id}).GetDownloads()
	}
	for i := range 2 {
		u.clickOn("link", "Get")
		for len(list()) == i { // The click may answer before the browser tells of the download.
		}
		w := do[*browserv1.WaitDownloadResponse](r, &browserv1.WaitDownloadRequest{SessionId: u.id, UrlContains: ptr("/dl/a")})
		for _, d := range w.GetDownloads() {
			data, err := os.ReadFile(d.GetPath())
			if err != nil || string(data) != "id,total\n1,42\n" || d.GetState() != browserv1.DownloadState_DOWNLOAD_STATE_COMPLETE || d.GetReceivedBytes() != 14 {
				t.Errorf("the download is %v: %q, %v", d, data, err)
			}
			art := do[*browserv1.GetArtifactResponse](r, &browserv1.GetArtifactRequest{SessionId: u.id, Ref: d.GetArtifactRef()})
			if string(art.GetData()) != string(data) {
				t.Errorf("the artifact is %q", art.GetData())
			}
		}
	}
	all := list()
	if len(all) != 2 || all[0].GetPath() == all[1].GetPath() {
		t.Errorf("the downloads are %v", all)
	}
	if e := fails(r, &browserv1.WaitDownloadRequest{SessionId: u.id, UrlContains: ptr("nothing"), TimeoutMs: ptr(int32(200))}, fault.NotReady, "deadline_exceeded"); e == nil {
		t.Error("no error")
	}
	fails(r, &browserv1.WaitDownloadRequest{SessionId: u.id, DownloadId: ptr("d99")}, fault.InvalidRequest, "")

	for _, name := range []string{"a.txt", "b.txt"} {
		if err := os.WriteFile(filepath.Join(r.upload, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set := func(selector string, paths ...string) *browserv1.SetFilesRequest {
		return &browserv1.SetFilesRequest{SessionId: u.id, Target: bySelector(selector), Paths: paths}
	}
	do[*browserv1.SetFilesResponse](r, set("#many", "a.txt", filepath.Join(r.upload, "b.txt")))
	if got := u.eval("got.join()"); got != `"a.txt5,b.txt5"` {
		t.Errorf("the page got %s", got)
	}
	fails(r, set("#one", "a.txt", "b.txt"), fault.InvalidRequest, "")
	fails(r, set("a", "a.txt"), fault.UnsupportedTarget, "")
	fails(r, set("#one", "/etc/passwd"), fault.PermissionDenied, "path_refused")
}
