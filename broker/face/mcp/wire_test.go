package mcp_test

import (
	"bufio"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/droverhq/drover/broker/face/mcp"
)

// Guards the raw wire, each file as it says: > is sent, each < must stand in the answer, no ! may.
func TestWire(t *testing.T) {
	files, err := filepath.Glob("testdata/wire/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			conn := build(t, "", fake()).stream("mcp", mcp.Hello{})
			_ = conn.SetDeadline(time.Now().Add(patience))
			in := bufio.NewReader(conn)
			answer := ""
			for line := range strings.Lines(string(a.Files[0].Data)) {
				kind, rest := line[:1], strings.TrimSpace(line[1:])
				switch kind {
				case ">":
					if _, err := conn.Write([]byte(rest + "\n")); err != nil {
						t.Fatal(err)
					}
					if !strings.Contains(rest, `"id"`) {
						continue
					}
					if answer, err = in.ReadString('\n'); err != nil {
						t.Fatalf("no answer to %s: %v", rest, err)
					}
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
