package singleton_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/droverhq/drover/plugins/singleton"
)

// envHold makes the test binary hold a seat in the folder that it names, until its stdin ends.
const envHold = "DROVER_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envHold); dir != "" {
		held, err := singleton.Seat{Dir: dir, Name: "seat"}.Take()
		fmt.Println(err)
		if err == nil {
			_, _ = io.Copy(io.Discard, os.Stdin)
			_ = held.Close()
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// seatDir is short, because a socket's path is.
func seatDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "seat")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "d")
}

func TestOneHolds(t *testing.T) {
	seat := singleton.Seat{Dir: seatDir(t), Name: "seat"}
	held, err := seat.Take()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seat.Take(); !errors.Is(err, singleton.ErrHeld) {
		t.Fatalf("a second one: %v", err)
	}
	for path, mode := range map[string]os.FileMode{seat.Dir: 0o700, filepath.Join(seat.Dir, "seat.lock"): 0o600, filepath.Join(seat.Dir, "seat.sock"): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := seat.Take()
	if err != nil {
		t.Fatalf("after it was given up: %v", err)
	}
	_ = again.Close()
}

// A holder that is killed leaves its socket behind and nothing else: the one that had joined takes over.
func TestTakeoverWhenTheHolderIsKilled(t *testing.T) {
	seat := singleton.Seat{Dir: seatDir(t), Name: "seat"}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envHold+"="+seat.Dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "<nil>\n" {
		t.Fatalf("the other process: %q, %v", line, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	joined, took := make(chan struct{}, 1), make(chan struct{}, 1)
	done := make(chan error, 1)
	go func() {
		done <- seat.Run(ctx, func(ctx context.Context, h *singleton.Held) error {
			took <- struct{}{}
			<-ctx.Done()
			return nil
		}, func(_ context.Context, c net.Conn) error {
			joined <- struct{}{}
			_, err := c.Read(make([]byte, 1)) // until the holder is gone
			return err
		})
	}()
	<-joined
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	<-took
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAFolderOfAnotherIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to give a folder to another user")
	}
	dir := seatDir(t)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	if _, err := (singleton.Seat{Dir: dir, Name: "seat"}).Take(); err == nil {
		t.Fatal("taken")
	}
}
