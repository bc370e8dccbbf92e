package main

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

//go:embed demo.html
var demoPage []byte

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "demo [FILE]", Short: "Show the main job on a real browser, step by step", GroupID: groupAdmin, Args: exact(0, 1, ""),
		Long: `Show the main job, step by step, with a broker of its own, a page of its own on 127.0.0.1 and a real
browser: the route, open, read, type, choose, click, wait, and a picture that is left in FILE.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			file := filepath.Join(os.TempDir(), "drover-demo.png")
			if len(args) > 0 {
				file = args[0]
			}
			a.quiet(cmd)
			return a.demo(cmd.Context(), file)
		},
	}
}

// show is a demo that runs.
type show struct {
	*app
	who     *broker.Caller
	session string
	steps   int
	began   time.Time
}

// ask calls a method as this demo's caller.
func ask[T proto.Message](ctx context.Context, s *show, req proto.Message) (T, error) {
	var none T
	m, ok := catalog.ByRequest(req)
	if !ok {
		return none, fault.New(fault.InternalError, "no method takes %T", req)
	}
	catalog.SetSessionID(req, s.session)
	resp, err := s.who.Call(ctx, m, req)
	if err != nil {
		return none, err
	}
	out, ok := resp.(T)
	if !ok {
		return none, fault.New(fault.InternalError, "%s answered with %T", m.Name, resp)
	}
	return out, nil
}

// step prints what is done, does it, and prints how long it took.
func (s *show) step(title string, do func() (string, error)) error {
	s.steps++
	began := time.Now()
	line := fmt.Sprintf("%2d  %-58s", s.steps, title)
	if terminal(s.out) {
		fmt.Fprint(s.out, s.paint(s.out, bold, line))
	}
	text, err := do()
	mark := s.paint(s.out, green, "✓")
	if err != nil {
		mark = s.paint(s.out, red, "✗")
	}
	if !terminal(s.out) {
		fmt.Fprint(s.out, line)
	}
	fmt.Fprintf(s.out, " %s %s\n", mark, s.paint(s.out, dim, fmt.Sprintf("%5d ms", time.Since(began).Milliseconds())))
	for l := range strings.Lines(text) {
		fmt.Fprintf(s.out, "      %s\n", s.paint(s.out, cyan, strings.TrimRight(l, "\n")))
	}
	return err
}

func (a *app) demo(ctx context.Context, file string) (err error) {
	s := &show{app: a, began: time.Now()}
	page, stop, err := servePage()
	if err != nil {
		return err
	}
	defer stop()
	fmt.Fprintf(a.out, "%s %s: one browser tool, any browser\n\n", a.paint(a.out, bold, "Drover"), programVersion())
	e, err := a.engine()
	if err != nil {
		return err
	}
	defer func() { err = e.closeAfter(err) }()
	e.warm(ctx)
	s.who = e.broker.Connect(broker.Principal{ID: "demo", Name: "demo"}, broker.Bound)
	if err := s.play(ctx, page, file); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "\nDone in %.1f s. The picture is %s\n", time.Since(s.began).Seconds(), a.paint(a.out, bold, file))
	fmt.Fprintf(a.out, "%s\n", a.paint(a.out, dim, "Next: drover open https://example.com, drover snapshot, drover doctor, drover --help"))
	return nil
}

// play is the main job.
func (s *show) play(ctx context.Context, page, file string) error {
	var snap *browserv1.SnapshotResponse
	ref := func(role, name string) *browserv1.Target {
		for _, el := range snap.GetElements() {
			if el.GetRole() == role && el.GetName() == name {
				return &browserv1.Target{ElementRef: proto.String(el.GetElementRef())}
			}
		}
		return &browserv1.Target{TextQuery: proto.String(name)}
	}
	return s.all(
		act{"Ask where a session would go", func() (string, error) { return s.route(ctx) }},
		act{"session.ensure: a browser session of our own", func() (string, error) {
			r, err := ask[*browserv1.EnsureSessionResponse](ctx, s, &browserv1.EnsureSessionRequest{
				ClientSessionId: "demo", Viewport: &browserv1.Size{Width: 900, Height: 640},
			})
			s.session = r.GetSessionId()
			return fmt.Sprintf("%s by the provider %s", r.GetBrowserLabel(), r.GetProviderId()), err
		}},
		act{"page.open: " + page, func() (string, error) {
			r, err := ask[*browserv1.OpenResponse](ctx, s, &browserv1.OpenRequest{Url: page})
			return fmt.Sprintf("%q, HTTP %d", r.GetTitle(), r.GetHttpStatus()), err
		}},
		act{"page.snapshot: what an agent reads", func() (_ string, err error) {
			snap, err = ask[*browserv1.SnapshotResponse](ctx, s, &browserv1.SnapshotRequest{IncludeOutline: proto.Bool(true)})
			return snap.GetOutline(), err
		}},
		act{"page.type: a name, by ref", func() (string, error) {
			r, err := ask[*browserv1.TypeResponse](ctx, s, &browserv1.TypeRequest{Target: ref("textbox", "Name"), Text: "Ada Lovelace"})
			return fmt.Sprintf("the field holds %q", r.GetValue()), err
		}},
		act{"page.select: a paper, by ref", func() (string, error) {
			r, err := ask[*browserv1.SelectResponse](ctx, s, &browserv1.SelectRequest{Target: ref("combobox", "Paper"), Labels: []string{"Dotted"}})
			return fmt.Sprintf("selected %s", strings.Join(r.GetSelected(), ", ")), err
		}},
		act{"page.click: \"Place order\", by the text that a person sees", func() (string, error) {
			_, err := ask[*browserv1.ClickResponse](ctx, s, &browserv1.ClickRequest{Target: &browserv1.Target{TextQuery: proto.String("Place order")}})
			return "", err
		}},
		act{"page.wait: until the shop says thank you", func() (string, error) {
			r, err := ask[*browserv1.WaitResponse](ctx, s, &browserv1.WaitRequest{TextPresent: proto.String("Thank you, Ada Lovelace!")})
			if err == nil && !r.GetSatisfied() {
				err = fault.New(fault.NotReady, "the page did not say it in time").Reason("deadline_exceeded")
			}
			return "", err
		}},
		act{"page.screenshot: what a person sees", func() (string, error) {
			r, err := ask[*browserv1.ScreenshotResponse](ctx, s, &browserv1.ScreenshotRequest{})
			if err != nil {
				return "", err
			}
			path, err := writeFile(file, r.GetImage())
			return fmt.Sprintf("%s, %d × %d, %d KiB", path, r.GetWidth(), r.GetHeight(), len(r.GetImage())>>10), err
		}},
		act{"session.close", func() (string, error) {
			_, err := ask[*browserv1.CloseSessionResponse](ctx, s, &browserv1.CloseSessionRequest{})
			return "", err
		}},
	)
}

// act is one step of the demo.
type act struct {
	title string
	do    func() (string, error)
}

func (s *show) all(acts ...act) error {
	for _, x := range acts {
		if err := s.step(x.title, x.do); err != nil {
			return err
		}
	}
	return nil
}

// route explains where session.ensure would go.
func (s *show) route(ctx context.Context) (string, error) {
	x, err := explain(ctx, s.who, must("session.ensure"), []byte(`{"client_session_id":"demo"}`))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	plain := &app{out: &b, err: &b}
	plain.writeRoute("", x)
	return b.String(), nil
}

// servePage serves the demo's page on a free port of 127.0.0.1.
func servePage() (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fault.New(fault.InternalError, "a port for the demo's page: %v", err).Cause(err)
	}
	srv := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(demoPage)
		}),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l)
	}()
	return "http://" + l.Addr().String() + "/", func() {
		_ = srv.Close()
		<-done
	}, nil
}
