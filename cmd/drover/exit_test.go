package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/droverhq/drover/proto/fault"
)

// Guards the exit statuses of the protocol's table of errors.
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{fault.New(fault.ElementNotFound, "").Reason("stale_ref"), 3},
		{fault.New(fault.InvalidRequest, "").Reason("ambiguous_target"), 2},
		{fault.New(fault.InvalidRequest, "").Reason("payload_too_large"), 2},
		{fault.New(fault.InvalidSelector, ""), 2},
		{fault.New(fault.ElementNotActionable, "").Reason("covered"), 1},
		{fault.New(fault.ElementNotActionable, "").Reason("disabled"), 1},
		{fault.New(fault.NotReady, "").Reason("dialog_open"), 5},
		{fault.New(fault.NavigationTimeout, "").Reason("deadline_exceeded"), 6},
		{fault.New(fault.NotReady, "").Reason("deadline_exceeded"), 6},
		{fault.New(fault.NotReady, "").Reason("in_use"), 5},
		{fault.New(fault.NotReady, "").Reason("capacity"), 5},
		{fault.New(fault.SetupRequired, "").Reason("no_provider"), 5},
		{fault.New(fault.BrowserNotRunning, "").Reason("provider_exited"), 5},
		{fault.New(fault.SessionNotFound, "").Reason("session_lost"), 3},
		{fault.New(fault.PageNotFound, "").Reason("page_crashed"), 3},
		{fault.New(fault.PermissionDenied, "").Reason("policy_denied"), 4},
		{fault.New(fault.PermissionDenied, "").Reason("path_refused"), 4},
		{fault.New(fault.UnsupportedMethod, ""), 1},
		{fault.New(fault.InternalError, ""), 1},
		{errors.New("anything else"), 1},
		{context.DeadlineExceeded, 6},
		{silent{exitTimeout}, 6},
		{usage("what"), 2},
	} {
		if got := exitStatus(c.err); got != c.want {
			t.Errorf("%v: %d, not %d", c.err, got, c.want)
		}
	}
}

// Guards what a person reads of an error, and what a program does.
func TestReport(t *testing.T) {
	err := fault.New(fault.InvalidRequest, "two buttons match").Reason("ambiguous_target").Hint("name one by its ref").
		With("candidates", []map[string]any{{"element_ref": "d1e4", "role": "button", "name": "Save"}})
	var out, errs bytes.Buffer
	a := &app{out: &out, err: &errs}
	if status := a.report(err); status != exitUsage || out.Len() > 0 {
		t.Errorf("status %d, stdout %q", status, out.String())
	}
	if want := "error: two buttons match; name one by its ref\n  invalid_request (ambiguous_target)\n  candidate @d1e4  button \"Save\"\n"; errs.String() != want {
		t.Errorf("got\n%s\nnot\n%s", errs.String(), want)
	}
	errs.Reset()
	a.global.json = true
	a.report(err)
	if want := `{"error":{"code":"invalid_request","message":"two buttons match; name one by its ref","retryable":false,"details":{`; !strings.HasPrefix(out.String(), want) || errs.Len() > 0 {
		t.Errorf("stdout %q, stderr %q", out.String(), errs.String())
	}
}

// Guards which daemon a command takes for its own.
func TestMismatch(t *testing.T) {
	self := ownBinary()
	replaced := self
	replaced.Size++
	mine := func(change func(*daemonInfo)) *daemonInfo {
		i := &daemonInfo{PID: 1, Version: programVersion(), Binary: self, Config: "/c", ConfigHash: "h"}
		change(i)
		return i
	}
	for _, c := range []struct {
		name string
		t    target
		info *daemonInfo
		want string
	}{
		{"the same", target{config: "/c", hash: "h"}, mine(func(*daemonInfo) {}), ""},
		{"another version", target{config: "/c", hash: "h"}, mine(func(i *daemonInfo) { i.Version = "other" }), "version_mismatch"},
		{"rebuilt since", target{config: "/c", hash: "h"}, mine(func(i *daemonInfo) { i.Binary = replaced }), "version_mismatch"},
		{"installed elsewhere", target{config: "/c", hash: "h"}, mine(func(i *daemonInfo) { i.Binary.Path = "/elsewhere" }), ""},
		{"the file changed", target{config: "/c", hash: "new"}, mine(func(*daemonInfo) {}), "config_mismatch"},
		{"a file came", target{config: "/c", hash: "new"}, mine(func(i *daemonInfo) { i.Config, i.ConfigHash = "", "" }), "config_mismatch"},
		{"an admin's own file", target{config: "/usual", hash: ""}, mine(func(*daemonInfo) {}), ""},
		{"another file by name", target{config: "/other", hash: "h", explicit: true}, mine(func(*daemonInfo) {}), "config_mismatch"},
	} {
		got := ""
		if e := c.t.mismatch(c.info); e != nil {
			got = e.ReasonWord()
		}
		if got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}

// Guards the folder for sockets: ours alone, or refused.
func TestPrivate(t *testing.T) {
	dir := t.TempDir()
	fresh := filepath.Join(dir, "a", "fresh")
	if err := private(fresh); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o755); err != nil { //nolint:gosec // it is what the test is about
		t.Fatal(err)
	}
	if err := private(open); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{fresh, open} {
		if info, err := os.Stat(d); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: mode %v, %v", d, info.Mode(), err)
		}
	}
	link, file := filepath.Join(dir, "link"), filepath.Join(dir, "file")
	if err := os.Symlink(fresh, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{link, file} {
		if err := private(d); fault.CodeOf(err) != fault.PermissionDenied {
			t.Errorf("%s: %v", d, err)
		}
	}
}
