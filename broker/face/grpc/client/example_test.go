package client_test

import (
	"context"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/face/grpc/client"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.Dial("unix:///run/user/1000/drover/drover.sock.grpc", client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close() }()

	session, err := client.Call[*browserv1.EnsureSessionResponse](ctx, c, &browserv1.EnsureSessionRequest{ClientSessionId: "docs"})
	if err != nil {
		fmt.Println(fault.Word(fault.CodeOf(err)), fault.ReasonOf(err))
		return
	}
	page, err := client.Call[*browserv1.OpenResponse](ctx, c, &browserv1.OpenRequest{SessionId: session.GetSessionId(), Url: "https://example.com"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(page.GetTitle())
}
