package plugins

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
)

// MaxMessageBytes is the largest message that passes between host and provider, in either direction: 256 MiB. A larger
// one fails its own call with invalid_request, reason payload_too_large, and leaves the connection in order.
const MaxMessageBytes = 256 << 20

// Transport is how a provider that is built with this package is reached, as provider.describe tells it.
const Transport = "go-plugin-grpc"

// Info says what a provider is. All of it goes into provider.describe.
type Info struct {
	// ID is the provider's own name, such as "cdp": lower-case letters, digits, dashes and underscores. A host may
	// know it by another name.
	ID string
	// Label is its name for people.
	Label string
	// Version is its own version.
	Version string
	// Families are the browsers that it drives: chromium, firefox, webkit.
	Families []string
	// Features are those that hold for all its browsers; the catalog's words only.
	Features []string
	// Stability tells of methods and features that are not stable: name to experimental or deprecated.
	Stability map[string]string
}

// Server is a provider: the functions that it registered and what goes around each call. Register everything before
// Serve, Register or NewGRPC; after that its methods may be called from any number of goroutines.
type Server struct {
	info     Info
	logger   hclog.Logger
	methods  map[string]handler
	custom   map[string]customHandler
	order    []string // names of custom methods in the order of registration
	describe []func(context.Context, *browserv1.DescribeResponse) error
	closing  []func(context.Context)
	config   *configurer
	events   *hub
	tracer   trace.Tracer // nil where nothing is traced
	sealed   atomic.Bool

	life  context.Context // ends when the provider shuts down
	end   context.CancelCauseFunc
	close sync.Once
	gone  chan struct{} // closed after the OnClose functions have run
}

type handler struct {
	own    bool // the server's own answer, which Handle may replace
	method *catalog.Method
	call   func(context.Context, proto.Message) (proto.Message, error)
}

var idPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)

// NewServer makes a provider that has no methods yet but its own. It panics when the info is wrong, for that is a mistake
// of the author and not of a user.
func NewServer(info Info) *Server {
	if !idPattern.MatchString(info.ID) {
		panic(fmt.Sprintf("plugins: %q is no provider id; use lower-case letters, digits, dashes and underscores", info.ID))
	}
	for _, f := range info.Features {
		if !catalog.IsFeature(f) {
			panic(fmt.Sprintf("plugins: %q is no feature of the protocol; catalog.Features lists them", f))
		}
	}
	if info.Label == "" {
		info.Label = info.ID
	}
	life, end := context.WithCancelCause(context.Background())
	s := &Server{
		info: info, logger: newLogger(info.ID, os.Stderr), methods: map[string]handler{}, custom: map[string]customHandler{},
		events: newHub(), life: life, end: end, gone: make(chan struct{}),
	}
	s.handleOwn()
	return s
}

// Info gives what NewServer was told.
func (s *Server) Info() Info { return s.info }

// Logger gives the log that the host reads. Messages are constant, values go into snake_case keys, and page text, typed
// text, cookies and tokens never appear.
func (s *Server) Logger() hclog.Logger { return s.logger }

// Register mounts every normalized service and the plugin's own one on a gRPC server. Serve and NewGRPC call it.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	s.sealed.Store(true)
	catalog.Mount(r, s.Call)
	browserv1.RegisterPluginServiceServer(r, &pluginService{server: s})
}

// NewGRPC makes a gRPC server with this provider's services and message limits.
func (s *Server) NewGRPC(opts ...grpc.ServerOption) *grpc.Server {
	g := newGRPC(opts)
	s.Register(g)
	return g
}

func newGRPC(opts []grpc.ServerOption) *grpc.Server {
	limits := []grpc.ServerOption{grpc.MaxRecvMsgSize(MaxMessageBytes), grpc.MaxSendMsgSize(MaxMessageBytes)}
	return grpc.NewServer(append(limits, opts...)...)
}

func (s *Server) mustBeOpen(what string) {
	if s.sealed.Load() {
		panic("plugins: " + what + " after the server was started; register everything before Serve")
	}
}
