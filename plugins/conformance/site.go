package conformance

import (
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"
)

//go:embed site
var pages embed.FS

// site serves the suite's pages on two origins of the loopback interface.
type site struct {
	url, other string
	dead       string // an origin where nobody listens
	servers    []*http.Server
	done       []chan struct{}
	stop       context.CancelFunc
}

// serve starts the site.
func serve() (*site, error) {
	ctx, stop := context.WithCancel(context.Background())
	s := &site{stop: stop}
	for _, to := range []*string{&s.url, &s.other} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.close()
			return nil, fmt.Errorf("the suite's site: %w", err)
		}
		*to = "http://" + l.Addr().String()
		server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
		done := make(chan struct{})
		s.servers, s.done = append(s.servers, server), append(s.done, done)
		go func() {
			defer close(done)
			_ = server.Serve(l) // it ends with close, and with nothing else
		}()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.close()
		return nil, fmt.Errorf("the suite's site: %w", err)
	}
	s.dead = "http://" + l.Addr().String()
	_ = l.Close()
	return s, nil
}

func (s *site) close() {
	s.stop()
	for i, server := range s.servers {
		_ = server.Close()
		<-s.done[i]
	}
}

func (s *site) handler() http.Handler {
	files, err := fs.Sub(pages, "site")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/form.html", http.StatusFound) })
	mux.HandleFunc("GET /missing", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<!doctype html><title>Not here</title><p>Nothing is here")
	})
	mux.HandleFunc("GET /never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("GET /file", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", `attachment; filename="plain.txt"`)
		_, _ = io.WriteString(w, "plain words\n")
	})
	mux.HandleFunc("GET /cookie", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "who", Value: r.URL.Query().Get("who"), Path: "/"})
		s.html(w, "cookie", "set")
	})
	mux.HandleFunc("GET /seen", func(w http.ResponseWriter, r *http.Request) {
		s.html(w, "seen", "cookies: ["+strings.ReplaceAll(r.Header.Get("Cookie"), "<", "")+"]")
	})
	mux.HandleFunc("GET /frames", func(w http.ResponseWriter, _ *http.Request) {
		s.html(w, "frames", `outer<iframe title=near src="/inner.html"></iframe><iframe title=far src="`+s.other+`/inner.html?far"></iframe>`)
	})
	return mux
}

func (s *site) html(w http.ResponseWriter, title, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html><title>%s</title><p>%s", title, body)
}
