package extension

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

func unpacked(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("webext")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

const formPage = `<!doctype html><html lang="en"><title>Form</title><body>
<label>Name <input id="name"></label><button id="go" onclick="document.getElementById('out').textContent='Hello '+document.getElementById('name').value">Greet</button><p id="out"></p>
<select id="s"><option value="a">Alpha</option><option value="b">Beta</option></select>
<button id="ask" onclick="document.getElementById('out').textContent=String(confirm('Sure?'))">Ask</button>
<a id="pop" target="_blank" href="/two">Two</a></body></html>`

func site(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.Path == "/two" {
			_, _ = w.Write([]byte(`<!doctype html><title>Two</title><p>The second page`))
			return
		}
		_, _ = w.Write([]byte(formPage))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// The main way, over both transports: a person pairs the browser on the page and in the popup, then an agent works in it.
func TestPairAndWork(t *testing.T) {
	for _, transport := range []string{"websocket", "sse-http"} {
		t.Run(transport, func(t *testing.T) {
			at := newPlace(t)
			r := newRig(t, at, nil)
			c := startChrome(t, unpacked(t))
			c.pair(at.url(), transport)
			id := r.session("a")
			opened := do[*browserv1.OpenResponse](r, &browserv1.OpenRequest{SessionId: id, Url: site(t) + "/"})
			if opened.GetTitle() != "Form" || opened.GetHttpStatus() != 200 {
				t.Errorf("opened %v", opened)
			}
			do[*browserv1.SnapshotResponse](r, &browserv1.SnapshotRequest{SessionId: id})
			do[*browserv1.TypeResponse](r, &browserv1.TypeRequest{SessionId: id, Target: selector("#name"), Text: "Ada"})
			do[*browserv1.ClickResponse](r, &browserv1.ClickRequest{SessionId: id, Target: selector("#go")})
			if got := do[*browserv1.EvalResponse](r, &browserv1.EvalRequest{SessionId: id, Expression: "document.getElementById('out').textContent"}).GetValue().GetStringValue(); got != "Hello Ada" {
				t.Errorf("the page says %q", got)
			}
			clicked := do[*browserv1.ClickResponse](r, &browserv1.ClickRequest{SessionId: id, Target: selector("#pop")})
			if len(clicked.GetNewPageIds()) != 1 {
				t.Errorf("the click told of new pages %v", clicked.GetNewPageIds())
			}
			asked := do[*browserv1.ClickResponse](r, &browserv1.ClickRequest{SessionId: id, Target: selector("#ask")})
			if asked.GetDialog().GetMessage() != "Sure?" {
				t.Errorf("the click told of the dialog %v", asked.GetDialog())
			}
			do[*browserv1.RespondDialogResponse](r, &browserv1.RespondDialogRequest{SessionId: id, Action: browserv1.DialogAction_DIALOG_ACTION_ACCEPT})
			if shot := do[*browserv1.ScreenshotResponse](r, &browserv1.ScreenshotRequest{SessionId: id, FullPage: true}); len(shot.GetImage()) == 0 {
				t.Error("no picture")
			}
			v := do[*browserv1.VerifyResponse](r, &browserv1.VerifyRequest{})
			for _, check := range v.GetChecks() {
				if check.GetStatus() != browserv1.CheckStatus_CHECK_STATUS_PASS {
					t.Errorf("verify: %v", check)
				}
			}
			do[*browserv1.CloseSessionResponse](r, &browserv1.CloseSessionRequest{SessionId: id})
		})
	}
}

func selector(css string) *browserv1.Target { return &browserv1.Target{Selector: &css} }
