package inpage

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"sync"
)

// Session numbers the documents of one browser session, so that a ref (`d<document>e<n>`) is never used twice in it and
// tells its page and frame. It is safe for concurrent use.
type Session struct {
	version, script string

	mu    sync.Mutex
	last  int
	spare []int
	docs  map[int]place
	snaps int
}

// place is where a document is shown.
type place struct {
	page  *Page
	frame FrameID
}

// NewSession makes a session without pages.
func NewSession() *Session {
	src := source()
	var token [4]byte
	_, _ = rand.Read(token[:]) // It never fails (crypto/rand, Go 1.24).
	// The session's own token is part of the version, so that an engine which another session left in the page is
	// replaced and its document numbers are not taken for ours.
	version := digest(src) + "." + hex.EncodeToString(token[:])
	return &Session{version: version, script: strings.Replace(src, "@VERSION@", version, 1), docs: map[int]place{}}
}

// Script gives the engine as an expression. A provider that can evaluates it in the engine's world of every new document
// before the page's own scripts run; where it does not, the driver installs it on first use.
func (s *Session) Script() string { return s.script }

// NewPage makes the driver of one page.
func (s *Session) NewPage(e Evaluator, in Input) *Page {
	p := &Page{session: s, eval: e, input: in, parents: map[FrameID]parent{}}
	if syn, ok := in.(Synthetic); ok {
		p.synthetic = syn.Synthetic()
	}
	return p
}

// propose gives a number that no document has.
func (s *Session) propose() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.spare); n > 0 {
		doc := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return doc
	}
	s.last++
	return s.last
}

// release takes back a number that no document took.
func (s *Session) release(doc int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, doc)
}

// locate remembers where a document is shown.
func (s *Session) locate(doc int, at place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.docs[doc] = at
}

// where tells where a document is, or was, shown.
func (s *Session) where(doc int) (place, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.docs[doc]
	return at, ok
}

// nextSnapshot gives the number of a new snapshot.
func (s *Session) nextSnapshot() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snaps++
	return s.snaps
}
