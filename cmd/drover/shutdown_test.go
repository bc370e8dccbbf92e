package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/droverhq/drover/proto/fault"
)

// Guards that a daemon which is told to end answers every call that it cannot finish, on every face, before the connection
// goes; and that it takes no new ones meanwhile.
func TestEndingAnswersCallsUnderWay(t *testing.T) {
	h, s := setHomes(t), newSlowSite(t)
	ready := startServe(t)
	base, token := addressOf(t, ready)
	data, err := os.ReadFile(ready)
	var told struct {
		PID int `json:"pid"`
	}
	if err == nil {
		err = json.Unmarshal(data, &told)
	}
	if err != nil {
		t.Fatal(err)
	}

	ws, pipe := dialWebSocket(t, base, token).(*lines), byLines(t, "stdio", "--connect").(*lines)
	web := &overHTTP{t: t, base: base, token: token}
	tools := &overMCP{t: t, base: base, token: token}
	rpc := dialGRPC(t, h).(*overGRPC)
	answers := make(chan [2]string, 8)
	open := func(name, params string) string {
		return `{` + params + `"url":"` + s.url + `/never?who=` + name + `","timeout_ms":600000}`
	}
	session := func(c caller, name string) string {
		return `"session_id":"` + c.do("session.ensure", `{"client_session_id":"`+name+`"}`) + `",`
	}
	stream := byLines(t, "mcp", "--connect").(*lines)
	wsID, pipeID, streamID := 0, 0, 0
	for name, start := range map[string]func(){
		"WebSocket": func() { ws.request("page.open", open("WebSocket", session(ws, "ws"))); wsID = ws.last },
		"socket":    func() { pipe.request("page.open", open("socket", session(pipe, "pipe"))); pipeID = pipe.last },
		"stream":    func() { stream.request("page.open", open("stream", "")); streamID = stream.last },
		"HTTP": func() {
			params := open("HTTP", session(web, "web"))
			go func() {
				body, err := post(context.WithoutCancel(t.Context()), base+"/v1/call", token, envelopeOf(1, "page.open", params), nil)
				answers <- [2]string{"HTTP", string(body) + text(err)}
			}()
		},
		"MCP": func() {
			body, headers := tools.request("page.open", open("MCP", ""))
			go func() {
				answer, err := post(context.WithoutCancel(t.Context()), base+"/mcp", token, body, headers)
				answers <- [2]string{"MCP", string(answer) + text(err)}
			}()
		},
		"gRPC": func() {
			params := open("gRPC", session(rpc, "rpc"))
			go func() {
				_, err := rpc.call(context.WithoutCancel(t.Context()), "page.open", params)
				answers <- [2]string{"gRPC", fault.FromStatus(err).ReasonWord()}
			}()
		},
	} {
		start()
		hears(t, s.asked, name)
	}

	if err := syscall.Kill(told.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	// The first signal has the daemon wait for the calls; what is new is refused.
	for refused := false; !refused; {
		ws.request("provider.status", `{}`)
		refused = bytes.Contains(ws.answer(ws.last), []byte(`"reason":"shutting_down"`))
	}
	// The second one says that nobody will wait.
	if err := syscall.Kill(told.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := <-answers; !strings.Contains(got[1], "shutting_down") {
			t.Errorf("%s was answered %s", got[0], got[1])
		}
	}
	for name, got := range map[string][]byte{"WebSocket": ws.answer(wsID), "socket": pipe.answer(pipeID), "MCP on stdio": stream.answer(streamID)} {
		if !bytes.Contains(got, []byte(`"reason":"shutting_down"`)) {
			t.Errorf("%s was answered %s", name, got)
		}
	}
	eventually(t, patience, "the daemon is gone", func() error {
		if err := syscall.Kill(told.PID, 0); !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// Guards the same of a broker of its own, which ends with its parent's signal.
func TestSignalAnswersCallsUnderWay(t *testing.T) {
	for _, face := range []string{"stdio", "mcp"} {
		t.Run(face, func(t *testing.T) {
			setHomes(t)
			s, c := newSlowSite(t), byLines(t, face).(*lines)
			session := ""
			if made := c.do("session.ensure", `{"client_session_id":"a"}`); made != "" {
				session = `"session_id":"` + made + `",`
			}
			c.request("page.open", `{`+session+`"url":"`+s.url+`/never?who=me","timeout_ms":600000}`)
			hears(t, s.asked, "me")
			if err := syscall.Kill(c.pid, syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if got := c.answer(c.last); !bytes.Contains(got, []byte(`"reason":"shutting_down"`)) {
				t.Errorf("it was answered %s", got)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
