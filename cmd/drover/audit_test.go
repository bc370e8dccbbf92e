package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/policy"
)

// Guards the audit log's files: they are turned over by size and only so many are kept, each line is whole JSON, nobody
// else can read them, and a config that names another file is followed.
func TestAuditLogIsTurnedOver(t *testing.T) {
	dir := t.TempDir()
	file, next := filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "next.jsonl")
	l := &auditLog{log: hclog.NewNullLogger()}
	defer l.close()
	l.apply(policy.Audit{File: file, MaxMB: 1, Keep: 2})
	long := "https://example.com/" + strings.Repeat("p", 1<<10)
	for range 4 << 10 { // four megabytes and more
		l.write(broker.Entry{Time: time.Now(), Client: "ann", Method: "page.open", URL: long, Code: "ok"})
	}
	older := func() []string {
		old, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return old
	}
	eventually(t, patience, "older files than are kept are removed", func() error {
		if n := len(older()); n != 2 {
			return fmt.Errorf("%d older files", n)
		}
		return nil
	})
	for _, name := range append(older(), file) {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() > 1<<20 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for sc := bufio.NewScanner(f); sc.Scan(); {
			var e broker.Entry
			if err := json.Unmarshal(sc.Bytes(), &e); err != nil || e.Client != "ann" {
				t.Fatalf("%s: %v in %q", name, err, sc.Text())
			}
		}
		_ = f.Close()
	}
	l.apply(policy.Audit{File: next, MaxMB: 1, Keep: 1})
	l.write(broker.Entry{Client: "eve"})
	if data, err := os.ReadFile(next); err != nil || !strings.Contains(string(data), `"client":"eve"`) {
		t.Errorf("the next file says %q, %v", data, err)
	}
}
