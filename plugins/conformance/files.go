package conformance

import (
	"os"
	"path/filepath"
)

// fileChecks are about files that go in and come out.
func fileChecks() []check {
	return []check{
		{id: "upload.set_files/goes-in", method: "upload.set_files", guards: "A file inside the allowed folder reaches the page's input.", do: uploadGoesIn},
		{id: "upload.set_files/refused", method: "upload.set_files", guards: "A file outside the allowed folders is refused, with path_refused.", do: uploadRefused},
		{id: "download.wait/comes-out", method: "download.wait", methods: []string{"download.list"}, own: true, guards: "A download is told when it is complete, with its name, size and a file that holds it.", do: downloadComesOut},
		{id: "download.wait/never", method: "download.wait", guards: "A download that does not come is not_ready, deadline_exceeded.", do: downloadNever},
	}
}

func uploadGoesIn(t *T) {
	if t.run.opts.Uploads == "" {
		t.Skipf("there is no folder to upload from")
	}
	path := filepath.Join(t.run.opts.Uploads, "conform.txt")
	if err := os.WriteFile(path, []byte("seven b"), 0o600); err != nil {
		t.Skipf("the folder to upload from: %v", err)
	}
	defer func() { _ = os.Remove(path) }()
	t.open("upload.html")
	t.Must("upload.set_files", map[string]any{"selector": "#one", "paths": []any{path}})
	t.shows("Got conform.txt 7")
}

func uploadRefused(t *T) {
	t.open("upload.html")
	a := t.Call("upload.set_files", map[string]any{"selector": "#one", "paths": []any{"/etc/hostname"}})
	if !says(a, "permission_denied/path_refused") {
		t.Errorf("a file outside must answer permission_denied/path_refused, and it answers %s", a.said())
	}
}

func downloadComesOut(t *T) {
	t.open("form.html")
	a := t.Call("page.open", map[string]any{"url": t.run.site.url + "/file"})
	if a.Err != nil || text(a.Result, "navigation_state") != "download" {
		t.Errorf("page.open of an attachment must have navigation_state download, and it answers %s", a.said())
	}
	r := t.Must("download.wait", map[string]any{"url_contains": "/file"})
	list := objects(r["downloads"])
	if len(list) != 1 || text(list[0], "state") != "complete" || text(list[0], "suggested_filename") != "plain.txt" {
		t.Fatalf("downloads are %s", show(r["downloads"]))
	}
	if p := text(list[0], "path"); p != "" {
		if data, err := os.ReadFile(p); err != nil || string(data) != "plain words\n" {
			t.Errorf("the file at path does not hold what was sent: %v", err)
		}
	} else if text(list[0], "artifact_ref") == "" {
		t.Errorf("neither path nor artifact_ref says where the file is")
	}
}

func downloadNever(t *T) {
	a := t.Call("download.wait", map[string]any{"url_contains": "never-asked-for", "timeout_ms": 300})
	if !says(a, "not_ready/deadline_exceeded") {
		t.Errorf("it must answer not_ready/deadline_exceeded, and it answers %s", a.said())
	}
}
