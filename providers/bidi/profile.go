package bidi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// profileLock keeps a profile for one user; the kernel lets go of it when the process ends, however it ends.
type profileLock struct{ file *os.File }

// startPersistent starts a browser on the profile that is kept for a client session. It belongs to that session alone.
func (p *Provider) startPersistent(ctx context.Context, found product, client, egress string) (*browser, error) {
	_, host := p.settings()
	lock, dir, err := lockProfile(host, found, client)
	if err != nil {
		return nil, err
	}
	b, err := p.start(ctx, found, dir, egress)
	if err != nil {
		lock.release()
		return nil, err
	}
	b.lock, b.persist = lock, true
	return b, nil
}

// stateFolder is where kept profiles lie.
func stateFolder(host *browserv1.HostSettings) (string, error) {
	if dir := host.GetStateDir(); dir != "" {
		return dir, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fault.New(fault.NotReady, "there is no folder to keep profiles in").Reason("no_state_dir").Cause(err)
	}
	return filepath.Join(dir, "drover", "bidi"), nil
}

// lockProfile takes the folder of a client session's profile. Somebody else's is not_ready, in_use.
func lockProfile(host *browserv1.HostSettings, found product, client string) (*profileLock, string, error) {
	state, err := stateFolder(host)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256([]byte(client))
	dir := filepath.Join(state, "profiles", found.name+"-"+hex.EncodeToString(sum[:12]))
	profile := filepath.Join(dir, "profile")
	if err := os.MkdirAll(profile, 0o700); err != nil {
		return nil, "", fmt.Errorf("making the profile's folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("locking the profile: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		closing := f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, "", fault.New(fault.NotReady, "the kept profile of this session is in use").Reason("in_use").
				Hint("close the other session first, or use another client_session_id")
		}
		return nil, "", errors.Join(fmt.Errorf("locking the profile: %w", err), closing)
	}
	return &profileLock{file: f}, profile, nil
}

func (l *profileLock) release() {
	if l != nil && l.file != nil {
		_ = l.file.Close()
	}
}
