package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/droverhq/drover/proto/fault"
)

const (
	// startWait is how long a command waits for the daemon that it started.
	startWait = 20 * time.Second
	// startPoll is how often it looks meanwhile whether another command's daemon is there.
	startPoll = 20 * time.Millisecond
	// readyFD is the file descriptor on which a daemon tells the command that started it that it is ready, or why not.
	readyFD = 3
)

// target is the daemon that a command wants: where it listens, and the config it must have.
type target struct {
	socket   string
	config   string // the file
	explicit bool   // it was asked for by name
	hash     string // of its text; empty when there is no file
}

// target gives the daemon for the flags and environment of this command.
func (a *app) target() (target, error) {
	p := findPlaces()
	t := target{socket: a.global.socket, config: a.global.config, explicit: a.global.config != ""}
	if !t.explicit {
		t.config = p.config
	}
	var err error
	if t.config, err = absolute(t.config); err != nil {
		return t, err
	}
	data, err := os.ReadFile(t.config)
	switch {
	case err == nil:
		sum := sha256.Sum256(data)
		t.hash = hex.EncodeToString(sum[:])
	case errors.Is(err, fs.ErrNotExist) && !t.explicit:
	default:
		return t, fault.New(fault.InvalidRequest, "the config file cannot be read: %v", err).Cause(err)
	}
	if t.socket == "" {
		cfg, err := a.loadConfig()
		if err != nil {
			return t, err
		}
		if t.socket = cfg.Listen.Socket; t.socket == "" {
			t.socket = p.socket()
		}
	}
	t.socket, err = absolute(t.socket)
	return t, err
}

// connect gives a connection to this user's daemon, and starts one where none runs. A daemon of another version or config
// is replaced when it has no sessions, and refused otherwise.
func (a *app) connect(ctx context.Context) (*link, error) {
	t, err := a.target()
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(startWait)
	for {
		r, err := command(ctx, t.socket, order{Do: doInfo})
		switch {
		case errors.Is(err, errNoDaemon):
			err = a.startDaemon(ctx, t)
		case err != nil:
			return nil, err
		default:
			if why := t.mismatch(r.Info); why != nil {
				err = a.replace(ctx, t, why)
				break
			}
			conn, derr := dial(ctx, t.socket)
			if derr == nil {
				return newLink(conn), nil
			}
			err = derr
		}
		switch {
		case err != nil && !errors.Is(err, errNoDaemon):
			return nil, err
		case time.Now().After(deadline):
			return nil, fault.New(fault.NotReady, "no daemon comes up at %s", t.socket).Hint("drover serve --socket %s shows why", t.socket)
		}
	}
}

// peek gives a connection to a daemon that runs already; errNoDaemon when none does.
func (a *app) peek(ctx context.Context) (*link, error) {
	t, err := a.target()
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, t.socket)
	if err != nil {
		return nil, err
	}
	return newLink(conn), nil
}

// mismatch says why a daemon is not the one that is wanted; nil when it is.
func (t target) mismatch(info *daemonInfo) *fault.Error {
	switch {
	case info.Version != programVersion() || info.Binary.differs(ownBinary()):
		return fault.New(fault.InvalidRequest, "the daemon of pid %d is version %s, this is %s", info.PID, info.Version, programVersion()).
			Reason("version_mismatch")
	case t.explicit && info.Config != t.config:
		return fault.New(fault.InvalidRequest, "the daemon of pid %d has the config %s, not %s", info.PID, named(info.Config), t.config).
			Reason("config_mismatch").Field("config")
	case (info.Config == t.config || info.Config == "") && info.ConfigHash != t.hash:
		return fault.New(fault.InvalidRequest, "the config %s has changed since the daemon of pid %d read it", t.config, info.PID).
			Reason("config_mismatch").Field("config").Hint("kill -HUP %d makes it read the file", info.PID)
	}
	return nil
}

func named(config string) string {
	if config == "" {
		return "of a start without a file"
	}
	return config
}

// replace ends a daemon that does not fit, unless it has sessions: then the caller is told why it does not fit.
func (a *app) replace(ctx context.Context, t target, why *fault.Error) error {
	_, err := command(ctx, t.socket, order{Do: doRetire})
	if err == nil || errors.Is(err, errNoDaemon) {
		return nil
	}
	return why.Hint("it has sessions, so it is not restarted; close them with drover session close, or use another one with --socket PATH").
		Cause(err)
}

// readiness is what a daemon tells the command that started it.
type readiness struct {
	Ready bool   `json:"ready"`
	Busy  bool   `json:"busy"` // another daemon has the socket
	Error string `json:"error"`
}

// startDaemon starts a daemon in the background and waits until it listens. errNoDaemon, so that the caller looks again,
// when another command was faster.
func (a *app) startDaemon(ctx context.Context, t target) error {
	cmd, r, err := a.daemonCommand(t)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	defer context.AfterFunc(ctx, func() { _ = r.Close() })()
	_ = r.SetReadDeadline(time.Now().Add(startWait))
	data, err := io.ReadAll(io.LimitReader(r, 64<<10))
	// The daemon outlives this process; without a wait it would be a zombie of a long-lived parent.
	go func() { _ = cmd.Wait() }()
	var told readiness
	switch {
	case ctx.Err() != nil:
		return fault.From(context.Cause(ctx))
	case json.Unmarshal(data, &told) != nil || err != nil:
		return fault.New(fault.NotReady, "the daemon did not come up").Reason("deadline_exceeded").Hint("its log is %s", findPlaces().log())
	case told.Busy:
		sleepUntilNext(ctx)
		return errNoDaemon
	case told.Error != "":
		return fault.New(fault.NotReady, "the daemon did not come up: %s", told.Error).Hint("its log is %s", findPlaces().log())
	}
	return errNoDaemon
}

func sleepUntilNext(ctx context.Context) {
	t := time.NewTimer(startPoll)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// daemonCommand starts `drover serve` in a session of its own, with its log in the state folder and none of this command's
// streams.
func (a *app) daemonCommand(t target) (*exec.Cmd, *os.File, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, fault.New(fault.InternalError, "this program's own path: %v", err).Cause(err)
	}
	args := []string{"serve", "--auto", "--socket", t.socket, "--log-level", "info"}
	if t.explicit {
		args = append(args, "--config", t.config)
	}
	log, err := openLog(findPlaces().log())
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = log.Close() }()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fault.New(fault.InternalError, "a pipe to the daemon: %v", err).Cause(err)
	}
	defer func() { _ = w.Close() }()
	cmd := exec.Command(exe, args...) //nolint:gosec // this program itself
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = "/", log, log, []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		_ = r.Close()
		return nil, nil, fault.New(fault.InternalError, "the daemon cannot be started: %v", err).Cause(err)
	}
	return cmd, r, nil
}

// logLimit is how large the log may be when a daemon starts; a larger one becomes the old one.
const logLimit = 8 << 20

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fault.New(fault.PermissionDenied, "the log cannot be written: %v", err).Cause(err)
	}
	if info, err := os.Stat(path); err == nil && info.Size() > logLimit {
		_ = os.Rename(path, path+".old")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fault.New(fault.PermissionDenied, "the log cannot be written: %v", err).Cause(err)
	}
	return f, nil
}
