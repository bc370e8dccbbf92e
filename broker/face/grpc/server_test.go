package grpc_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/brokertest"
	"github.com/droverhq/drover/broker/face/door"
	grpcface "github.com/droverhq/drover/broker/face/grpc"
	"github.com/droverhq/drover/broker/face/grpc/client"
	"github.com/droverhq/drover/broker/token"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// tokens are those of any number of callers.
type tokens struct{}

func (tokens) Lookup(plain string) (token.Token, bool) {
	if name, ok := strings.CutPrefix(plain, "secret-"); ok {
		return token.Token{ID: name, Name: name}, true
	}
	return token.Token{}, false
}

// house is a face before a broker with a fake behind it, on both kinds of sockets.
type house struct {
	fake      *brokertest.Fake
	broker    *broker.Broker
	unix, tcp string
}

func build(t testing.TB) *house {
	t.Helper()
	f := brokertest.New("cdp", []string{"chromium"}, "js_eval")
	b := broker.New(broker.Options{Sources: []broker.Source{f}, Version: "test"})
	s := grpcface.New(grpcface.Options{Broker: b, Tokens: tokens{}})
	dir, err := os.MkdirTemp("", "drvg") // short, since the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "g.sock")
	u, err := door.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	go func() { done <- s.ServeUnix(u) }()
	go func() { done <- s.ServeTCP(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s.Close(ctx)
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("serve: %v", err)
			}
		}
		b.Close(ctx)
	})
	return &house{fake: f, broker: b, unix: "unix://" + path, tcp: l.Addr().String()}
}

func dial(t testing.TB, target, token string) *client.Client {
	t.Helper()
	c, err := client.Dial(target, client.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func ensure(t testing.TB, c *client.Client, name string) string {
	t.Helper()
	s, err := client.Call[*browserv1.EnsureSessionResponse](t.Context(), c, &browserv1.EnsureSessionRequest{ClientSessionId: name})
	if err != nil {
		t.Fatal(err)
	}
	return s.GetSessionId()
}

// Guards the main way over both kinds of sockets, and that two principals never meet in one session.
func TestCalls(t *testing.T) {
	h := build(t)
	ids := map[string]bool{}
	for _, c := range []*client.Client{dial(t, h.unix, ""), dial(t, h.tcp, "secret-ann"), dial(t, h.tcp, "secret-bob")} {
		id := ensure(t, c, "same")
		if ids[id] {
			t.Errorf("two principals share %s", id)
		}
		ids[id] = true
		p, err := client.Call[*browserv1.OpenResponse](t.Context(), c, &browserv1.OpenRequest{SessionId: id, Url: "http://a.test/"})
		if err != nil || p.GetUrl() != "http://a.test/" {
			t.Errorf("got %v, %v", p, err)
		}
	}
	id := ensure(t, dial(t, h.tcp, "secret-ann"), "same")
	_, err := client.Call[*browserv1.OpenResponse](t.Context(), dial(t, h.tcp, "secret-bob"), &browserv1.OpenRequest{SessionId: id, Url: "http://a.test/"})
	if fault.CodeOf(err) != fault.SessionNotFound {
		t.Errorf("another principal's session: %v", err)
	}
	// A generated stub works as well.
	if _, err := browserv1.NewTabServiceClient(dial(t, h.unix, "").Conn()).ListTabs(t.Context(), &browserv1.ListTabsRequest{SessionId: ensure(t, dial(t, h.unix, ""), "same")}); err != nil {
		t.Error(err)
	}
}

// Guards that over TCP nobody gets in without a token, whatever they call.
func TestNoTokenNoCall(t *testing.T) {
	h := build(t)
	conn, err := grpc.NewClient(h.tcp, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for name, ctx := range map[string]context.Context{
		"none":  t.Context(),
		"wrong": metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer nope"),
		"two":   metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer secret-a", "authorization", "Bearer secret-b"),
	} {
		_, err := browserv1.NewSessionServiceClient(conn).ListSessions(ctx, &browserv1.ListSessionsRequest{})
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: a call: %v", name, err)
		}
		stream, err := browserv1.NewEventServiceClient(conn).WatchEvents(ctx, &browserv1.WatchEventsRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: events: %v", name, err)
		}
		r, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
		if err == nil {
			_, err = r.Recv()
		}
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: reflection: %v", name, err)
		}
	}
	if _, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Errorf("health wants a token: %v", err)
	}
}

// Guards errors: the protocol's own for our client, google.rpc's details for everybody else.
func TestErrorDetails(t *testing.T) {
	h := build(t)
	c := dial(t, h.unix, "")
	id := ensure(t, c, "s")
	h.fake.On("page.click", func(context.Context, proto.Message) (proto.Message, error) {
		return nil, fault.New(fault.NotReady, "full").Reason("capacity").RetryAfter(1500)
	})
	click := &browserv1.ClickRequest{SessionId: id, Target: &browserv1.Target{Selector: proto.String("a")}}
	_, err := client.Call[*browserv1.ClickResponse](t.Context(), c, click)
	if fault.CodeOf(err) != fault.NotReady || fault.ReasonOf(err) != "capacity" || fault.From(err).Details["after_ms"] != 1500.0 {
		t.Errorf("got %v", err)
	}
	_, err = browserv1.NewPageServiceClient(c.Conn()).Click(t.Context(), click)
	var info *errdetails.ErrorInfo
	var retry *errdetails.RetryInfo
	for _, d := range status.Convert(err).Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			info = d
		case *errdetails.RetryInfo:
			retry = d
		}
	}
	if info.GetReason() != "not_ready" || info.GetDomain() != "drover" || info.GetMetadata()["reason"] != "capacity" || info.GetMetadata()["provider_id"] != "cdp" {
		t.Errorf("ErrorInfo %v", info)
	}
	if retry.GetRetryDelay().AsDuration() != 1500*time.Millisecond {
		t.Errorf("RetryInfo %v", retry)
	}
	_, err = browserv1.NewPageServiceClient(c.Conn()).Open(t.Context(), &browserv1.OpenRequest{SessionId: id})
	var bad *errdetails.BadRequest
	for _, d := range status.Convert(err).Details() {
		if b, ok := d.(*errdetails.BadRequest); ok {
			bad = b
		}
	}
	if status.Code(err) != codes.InvalidArgument || bad.GetFieldViolations()[0].GetField() != "url" {
		t.Errorf("got %v, %v", err, bad)
	}
	_, err = client.Call[*browserv1.SubscribeResponse](t.Context(), c, &browserv1.SubscribeRequest{})
	if fault.CodeOf(err) != fault.UnsupportedMethod || !strings.Contains(err.Error(), "WatchEvents") {
		t.Errorf("got %v", err)
	}
}

// Guards deadlines and cancellation: they reach the provider.
func TestDeadlineReachesTheProvider(t *testing.T) {
	h := build(t)
	c := dial(t, h.unix, "")
	id := ensure(t, c, "s")
	ended := make(chan error, 1)
	h.fake.On("page.open", func(ctx context.Context, _ proto.Message) (proto.Message, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, fault.From(ctx.Err())
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := client.Call[*browserv1.OpenResponse](ctx, c, &browserv1.OpenRequest{SessionId: id, Url: "http://a.test/"})
	if r := fault.ReasonOf(err); r != "deadline_exceeded" {
		t.Errorf("got %v", err)
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the provider was not told")
	}
}

// Guards events: they come from when the stream says so, to their own principal alone.
func TestEvents(t *testing.T) {
	h := build(t)
	ann, bob := dial(t, h.tcp, "secret-ann"), dial(t, h.tcp, "secret-bob")
	id := ensure(t, ann, "s")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got := make(chan *browserv1.Event, 8)
	ready := make(chan struct{}, 2)
	listen := func(c *client.Client) {
		for ev, err := range c.Events(ctx, []string{"session.closed"}, nil, func() { ready <- struct{}{} }) {
			if err != nil {
				return
			}
			got <- ev
		}
	}
	done := make(chan struct{}, 2)
	for _, c := range []*client.Client{ann, bob} {
		go func() { listen(c); done <- struct{}{} }()
	}
	<-ready
	<-ready
	if _, err := client.Call[*browserv1.CloseSessionResponse](ctx, ann, &browserv1.CloseSessionRequest{SessionId: id}); err != nil {
		t.Fatal(err)
	}
	ev := <-got
	if ev.GetType() != "session.closed" || ev.GetPayload().GetFields()["session_id"].GetStringValue() != id {
		t.Errorf("got %v", ev)
	}
	cancel()
	<-done
	<-done
	if len(got) > 0 {
		t.Errorf("another principal heard %v", <-got)
	}
	for _, err := range ann.Events(t.Context(), []string{"page.opend"}, nil, nil) {
		if fault.CodeOf(err) != fault.InvalidRequest || !strings.Contains(err.Error(), "page.opened") {
			t.Errorf("an unknown type: %v", err)
		}
	}
}

// Guards health: the broker's and each provider's, as they are when asked, and told when they change.
func TestHealth(t *testing.T) {
	h := build(t)
	hc := grpc_health_v1.NewHealthClient(dial(t, h.unix, "").Conn())
	check := func(service string) grpc_health_v1.HealthCheckResponse_ServingStatus {
		t.Helper()
		r, err := hc.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetStatus()
	}
	if check("") != grpc_health_v1.HealthCheckResponse_SERVING || check("provider.cdp") != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Error("it is not healthy")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch, err := hc.Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: "provider.cdp"})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := watch.Recv(); err != nil || first.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("got %v, %v", first, err)
	}
	down := brokertest.New("cdp", []string{"chromium"})
	down.State = &browserv1.StatusResponse{Availability: browserv1.Availability_AVAILABILITY_UNAVAILABLE, State: "unavailable"}
	h.broker.SetSources([]broker.Source{down})
	h.broker.Changed("cdp")
	if next, err := watch.Recv(); err != nil || next.GetStatus() != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("got %v, %v", next, err)
	}
	if check("") != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Error("the broker is healthy without a provider")
	}
	if _, err := hc.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "nope"}); status.Code(err) != codes.NotFound {
		t.Errorf("got %v", err)
	}
}

// Guards reflection: a client without stubs finds every service.
func TestReflection(t *testing.T) {
	h := build(t)
	stream, err := grpc_reflection_v1.NewServerReflectionClient(dial(t, h.tcp, "secret-ann").Conn()).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(r *grpc_reflection_v1.ServerReflectionRequest) *grpc_reflection_v1.ServerReflectionResponse {
		t.Helper()
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	list := ask(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}})
	var names []string
	for _, s := range list.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	for _, want := range []string{"browser.v1.PageService", "browser.v1.EventService", "grpc.health.v1.Health"} {
		if !strings.Contains(strings.Join(names, " "), want) {
			t.Errorf("no %s in %v", want, names)
		}
	}
	file := ask(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "browser.v1.PageService"},
	})
	if len(file.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
		t.Errorf("got %v", file)
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
}

// Guards large messages in both directions.
func TestLargeMessages(t *testing.T) {
	h := build(t)
	c := dial(t, h.unix, "")
	id := ensure(t, c, "s")
	h.fake.On("page.type", func(_ context.Context, r proto.Message) (proto.Message, error) {
		text := r.(*browserv1.TypeRequest).GetText()
		return &browserv1.TypeResponse{Typed: true, Value: &text}, nil
	})
	text := strings.Repeat("x", 20<<20)
	r, err := client.Call[*browserv1.TypeResponse](t.Context(), c, &browserv1.TypeRequest{SessionId: id, Text: text})
	if err != nil || len(r.GetValue()) != len(text) {
		t.Errorf("%d bytes, %v", len(r.GetValue()), err)
	}
}

// Guards the word for a broker that is not there.
func TestUnreachable(t *testing.T) {
	_, err := client.Call[*browserv1.ListSessionsResponse](t.Context(), dial(t, "unix://"+filepath.Join(t.TempDir(), "none"), ""), &browserv1.ListSessionsRequest{})
	if fault.CodeOf(err) != fault.NotReady || fault.ReasonOf(err) != "unreachable" {
		t.Errorf("got %v", err)
	}
}

func BenchmarkCall(b *testing.B) {
	h := build(b)
	h.fake.Deaf = true
	c := dial(b, h.unix, "")
	id := ensure(b, c, "s")
	for b.Loop() {
		if _, err := client.Call[*browserv1.ListTabsResponse](b.Context(), c, &browserv1.ListTabsRequest{SessionId: id}); err != nil {
			b.Fatal(err)
		}
	}
}
