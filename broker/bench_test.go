package broker_test

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/brokertest"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
)

// BenchmarkCall is what the broker adds to a call: a provider that answers at once, in this process.
func BenchmarkCall(b *testing.B) {
	answer := &browserv1.EvalResponse{}
	f := brokertest.New("null", []string{"chromium"}).On("page.eval", func(context.Context, proto.Message) (proto.Message, error) { return answer, nil })
	f.Deaf = true
	br := broker.New(broker.Options{Sources: []broker.Source{f}})
	defer br.Close(context.Background())
	who := br.Connect(broker.Principal{ID: "bench", Name: "bench"}, broker.Unbound)
	ensure, _ := catalog.Lookup("session.ensure")
	resp, err := who.Call(b.Context(), ensure, &browserv1.EnsureSessionRequest{ClientSessionId: "a"})
	if err != nil {
		b.Fatal(err)
	}
	session := resp.(*browserv1.EnsureSessionResponse).GetSessionId()
	eval, _ := catalog.Lookup("page.eval")
	for b.Loop() {
		if _, err := who.Call(b.Context(), eval, &browserv1.EvalRequest{SessionId: session, Expression: "1"}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRoute is what it takes to choose among ten providers.
func BenchmarkRoute(b *testing.B) {
	var sources []broker.Source
	for _, id := range []string{"cdp", "bidi", "webdriver", "firefox", "extension", "a", "b", "c", "d", "e"} {
		sources = append(sources, brokertest.New(id, []string{"chromium", "firefox"}))
	}
	br := broker.New(broker.Options{Sources: sources})
	defer br.Close(context.Background())
	who := br.Connect(broker.Principal{ID: "bench", Name: "bench"}, broker.Unbound)
	ensure, _ := catalog.Lookup("session.ensure")
	ask := &browserv1.EnsureSessionRequest{ClientSessionId: "a", BrowserPreference: proto.String("firefox"), RequireMethods: []string{"page.open"}}
	for b.Loop() {
		if _, err := br.Explain(b.Context(), who, ensure, ask); err != nil {
			b.Fatal(err)
		}
	}
}
