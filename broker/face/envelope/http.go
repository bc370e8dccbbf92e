package envelope

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/face/door"
	"github.com/droverhq/drover/broker/trace"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Server is the HTTP face: POST /v1/call, GET /v1/ws, GET /v1/events, GET /v1/artifacts/REF, GET /v1/openapi.json, /metrics,
// /livez, /readyz. The zero value of everything but Broker and Door is good.
type Server struct {
	Broker *broker.Broker
	// Door decides who may come in; its Refuse is set by the server.
	Door door.Door
	// Mounts are other faces behind the same door, by path, such as /mcp.
	Mounts map[string]http.Handler
	Logger hclog.Logger

	limit   int           // of a message, in bytes
	beat    time.Duration // of a stream of events; 0 for beatEvery
	wait    time.Duration // for the body of a request; 0 for bodyWait
	paths   []string      // that Handler serves, as its mux knows them
	sockets sync.WaitGroup
	open    connections
	once    sync.Once
	life    context.Context // of streams of events; ends at EndStreams
	end     context.CancelFunc
}

// init makes what the zero value lacks.
func (s *Server) init() {
	s.once.Do(func() { s.life, s.end = context.WithCancel(context.Background()) })
}

// EndStreams ends the streams of events, which would hold up a server that waits for its requests.
func (s *Server) EndStreams() {
	s.init()
	s.end()
}

// Handler gives what the server serves.
func (s *Server) Handler() http.Handler {
	if s.limit == 0 {
		s.limit = MaxMessage
	}
	if s.Logger == nil {
		s.Logger = hclog.NewNullLogger()
	}
	s.init()
	s.Door.Refuse = writeError
	if s.wait == 0 {
		s.wait = bodyWait
	}
	mux := http.NewServeMux()
	s.paths = nil
	serve := func(pattern string, h http.Handler) {
		mux.Handle(pattern, h)
		s.paths = append(s.paths, pattern)
	}
	guarded := func(pattern string, h http.Handler) { serve(pattern, s.Door.Guard(h)) }
	guarded("POST /v1/call", s.traced("POST /v1/call", s.call))
	guarded("GET /v1/ws", http.HandlerFunc(s.socket))
	guarded("GET /v1/events", http.HandlerFunc(s.events))
	guarded("GET /v1/artifacts/{ref...}", s.traced("GET /v1/artifacts/{ref}", s.artifact))
	guarded("GET /v1/openapi.json", http.HandlerFunc(s.describe))
	guarded("GET /metrics", promhttp.HandlerFor(s.Broker.Metrics(), promhttp.HandlerOpts{EnableOpenMetrics: true}))
	for path, h := range s.Mounts {
		guarded(path, h)
	}
	serve("GET /livez", s.Door.Open(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	})))
	serve("GET /readyz", s.Door.Open(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !s.Broker.Ready() {
			http.Error(w, "no provider is ready", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})))
	guarded("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, fault.New(fault.UnsupportedMethod, "there is no %s %s", r.Method, clip([]byte(r.URL.Path))).
			Hint("calls go to POST /v1/call"))
	}))
	return bounded(s.wait, s.clean(mux))
}

// clean has the door, and not the mux, answer for a path that the mux would redirect to a clean one before anybody looked
// at the request.
func (s *Server) clean(mux *http.ServeMux) http.Handler {
	refuse := s.Door.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, fault.New(fault.UnsupportedMethod, "there is no path %s", clip([]byte(r.URL.Path))).
			Hint("write the path without // and dots"))
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.Path; p == "" || p[0] != '/' || path.Clean(p) != p && path.Clean(p)+"/" != p {
			refuse.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// Serve answers on a listener until ctx ends; calls under way are then given a moment, and connections that stay open
// are closed.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: s.Handler(), BaseContext: func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: s.Logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	done := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		cancel() // calls under way, WebSockets and streams end
		late, release := context.WithTimeout(context.WithoutCancel(ctx), abortWait)
		defer release()
		err := server.Shutdown(late)
		done <- errors.Join(err, server.Close())
	})
	err := server.Serve(l)
	if !stop() {
		if late := <-done; late != nil {
			s.Logger.Debug("connections were cut", "error", late)
		}
	}
	cancel()
	s.sockets.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve HTTP: %w", err)
}

// traced answers within a span that goes on with the trace that the request's headers name.
func (s *Server) traced(route string, answer http.HandlerFunc) http.Handler {
	method, path, _ := strings.Cut(route, " ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, span := s.Broker.Tracer().Serve(trace.FromHeader(r.Context(), r.Header), route,
			attribute.String("http.request.method", method), attribute.String("http.route", path))
		defer span.End(nil) // how the call went is told by the spans within
		answer(w, r.WithContext(ctx))
	})
}

// call answers one envelope in one body.
func (s *Server) call(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		writeError(w, http.StatusUnsupportedMediaType, fault.New(fault.InvalidRequest, "the content type must be application/json").Field("Content-Type"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.limit)))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		writeError(w, http.StatusRequestEntityTooLarge, tooLarge(s.limit))
		return
	case err != nil:
		writeError(w, brokeOff(err), fault.New(fault.InvalidRequest, "the body broke off").Cause(err))
		return
	}
	req, err := parse(trim(body))
	if err != nil {
		writeJSON(w, statusOf(err), err, answer(req.id, nil, err))
		return
	}
	m, msg, err := req.read()
	if err != nil {
		writeJSON(w, statusOf(err), err, answer(req.id, nil, err))
		return
	}
	who, _ := door.Principal(r.Context())
	resp, err := s.Broker.Connect(who, broker.Unbound).Call(r.Context(), m, msg)
	writeJSON(w, statusOf(err), err, answer(req.id, resp, err))
}

// artifactMethod reads what calls left behind.
const artifactMethod = "artifact.get"

// artifact streams a picture or file that a call left behind: GET /v1/artifacts/REF?session_id=SESSION. Browsers are told
// to make nothing of it: it may be any file of any site.
func (s *Server) artifact(w http.ResponseWriter, r *http.Request) {
	who, _ := door.Principal(r.Context())
	caller := s.Broker.Connect(who, broker.Unbound)
	session := r.URL.Query().Get("session_id")
	if session == "" {
		err := fault.New(fault.InvalidRequest, "session_id is required").Field("session_id").Hint("add ?session_id=SESSION to the path")
		writeError(w, statusOf(err), err)
		return
	}
	m, _, err := request{method: artifactMethod, params: []byte("{}")}.read()
	if err != nil {
		writeError(w, statusOf(err), err)
		return
	}
	for offset, first := int64(0), true; ; first = false {
		resp, err := caller.Call(r.Context(), m, &browserv1.GetArtifactRequest{SessionId: session, Ref: r.PathValue("ref"), Offset: offset})
		part, ok := resp.(*browserv1.GetArtifactResponse)
		switch {
		case err == nil && !ok:
			err = fault.New(fault.InternalError, "the provider gave no artifact")
			fallthrough
		case err != nil:
			if first {
				writeError(w, statusOf(err), err)
				return
			}
			panic(http.ErrAbortHandler) // the part that was sent must not look whole
		}
		if first {
			artifactHead(w.Header(), part)
		}
		if _, err := w.Write(part.GetData()); err != nil {
			return
		}
		offset += int64(len(part.GetData()))
		if part.GetEof() || len(part.GetData()) == 0 {
			return
		}
	}
}

func artifactHead(h http.Header, part *browserv1.GetArtifactResponse) {
	kind := part.GetMediaType()
	if kind == "" {
		kind = "application/octet-stream"
	}
	h.Set("Content-Type", kind)
	h.Set("Content-Length", fmt.Sprint(part.GetSize()))
	h.Set("Content-Disposition", "attachment")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
}
