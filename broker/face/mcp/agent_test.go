package mcp_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/face/mcp"
	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/plugins/plugintest"
	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/providers/bidi"
	"github.com/droverhq/drover/providers/cdp"
)

// running is a provider in this process, over a real gRPC connection, that is always there.
type running struct{ *host.Instance }

func (r running) Describe() (*browserv1.DescribeResponse, bool) { return r.Instance.Describe(), true }

func (r running) Status() *browserv1.StatusResponse {
	return &browserv1.StatusResponse{Availability: browserv1.Availability_AVAILABILITY_READY, State: "ready"}
}
func (r running) Acquire(context.Context) (broker.Provider, error) { return r.Instance, nil }

// real is a house with a real browser behind it, and the folder that uploads may come from.
func real(t *testing.T, s *plugins.Server) (*house, string) {
	t.Helper()
	uploads := t.TempDir()
	inst := plugintest.ConnectSpec(t, s, host.Spec{ID: s.Info().ID, Settings: &browserv1.HostSettings{
		RunDir: t.TempDir(), StateDir: t.TempDir(), UploadDirs: []string{uploads},
	}})
	h := &house{t: t, broker: broker.New(broker.Options{Policy: policy.New(policy.Default()), Sources: []broker.Source{running{inst}}, Version: "test"})}
	h.face = mcp.New(mcp.Options{Broker: h.broker, Version: "test"})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		h.face.Close(ctx)
		h.broker.Close(ctx)
	})
	return h, uploads
}

// ref finds an element in an outline by its role and name, as a model would.
func ref(t *testing.T, outline, role, name string) string {
	t.Helper()
	m := regexp.MustCompile(regexp.QuoteMeta(role+` "`+name+`"`) + `[^\n]*\[ref=([^\]]+)\]`).FindStringSubmatch(outline)
	if m == nil {
		t.Fatalf("no %s %q in\n%s", role, name, outline)
	}
	return m[1]
}

type args = map[string]any

// look reads the page and finds an element of it.
func (u *user) look(t *testing.T, role, name string) string {
	t.Helper()
	return ref(t, u.do("browser_snapshot", nil).text, role, name)
}

// sees waits until a text is on the page.
func (u *user) sees(t *testing.T, text string) {
	t.Helper()
	if r := u.do("browser_wait", args{"text_present": text}); string(r.fields["satisfied"]) != "true" {
		t.Fatalf("%q does not come; the page is\n%s", text, u.do("browser_snapshot", nil).text)
	}
}

// Guards what the face is for: an agent does ten tasks of daily life by its tools alone, on a real Chromium.
func TestAgentTasks(t *testing.T) { agentTasks(t, cdp.New(), "chromium") }

// Guards that the same ten tasks need nothing else of an agent on a real Firefox.
func TestAgentTasksOnFirefox(t *testing.T) { agentTasks(t, bidi.New(), "firefox") }

func agentTasks(t *testing.T, provider *plugins.Server, browser string) {
	h, uploads := real(t, provider)
	site := shop(t)
	for name, task := range map[string]func(*testing.T, *user){
		"log in": func(t *testing.T, u *user) {
			page := u.do("browser_open", args{"url": site + "/login", "snapshot": "full"}).text
			u.do("browser_type", args{"element_ref": ref(t, page, "textbox", "User"), "text": "ada"})
			r := u.do("browser_type", args{"element_ref": ref(t, page, "textbox", "Password"), "text": "lovelace"})
			if strings.Contains(r.text, "lovelace") || r.fields["value"] != nil {
				t.Errorf("the password is told: %v", r.fields)
			}
			r = u.do("browser_click", args{"element_ref": ref(t, page, "button", "Sign in"), "snapshot": "full"})
			if !strings.Contains(r.text, "navigation occurred") || !strings.Contains(r.text, "Welcome ada") {
				t.Errorf("got %s", r.text)
			}
			if r := u.try("browser_click", args{"element_ref": ref(t, page, "button", "Sign in")}); !r.IsError || !strings.HasPrefix(r.text, "element_not_found (stale_ref)") {
				t.Errorf("a ref of the old page: %s", r.text)
			}
		},
		"filter a table": func(t *testing.T, u *user) {
			page := u.do("browser_open", args{"url": site + "/table", "snapshot": "full"}).text
			r := u.do("browser_type", args{"element_ref": ref(t, page, "textbox", "Filter"), "text": "Part 11", "snapshot": "delta"})
			if !strings.Contains(r.text, "gone:") && !strings.Contains(r.text, "+ ") {
				t.Errorf("the change is not told: %s", r.text)
			}
			got := u.do("browser_snapshot", nil).text
			if strings.Contains(got, "Part 012") || !strings.Contains(got, "Part 113") || !strings.Contains(got, "791 pieces") {
				t.Errorf("got %s", got)
			}
		},
		"fill a long form": func(t *testing.T, u *user) {
			page := u.do("browser_open", args{"url": site + "/long", "snapshot": "full"}).text
			for field, text := range map[string]string{"First name": "Ada", "Last name": "Lovelace", "About you": "Zahlen & Wörter"} {
				u.do("browser_type", args{"element_ref": ref(t, page, "textbox", field), "text": text})
			}
			u.do("browser_type", args{"selector": "input[type=date]", "text": "1815-12-10"})
			u.do("browser_select", args{"element_ref": ref(t, page, "combobox", "Country"), "labels": []string{"France"}})
			u.do("browser_click", args{"element_ref": ref(t, page, "radio", "Large")})
			u.do("browser_click", args{"element_ref": ref(t, page, "checkbox", "I agree")})
			u.do("browser_click", args{"text_query": "Send"})
			u.sees(t, "Received first=Ada; last=Lovelace; born=1815-12-10; country=fr; size=l; about=Zahlen & Wörter; terms=on")
		},
		"compare in tabs": func(t *testing.T, u *user) {
			u.do("browser_open", args{"url": site + "/lamp"})
			second := u.do("browser_tab_new", args{"url": site + "/torch"}).str("page_id")
			tabs := u.do("browser_tab_list", nil)
			if !strings.Contains(tabs.text, "2 tabs") || !strings.Contains(string(tabs.fields["tabs"]), "/torch") {
				t.Fatalf("got %s %s", tabs.text, tabs.fields["tabs"])
			}
			first := regexp.MustCompile(`"page_id":"([^"]+)"`).FindStringSubmatch(string(tabs.fields["tabs"]))[1]
			a, b := u.do("browser_snapshot", args{"page_id": first}).text, u.do("browser_snapshot", args{"page_id": second}).text
			if !strings.Contains(a, "12 EUR") || !strings.Contains(b, "9 EUR") {
				t.Fatalf("prices: %s %s", a, b)
			}
			r := u.do("browser_click", args{"page_id": second, "element_ref": ref(t, b, "button", "Order"), "snapshot": "full"})
			if !strings.Contains(r.text, "Ordered") {
				t.Errorf("got %s", r.text)
			}
			u.do("browser_tab_close", args{"page_id": first})
		},
		"upload": func(t *testing.T, u *user) {
			file := filepath.Join(uploads, "cat.txt")
			if err := os.WriteFile(file, []byte("meow"), 0o600); err != nil {
				t.Fatal(err)
			}
			u.do("browser_open", args{"url": site + "/upload"})
			u.do("browser_upload", args{"selector": "input[type=file]", "paths": []string{file}})
			u.sees(t, "cat.txt has 4 bytes")
			u.fails("browser_upload", args{"selector": "input[type=file]", "paths": []string{"/etc/passwd"}}, "permission_denied (path_refused)")
		},
		"download": func(t *testing.T, u *user) {
			page := u.do("browser_open", args{"url": site + "/files", "snapshot": "full"}).text
			u.do("browser_click", args{"element_ref": ref(t, page, "link", "Report")})
			r := u.do("browser_download_wait", nil)
			link, ok := r.Content[len(r.Content)-1].(*sdk.ResourceLink)
			if !ok || link.Name != "report.csv" {
				t.Fatalf("got %s %v", r.text, r.fields)
			}
			got, err := u.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: link.URI})
			if err != nil || !strings.Contains(got.Contents[0].Text+string(got.Contents[0].Blob), "lamp,12") {
				t.Errorf("got %v, %v", got, err)
			}
		},
		"answer a dialog": func(t *testing.T, u *user) {
			page := u.do("browser_open", args{"url": site + "/ask", "snapshot": "full"}).text
			r := u.do("browser_click", args{"element_ref": ref(t, page, "button", "Delete")})
			if !strings.Contains(r.text, "browser_dialog_respond") || !strings.Contains(string(r.fields["dialog"]), "Delete everything?") {
				t.Fatalf("got %s %v", r.text, r.fields)
			}
			if text := u.fails("browser_snapshot", nil, "not_ready (dialog_open)"); !strings.Contains(text, "browser_dialog_respond") {
				t.Errorf("no next step: %s", text)
			}
			u.do("browser_dialog_respond", args{"action": "accept"})
			u.sees(t, "Deleted")
		},
		"pay in a frame": func(t *testing.T, u *user) {
			u.do("browser_open", args{"url": site + "/pay"})
			u.sees(t, "Card number") // which stands in a frame of another origin
			page := u.do("browser_snapshot", nil).text
			u.do("browser_type", args{"element_ref": ref(t, page, "textbox", "Card number"), "text": "4242"})
			u.do("browser_click", args{"element_ref": ref(t, page, "button", "Pay now")})
			u.sees(t, "Bank says paid with 4242")
		},
		"endless list": func(t *testing.T, u *user) {
			u.do("browser_open", args{"url": site + "/feed"})
			for _, last := range []string{"Post 40", "Post 60", "Post 80"} {
				u.do("browser_scroll", args{"to": "bottom"})
				u.sees(t, last)
			}
			if page := u.do("browser_snapshot", nil).text; !strings.Contains(page, "Post 1\n") || strings.Contains(page, "Post 81") {
				t.Errorf("got %s", page)
			}
		},
		"checkout in one page": func(t *testing.T, u *user) {
			u.do("browser_open", args{"url": site + "/spa"})
			u.do("browser_click", args{"element_ref": u.look(t, "button", "Continue")})
			u.sees(t, "Address")
			u.do("browser_type", args{"element_ref": u.look(t, "textbox", "Street"), "text": "St James's Square 12"})
			u.do("browser_click", args{"element_ref": u.look(t, "button", "Buy")})
			u.sees(t, "We ship to St James's Square 12")
			if r := u.do("browser_wait", args{"url_matches": "**#done"}); string(r.fields["satisfied"]) != "true" {
				t.Errorf("got %v", r.fields)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { task(t, h.connect("mcp", mcp.Hello{Browser: browser}, nil).with(t)) })
	}
}

// with is the same client in a test within.
func (u *user) with(t *testing.T) *user { return &user{t, u.ClientSession} }

// Guards the main job over HTTP too, in both eras, on a real browser, with two clients that do not see each other.
func TestMainJobOverHTTP(t *testing.T) {
	h, _ := real(t, cdp.New())
	site, url := shop(t), h.http()
	for _, old := range []bool{false, true} {
		a, b := h.over(url, "ann", old), h.over(url, "ann", old)
		open := func(u *user) args {
			r := u.do("browser_open", args{"url": site + "/login"})
			if old {
				return args{}
			}
			return args{"session": r.str("session")}
		}
		with := func(base args, more args) args {
			for k, v := range base {
				more[k] = v
			}
			return more
		}
		sa, sb := open(a), open(b)
		for _, f := range [][2]string{{"input[name=user]", "ada"}, {"input[name=password]", "lovelace"}} {
			a.do("browser_type", with(sa, args{"selector": f[0], "text": f[1]}))
		}
		a.do("browser_click", with(sa, args{"text_query": "Sign in"}))
		if got := a.do("browser_snapshot", with(sa, args{})).text; !strings.Contains(got, "Welcome ada") {
			t.Errorf("old era %v: %s", old, got)
		}
		if got := b.do("browser_open", with(sb, args{"url": site + "/account", "snapshot": "full"})).text; !strings.Contains(got, "Welcome nobody") {
			t.Errorf("old era %v: another client's login is seen: %s", old, got)
		}
		shot := a.do("browser_screenshot", with(sa, args{}))
		if img, ok := shot.Content[len(shot.Content)-1].(*sdk.ImageContent); !ok || len(img.Data) < 1000 {
			t.Errorf("old era %v: no picture: %v", old, shot.text)
		}
	}
}
