package bridge

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// offerTime is how long a token that was offered may wait for its first use.
const offerTime = 10 * time.Minute

// keptPairings is how many pairings are remembered; the oldest that were never used go first.
const keptPairings = 200

// Pairing is a browser that may connect, as it is kept on disk. The token itself is kept nowhere.
type Pairing struct {
	// Target names the browser; the token is good for it alone.
	Target string `json:"target"`
	// Hash is the SHA-256 of the token in hex. The token has 256 random bits, so it needs no slow hash.
	Hash    string    `json:"hash"`
	Created time.Time `json:"created"`
	// Used says that a browser has connected with it; an offer that nobody used expires.
	Used    bool `json:"used"`
	Revoked bool `json:"revoked,omitempty"`
}

// Store keeps the pairings of a user in a file, mode 0600, which several processes may change.
type Store struct {
	path string
	mu   sync.Mutex
}

// errToken is the answer to a token that is unknown, revoked, expired or of another target.
var errToken = errors.New("the token is not good")

func openStore(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of pairings: %w", err)
	}
	return &Store{path: filepath.Join(dir, "pairings.json")}, nil
}

// Mint makes a pairing for a new target and gives its token, which is told once.
func (s *Store) Mint() (Pairing, string, error) {
	var secret [32]byte
	var name [6]byte
	_, _ = rand.Read(secret[:]) // It never fails (crypto/rand, Go 1.24).
	_, _ = rand.Read(name[:])
	token := "drv_" + hex.EncodeToString(secret[:])
	p := Pairing{Target: "browser-" + hex.EncodeToString(name[:]), Hash: hashOf(token), Created: time.Now().UTC()}
	err := s.change(func(all []Pairing) ([]Pairing, error) { return append(all, p), nil })
	return p, token, err
}

// Use finds the pairing of a token and marks it as used. target is what the browser calls itself, or "".
func (s *Store) Use(token, target string) (Pairing, error) {
	var found Pairing
	hash := hashOf(token)
	err := s.change(func(all []Pairing) ([]Pairing, error) {
		i := slices.IndexFunc(all, func(p Pairing) bool { return p.Hash == hash })
		if token == "" || i < 0 || all[i].Revoked || !all[i].Used && time.Since(all[i].Created) > offerTime || target != "" && target != all[i].Target {
			return nil, errToken
		}
		found = all[i]
		if all[i].Used {
			return nil, errUnchanged
		}
		all[i].Used, found.Used = true, true
		return all, nil
	})
	return found, err
}

// Find gives the pairing of a token that a browser has used before and that was not revoked.
func (s *Store) Find(token string) (Pairing, error) {
	hash := hashOf(token)
	all, err := s.List()
	if err != nil {
		return Pairing{}, err
	}
	for _, p := range all {
		if p.Hash == hash && p.Used && !p.Revoked {
			return p, nil
		}
	}
	return Pairing{}, errToken
}

// Revoke ends a target's pairing for good; false when there is none.
func (s *Store) Revoke(target string) (bool, error) {
	found := false
	err := s.change(func(all []Pairing) ([]Pairing, error) {
		for i := range all {
			if all[i].Target == target && !all[i].Revoked {
				all[i].Revoked, found = true, true
			}
		}
		return all, nil
	})
	return found, err
}

// List gives the pairings that are not expired.
func (s *Store) List() ([]Pairing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read()
}

// errUnchanged ends a change that changes nothing.
var errUnchanged = errors.New("nothing to change")

func (s *Store) change(do func([]Pairing) ([]Pairing, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	lock, err := os.OpenFile(s.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("locking the pairings: %w", err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("locking the pairings: %w", err)
	}
	all, err := s.read()
	if err != nil {
		return err
	}
	all, err = do(all)
	if errors.Is(err, errUnchanged) {
		return nil
	}
	if err != nil {
		return err
	}
	for len(all) > keptPairings {
		i := max(slices.IndexFunc(all, func(p Pairing) bool { return !p.Used || p.Revoked }), 0)
		all = slices.Delete(all, i, i+1)
	}
	data, err := json.MarshalIndent(map[string]any{"pairings": all}, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the pairings: %w", err)
	}
	next := s.path + ".new"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return fmt.Errorf("writing the pairings: %w", err)
	}
	if err := os.Rename(next, s.path); err != nil {
		return fmt.Errorf("writing the pairings: %w", err)
	}
	return nil
}

func (s *Store) read() ([]Pairing, error) {
	data, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var held struct {
		Pairings []Pairing `json:"pairings"`
	}
	if err == nil {
		err = json.Unmarshal(data, &held)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the pairings: %w", err)
	}
	return slices.DeleteFunc(held.Pairings, func(p Pairing) bool { return !p.Used && time.Since(p.Created) > offerTime }), nil
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
