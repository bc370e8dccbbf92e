package mcp

import (
	"crypto/rand"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// keptBytes is how much a client's shelf holds; the oldest goes first.
const keptBytes = 64 << 20

// keptPrefix is what the URIs of kept results begin with.
const keptPrefix = "browser://kept/"

// shelf keeps what was too large for a reply, for its own client to read as a resource.
type shelf struct {
	mu    sync.Mutex
	items []kept
	bytes int
}

type kept struct {
	id, kind string
	data     []byte
}

// put keeps something and gives its URI, which nobody can guess.
func (s *shelf) put(kind string, data []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	item := kept{id: strings.ToLower(rand.Text()), kind: kind, data: data}
	s.items = append(s.items, item)
	s.bytes += len(data)
	for s.bytes > keptBytes && len(s.items) > 1 {
		s.bytes -= len(s.items[0].data)
		s.items[0] = kept{}
		s.items = s.items[1:]
	}
	return keptPrefix + item.id
}

func (s *shelf) get(id string) (kept, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range s.items {
		if item.id == id {
			return item, true
		}
	}
	return kept{}, false
}

// link keeps something and gives a link to it.
func (s *shelf) link(name, kind string, data []byte) *mcp.ResourceLink {
	size := int64(len(data))
	return &mcp.ResourceLink{URI: s.put(kind, data), Name: name, MIMEType: kind, Size: &size}
}
