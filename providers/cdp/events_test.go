package cdp

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// What happens in a session is told as it happens, with its session and page.
func TestEvents(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{
		"/": "<title>E</title><script>console.error('oops')</script><button onclick=\"window.open('/child')\">Open</button><button onclick=\"alert('x')\">Alert</button><a href='/dl/a?name=f.txt'>Get</a>", "/child": "<title>C</title>",
	})
	pipe := bufconn.Listen(1 << 20)
	g := r.srv.NewGRPC()
	served := make(chan error, 1)
	go func() { served <- g.Serve(pipe) }()
	conn, err := grpc.NewClient("passthrough:///pipe", grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return pipe.Dial() }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(func() { cancel(); conn.Close(); g.Stop(); <-served })
	stream, err := browserv1.NewPluginServiceClient(conn).Events(ctx, &browserv1.EventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	u := r.session("events")
	u.open(base + "/")
	u.clickOn("button", "Open")
	u.clickOn("button", "Alert")
	do[*browserv1.RespondDialogResponse](r, &browserv1.RespondDialogRequest{SessionId: u.id, Action: browserv1.DialogAction_DIALOG_ACTION_ACCEPT})
	u.clickOn("link", "Get")
	do[*browserv1.WaitDownloadResponse](r, &browserv1.WaitDownloadRequest{SessionId: u.id})
	tabs := do[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: u.id}).GetTabs()
	do[*browserv1.CloseTabResponse](r, &browserv1.CloseTabRequest{SessionId: u.id, PageId: ptr(tabs[1].GetPageId())})
	missing := []string{"page.opened", "page.navigated", "console.message", "dialog.opened", "dialog.closed", "download.started", "download.finished", "page.closed"}
	for len(missing) > 0 {
		e, err := stream.Recv()
		if err != nil {
			t.Fatalf("%v did not come: %v", missing, err)
		}
		payload := e.GetEvent().GetPayload().AsMap()
		if payload["session_id"] != u.id || payload["page_id"] == nil {
			t.Errorf("%s tells %v", e.GetEvent().GetType(), payload)
		}
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == e.GetEvent().GetType() })
	}
}
