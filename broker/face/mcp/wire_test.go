package mcp_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/droverhq/drover/broker/face/mcp"
)

// Guards the raw wire on both transports, each file as it says: > is sent, each < must stand in the answer, no ! may.
func TestWire(t *testing.T) {
	files, err := filepath.Glob("testdata/wire/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		for transport, open := range map[string]func(*testing.T) func(string) string{"stdio": wireStream, "http": wireHTTP} {
			t.Run(transport+"/"+filepath.Base(file), func(t *testing.T) {
				a, err := txtar.ParseFile(file)
				if err != nil {
					t.Fatal(err)
				}
				send, answer := open(t), ""
				for line := range strings.Lines(string(a.Files[0].Data)) {
					kind, rest := line[:1], strings.TrimSpace(line[1:])
					switch kind {
					case ">":
						answer = send(rest)
					case "<":
						if !strings.Contains(answer, rest) {
							t.Errorf("no %s in\n%.2000s", rest, answer)
						}
					case "!":
						if strings.Contains(answer, rest) {
							t.Errorf("%s in\n%.2000s", rest, answer)
						}
					}
				}
			})
		}
	}
}

// wireStream sends a message as a line, and gives the line that answers it.
func wireStream(t *testing.T) func(string) string {
	conn := build(t, "", fake()).stream("mcp", mcp.Hello{})
	_ = conn.SetDeadline(time.Now().Add(patience))
	in := bufio.NewReader(conn)
	return func(msg string) string {
		if _, err := conn.Write([]byte(msg + "\n")); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(msg, `"id"`) {
			return ""
		}
		answer, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("no answer to %s: %v", msg, err)
		}
		return answer
	}
}

// wireHTTP sends a message as the body of a POST, with the headers of its era, and gives the body, or the event, that
// answers it.
func wireHTTP(t *testing.T) func(string) string {
	url := build(t, "", fake()).http()
	session, version := "", ""
	return func(msg string) string {
		var m struct {
			Method string `json:"method"`
			Params struct {
				Name    string         `json:"name"`
				Version string         `json:"protocolVersion"`
				Meta    map[string]any `json:"_meta"`
			} `json:"params"`
		}
		if err := json.Unmarshal([]byte(msg), &m); err != nil {
			t.Fatal(err)
		}
		req := request(t, url, "ann", strings.NewReader(msg))
		if own, ok := m.Params.Meta["io.modelcontextprotocol/protocolVersion"].(string); ok {
			req.Header.Set("MCP-Protocol-Version", own)
			req.Header.Set("Mcp-Method", m.Method)
			req.Header.Set("Mcp-Name", m.Params.Name)
		} else if session != "" {
			req.Header.Set("MCP-Protocol-Version", version)
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer http.DefaultClient.CloseIdleConnections()
		defer resp.Body.Close()
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			session, version = id, m.Params.Version
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		answer := string(body)
		for line := range strings.Lines(answer) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				answer = data
			}
		}
		return answer
	}
}
