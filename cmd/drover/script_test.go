package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"image/png"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what commands print into the scenario files")

// Guards the command line as people and scripts use it, each scenario as its file says.
func TestScripts(t *testing.T) {
	page := site(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			h, err := newHomes()
			if err != nil {
				return err
			}
			e.Vars = append(e.Vars, h.env()...)
			e.Vars = append(e.Vars, "PAGE="+page, "RUN="+h.dir)
			e.Values[homes{}] = h
			e.Defer(func() {
				if err := h.end(); err != nil {
					t.Error(err)
				}
			})
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"eventually": eventuallyCmd, "daemon": daemonCmd, "gone": goneCmd, "png": pngCmd, "oneline": oneLineCmd, "set": setCmd,
		},
	})
}

func own(ts *testscript.TestScript) homes {
	h, ok := ts.Value(homes{}).(homes)
	if !ok {
		ts.Fatalf("the script has no folders")
	}
	return h
}

// eventually COMMAND... runs a program until it succeeds; ! eventually, until it fails.
func eventuallyCmd(ts *testscript.TestScript, neg bool, args []string) {
	err := retry(patience, func() error {
		err := ts.Exec(args[0], args[1:]...)
		if neg && err == nil {
			return fmt.Errorf("it still succeeds")
		}
		if neg {
			return nil
		}
		return err
	})
	ts.Check(err)
}

// daemon pid NAME puts the daemon's pid into a variable; daemon SIGNAL sends it a signal; ! daemon says that none runs.
func daemonCmd(ts *testscript.TestScript, neg bool, args []string) {
	h := own(ts)
	if neg {
		ts.Check(retry(patience, func() error {
			if info, err := h.info(); err == nil {
				return fmt.Errorf("a daemon of pid %d runs", info.PID)
			}
			return nil
		}))
		return
	}
	info, err := h.info()
	ts.Check(err)
	if args[0] == "pid" {
		ts.Setenv(args[1], strconv.Itoa(info.PID))
		return
	}
	sig, ok := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}[args[0]]
	if !ok {
		ts.Fatalf("no signal %s", args[0])
	}
	ts.Check(syscall.Kill(info.PID, sig))
}

// gone SECONDS [folders] waits until no process, and no run folder, of this script is left.
func goneCmd(ts *testscript.TestScript, _ bool, args []string) {
	within, err := strconv.ParseFloat(args[0], 64)
	ts.Check(err)
	h := own(ts)
	ts.Check(retry(time.Duration(within*float64(time.Second)), func() error { return h.gone(len(args) > 1) }))
}

// png FILE WIDTH HEIGHT reads a picture whole.
func pngCmd(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer func() { _ = f.Close() }()
	img, err := png.Decode(f)
	ts.Check(err)
	if got := fmt.Sprintf("%dx%d", img.Bounds().Dx(), img.Bounds().Dy()); got != args[1] {
		ts.Fatalf("the picture is %s, not %s", got, args[1])
	}
}

// oneline FILE says that a file holds one JSON object on one line.
func oneLineCmd(ts *testscript.TestScript, _ bool, args []string) {
	var v map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &v))
}

// set NAME FILE PATTERN puts the first group of a pattern's match in a file into a variable.
func setCmd(ts *testscript.TestScript, _ bool, args []string) {
	m := regexp.MustCompile(args[2]).FindStringSubmatch(ts.ReadFile(args[1]))
	if m == nil {
		ts.Fatalf("%s does not match %s", args[1], args[2])
	}
	ts.Setenv(args[0], m[1])
}
