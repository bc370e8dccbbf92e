package firefox

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/providers/bidi"
	"github.com/droverhq/drover/providers/firefox/firefoxtest"
)

// BenchmarkBesideBiDi measures a click and a snapshot in one Firefox, by turns through the add-on and over WebDriver BiDi.
func BenchmarkBesideBiDi(b *testing.B) {
	dir, err := os.MkdirTemp("", "drover-fxb-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	b.Setenv("XDG_RUNTIME_DIR", dir)
	f, err := firefoxtest.Start(b.Context(), options(dir))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(f.Close)
	if err := awaitSockets(1); err != nil {
		b.Fatal(err)
	}
	if err := f.Release(b.Context()); err != nil {
		b.Fatal(err)
	}
	var rows strings.Builder
	for i := range 500 {
		fmt.Fprintf(&rows, `<p>Row %d <a href="#%d">Open %d</a> <button>Edit %d</button></p>`, i, i, i, i)
	}
	base := site(b, map[string]string{"/": formPage, "/rows": "<title>Rows</title>" + rows.String()})
	config, err := structpb.NewStruct(map[string]any{"attach_url": f.Address})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		srv    *plugins.Server
		config *structpb.Struct
	}{{"addon", New(), nil}, {"bidi", bidi.New(), config}} {
		call := func(req proto.Message) proto.Message {
			m, _ := catalog.ByRequest(req)
			resp, err := c.srv.Call(b.Context(), m, req)
			if err != nil {
				b.Fatal(c.name, err)
			}
			return resp
		}
		call(&browserv1.ConfigureRequest{Config: c.config, Host: &browserv1.HostSettings{RunDir: b.TempDir()}})
		s := call(&browserv1.EnsureSessionRequest{ClientSessionId: "bench", BrowserPreference: ptr(family), Attach: browserv1.Attach_ATTACH_REQUIRE.Enum()}).(*browserv1.EnsureSessionResponse)
		id := s.GetSessionId()
		call(&browserv1.OpenRequest{SessionId: id, Url: base + "/"})
		b.Run("click/"+c.name, func(b *testing.B) {
			for range b.N {
				call(&browserv1.ClickRequest{SessionId: id, Target: bySelector("button")})
			}
		})
		b.Run("snapshot small/"+c.name, func(b *testing.B) {
			for range b.N {
				call(&browserv1.SnapshotRequest{SessionId: id})
			}
		})
		call(&browserv1.OpenRequest{SessionId: id, Url: base + "/rows"})
		b.Run("snapshot 500 rows/"+c.name, func(b *testing.B) {
			for range b.N {
				call(&browserv1.SnapshotRequest{SessionId: id})
			}
		})
		c.srv.Close(b.Context())
	}
}
