package envelope

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/brokertest"
	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newFake is a provider whose clicks do as their selector says: "stuck" hangs until it is cancelled, "slow" takes a while
// and reports progress, "gone" is not found.
func newFake() *brokertest.Fake {
	f := brokertest.New("cdp", []string{"chromium"}, "element_refs")
	f.On("page.click", func(ctx context.Context, req proto.Message) (proto.Message, error) {
		switch r := req.(*browserv1.ClickRequest); r.GetTarget().GetSelector() {
		case "stuck":
			<-ctx.Done()
			return nil, fault.From(context.Cause(ctx))
		case "slow":
			t := time.NewTimer(100 * time.Millisecond)
			defer t.Stop()
			<-t.C
		case "gone":
			return nil, fault.New(fault.ElementNotFound, "nothing matches").Field("selector")
		case "dialog":
			s, err := structpb.NewStruct(map[string]any{"session_id": r.GetSessionId(), "page_id": "page-1", "type": "alert"})
			if err != nil {
				return nil, err
			}
			f.Emit(&browserv1.Event{Type: "dialog.opened", Payload: s})
		}
		return &browserv1.ClickResponse{PageId: "page-1", Clicked: true, Warnings: []*browserv1.Warning{{Code: "note", Message: "a warning"}}}, nil
	})
	f.On("artifact.get", func(_ context.Context, req proto.Message) (proto.Message, error) {
		r := req.(*browserv1.GetArtifactRequest)
		if r.GetRef() != "shots/1" {
			return nil, fault.New(fault.InvalidRequest, "there is no artifact %q", r.GetRef()).Field("ref")
		}
		body := []byte("<html>not for the browser</html>")
		end := min(int(r.GetOffset())+10, len(body))
		return &browserv1.GetArtifactResponse{Data: body[r.GetOffset():end], MediaType: "text/html", Size: int64(len(body)), Eof: end == len(body)}, nil
	})
	return f
}

func newBroker(t testing.TB, config string, fakes ...*brokertest.Fake) *broker.Broker {
	t.Helper()
	c := policy.Default()
	if config != "" {
		var err error
		if c, err = policy.Load("test.hcl", []byte(config)); err != nil {
			t.Fatal(err)
		}
	}
	var sources []broker.Source
	for _, f := range fakes {
		sources = append(sources, f)
	}
	b := broker.New(broker.Options{Policy: policy.New(c), Sources: sources, Version: "test"})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
		defer cancel()
		b.Close(ctx)
	})
	return b
}

// talk is one conversation over a line connection.
type talk struct {
	t    testing.TB
	in   *io.PipeWriter
	out  chan string
	done chan error
	stop context.CancelFunc
	vars map[string]string
}

// start serves a conversation; a message may be limit bytes long.
func start(t testing.TB, caller *broker.Caller, limit int) *talk {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	k := &talk{t: t, in: inW, out: make(chan string, 1000), done: make(chan error, 1), stop: cancel, vars: map[string]string{}}
	go func() {
		err := serveLines(ctx, caller, inR, outW, limit)
		inR.Close()
		outW.Close()
		k.done <- err
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(k.out)
		r := bufio.NewReader(outR)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				if line != "" {
					t.Errorf("half a line came: %s", line)
				}
				return
			}
			k.out <- strings.TrimSuffix(line, "\n")
		}
	}()
	t.Cleanup(func() {
		cancel()
		inW.Close()
		<-read
	})
	return k
}

func (k *talk) send(line string) {
	k.t.Helper()
	if _, err := io.WriteString(k.in, line+"\n"); err != nil {
		k.t.Fatalf("send: %v", err)
	}
}

// sendAside sends while the test goes on.
func (k *talk) sendAside(text string) {
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(k.in, text)
		sent <- err
	}()
	k.t.Cleanup(func() {
		if err := <-sent; err != nil {
			k.t.Errorf("send: %v", err)
		}
	})
}

// receive gives the next message.
func (k *talk) receive() string {
	k.t.Helper()
	timer := time.NewTimer(10 * time.Second)
	defer timer.Stop()
	select {
	case line, ok := <-k.out:
		if !ok {
			k.t.Fatal("the connection ended")
		}
		return line
	case <-timer.C:
		k.t.Fatal("no message came")
	}
	return ""
}

// expect tests that the next message holds what a pattern holds: members that the pattern lacks may be anything, "*" is
// anything, "$x" is anything and is kept as $x.
func (k *talk) expect(patterns ...string) {
	k.t.Helper()
	for range len(patterns) {
		line := k.receive()
		var why string
		for i, p := range patterns {
			if why = k.matches(p, line); why == "" {
				patterns = slices.Delete(patterns, i, i+1)
				break
			}
		}
		if why != "" {
			k.t.Fatalf("%s\n got %s\nwant %s", why, line, strings.Join(patterns, "\n  or "))
		}
	}
}

func (k *talk) matches(pattern, line string) string {
	k.t.Helper()
	var want, got any
	if err := json.Unmarshal([]byte(k.expand(pattern)), &want); err != nil {
		k.t.Fatalf("the pattern %s: %v", pattern, err)
	}
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		k.t.Fatalf("not JSON: %s", line)
	}
	return k.match(want, got, "")
}

func (k *talk) expand(s string) string {
	for name, value := range k.vars {
		s = strings.ReplaceAll(s, "$"+name, value)
	}
	return s
}

func (k *talk) match(want, got any, at string) string {
	switch w := want.(type) {
	case string:
		if w == "*" {
			return ""
		}
		if name, ok := strings.CutPrefix(w, "$"); ok {
			k.vars[name] = fmt.Sprint(got)
			return ""
		}
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v", at, got)
		}
		for key, v := range w {
			x, there := g[key]
			if !there {
				return fmt.Sprintf("%s.%s is missing", at, key)
			}
			if why := k.match(v, x, at+"."+key); why != "" {
				return why
			}
		}
		return ""
	}
	if w, ok := want.([]any); ok {
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s is %v", at, got)
		}
		for i := range w {
			if why := k.match(w[i], g[i], fmt.Sprintf("%s[%d]", at, i)); why != "" {
				return why
			}
		}
		return ""
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Sprintf("%s is %v, not %v", at, got, want)
	}
	return ""
}

// ended waits for the end of the conversation.
func (k *talk) ended() error {
	k.t.Helper()
	timer := time.NewTimer(20 * time.Second)
	defer timer.Stop()
	select {
	case err := <-k.done:
		return err
	case <-timer.C:
		k.t.Fatal("it does not end")
	}
	return nil
}

// TestScripts runs the conversations in testdata. In a script "> " sends a line, "< " expects the next message, lines that
// begin with "<~ " expect the next messages in any order, "eof" ends the input, "end" expects the end of the connection.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			a := txtar.Parse(data)
			if len(a.Comment) == 0 {
				t.Fatal("a script opens by saying what it guards")
			}
			var config string
			for _, f := range a.Files {
				if f.Name == "config.hcl" {
					config = string(f.Data)
				}
			}
			b := newBroker(t, config, newFake())
			k := start(t, b.Connect(broker.Principal{ID: "stdio", Name: "stdio"}, broker.Bound), MaxMessage)
			for _, f := range a.Files {
				if f.Name == "script" {
					k.run(string(f.Data))
				}
			}
		})
	}
}

func (k *talk) run(script string) {
	k.t.Helper()
	var any []string
	for i, line := range strings.Split(script, "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		if verb == "<~" {
			any = append(any, rest)
			continue
		}
		if len(any) > 0 {
			k.expect(any...)
			any = nil
		}
		switch verb {
		case "", "#":
		case ">":
			k.send(k.expand(rest))
		case "<":
			k.expect(rest)
		case "eof":
			k.in.Close()
		case "end":
			if err := k.ended(); err != nil {
				k.t.Fatalf("line %d: it ended with %v", i+1, err)
			}
		default:
			k.t.Fatalf("line %d: %s", i+1, line)
		}
	}
}
