package cdp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// No suggested name leads outside the folder, hides a file, is too long or is empty.
func TestSafeName(t *testing.T) {
	for _, c := range [][2]string{
		{"report.csv", "report.csv"},
		{"../../x", "x"},
		{"/etc/x", "x"},
		{`..\..\x`, "x"},
		{"a\x00b", "a_b"},
		{"..", "download"},
		{".", "download"},
		{"", "download"},
		{"CON", "_CON"},
		{"con.txt", "_con.txt"},
		{".bashrc", "bashrc"},
		{" x . ", "x"},
		{"a/", "download"},
		{"a\xffb", "a_b"},
		{"été 😀.pdf", "été 😀.pdf"},
		{"a:b?c", "a_b_c"},
	} {
		if got := safeName(c[0]); got != c[1] {
			t.Errorf("%q became %q, want %q", c[0], got, c[1])
		}
	}
	for _, long := range []string{strings.Repeat("é", 300) + ".tar", strings.Repeat("x", 300), "." + strings.Repeat("y", 400), strings.Repeat("z", 10) + "." + strings.Repeat("w", 300)} {
		if got := safeName(long); len(got) > maxName || got == "" || got[0] == '.' {
			t.Errorf("%.20q… became %d bytes", long, len(got))
		}
	}
}

// A file never takes another's place.
func TestNameFile(t *testing.T) {
	dir := t.TempDir()
	seen := map[string]bool{}
	for range 3 {
		from := filepath.Join(dir, "guid")
		if err := os.WriteFile(from, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		to, err := nameFile(from, dir, strings.Repeat("n", 251)+".csv")
		if err != nil || seen[to] || filepath.Dir(to) != dir || len(filepath.Base(to)) > maxName {
			t.Errorf("got %q, %v", to, err)
		}
		seen[to] = true
	}
}

// Only files in the allowed folders may be uploaded, whatever links say.
func TestAllowed(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	for _, f := range []string{filepath.Join(root, "in.txt"), filepath.Join(outside, "out.txt")} {
		if err := os.WriteFile(f, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(outside, "out.txt"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root, filepath.Join(outside, "back")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(root, "in.txt"), "in.txt", "./in.txt", filepath.Join(outside, "back", "in.txt")} {
		if got, err := allowed(path, []string{root}); err != nil || filepath.Base(got) != "in.txt" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	for _, c := range []struct {
		path string
		code fault.Code
	}{
		{filepath.Join(outside, "out.txt"), fault.PermissionDenied},
		{filepath.Join(root, "link"), fault.PermissionDenied},
		{"link", fault.PermissionDenied},
		{"../" + filepath.Base(outside) + "/out.txt", fault.PermissionDenied},
		{root + "/../" + filepath.Base(outside) + "/out.txt", fault.PermissionDenied},
		{"/etc/passwd", fault.PermissionDenied},
		{"/no/such/file", fault.PermissionDenied},
		{root, fault.PermissionDenied},
		{"a\x00b", fault.InvalidRequest},
		{filepath.Join(root, "missing"), fault.InvalidRequest},
	} {
		if got, err := allowed(c.path, []string{root}); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %q, %v", c.path, got, err)
		}
	}
	if _, err := allowed(filepath.Join(root, "in.txt"), nil); fault.CodeOf(err) != fault.PermissionDenied {
		t.Errorf("without folders: %v", err)
	}
}

// Downloads and uploads through a real page.
func TestFiles(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": `<title>Files</title><a href="/dl/a?name=report.csv">Get</a>
		<input type=file id=one><input type=file id=many multiple hidden><script>onchange=e=>{window.got=[...e.target.files].map(f=>f.name+f.size)}</script>`})
	u := r.session("files")
	u.open(base + "/")
	for range 2 {
		u.clickOn("link", "Get")
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
	all := do[*browserv1.ListDownloadsResponse](r, &browserv1.ListDownloadsRequest{SessionId: u.id}).GetDownloads()
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
