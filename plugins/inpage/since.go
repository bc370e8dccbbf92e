package inpage

import (
	"strings"

	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// kept is how many snapshots a page remembers for since, and keptNodes how many nodes and lines they may have together; the
// last one is always remembered.
const (
	kept      = 4
	keptNodes = 20_000
)

// taken is a snapshot that was given.
type taken struct {
	id, scope string
	nodes     []*browserv1.Node
	lines     []string
}

// size is how much a snapshot takes to remember.
func (t *taken) size() int { return len(t.nodes) + len(t.lines) }

// keep remembers a snapshot and forgets the oldest.
func (p *Page) keep(t *taken) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.history = append(p.history, t)
	total, from := 0, len(p.history)-1
	for i := from; i >= 0 && len(p.history)-i <= kept; i-- {
		if total += p.history[i].size(); total > keptNodes && i < len(p.history)-1 {
			break
		}
		from = i
	}
	p.history = append([]*taken(nil), p.history[from:]...) // A copy, so that what is forgotten is freed.
}

// taken finds a remembered snapshot.
func (p *Page) taken(id string) *taken {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.history {
		if t.id == id {
			return t
		}
	}
	return nil
}

// recall tells what a ref stood for when it was last listed.
func (p *Page) recall(ref string) (was, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.history) - 1; i >= 0; i-- {
		t := p.history[i]
		for _, n := range t.nodes {
			if n.GetElementRef() == ref {
				return was{n.GetRole(), n.GetName()}, true
			}
		}
		for _, l := range t.lines {
			if strings.Contains(l, "[ref="+ref+"]") {
				return ofLine(l), true
			}
		}
	}
	return was{}, false
}

// ofLine reads role and name of a line of the outline.
func ofLine(line string) was {
	role, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimLeft(line, " "), "- "), " ")
	name := ""
	if strings.HasPrefix(rest, `"`) {
		for i := 1; i < len(rest); i++ {
			if rest[i] == '\\' {
				i++
			} else if rest[i] == '"' {
				name = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(rest[1:i])
				break
			}
		}
	}
	return was{role, name}
}

// fits says whether the snapshot holds what a comparison needs.
func (t *taken) fits(w wants) bool {
	return (!w.Nodes || len(t.nodes) > 0) && (!w.Outline || len(t.lines) > 0 || len(t.nodes) == 0)
}

// since leaves of a page what is new or changed since a snapshot, and what that stands in. Refs that are gone go into out.
func (s *stitched) since(base *taken, out *browserv1.Snapshot) {
	if len(s.nodes) > 0 {
		s.sinceNodes(base, out)
	}
	if len(s.lines) > 0 {
		s.sinceLines(base, out)
	}
}

// sinceNodes keeps new and changed nodes with their ancestors.
func (s *stitched) sinceNodes(base *taken, out *browserv1.Snapshot) {
	before := map[string]int{}
	refs := map[string]bool{}
	for key := range keys(base.nodes) {
		before[key]++
	}
	for _, n := range base.nodes {
		if n.ElementRef != nil {
			refs[n.GetElementRef()] = true
		}
	}
	byID := make(map[string]*browserv1.Node, len(s.nodes))
	up := make(map[string]string, len(s.nodes))
	for _, n := range s.nodes {
		byID[n.GetNodeId()] = n
		delete(refs, n.GetElementRef())
		for _, c := range n.GetChildren() {
			up[c] = n.GetNodeId()
		}
	}
	stay := map[string]bool{s.nodes[0].GetNodeId(): true}
	changed := map[string]bool{}
	for key, n := range keys(s.nodes) {
		if before[key] > 0 {
			before[key]--
			continue
		}
		changed[n.GetElementRef()] = n.ElementRef != nil
		for id := n.GetNodeId(); id != "" && !stay[id]; id = up[id] {
			stay[id] = true
		}
	}
	var nodes []*browserv1.Node
	for _, n := range s.nodes {
		if !stay[n.GetNodeId()] {
			continue
		}
		c := proto.Clone(n).(*browserv1.Node) //nolint:forcetypeassert // Clone gives its argument's type.
		c.Children = nil
		for _, id := range n.GetChildren() {
			if stay[id] {
				c.Children = append(c.Children, id)
			}
		}
		nodes = append(nodes, c)
	}
	s.nodes = nodes
	var elements []*browserv1.Element
	for _, e := range s.elements {
		if changed[e.GetElementRef()] {
			elements = append(elements, e)
		}
	}
	s.elements = elements
	for _, n := range base.nodes {
		if ref := n.GetElementRef(); ref != "" && refs[ref] {
			out.RemovedRefs = append(out.RemovedRefs, ref)
			delete(refs, ref)
		}
	}
}

// keys gives each node with a text that is the same as long as nothing of it changed: all of it but its id and children.
// A node without a ref belongs to the nearest one before it that has one.
func keys(nodes []*browserv1.Node) func(yield func(string, *browserv1.Node) bool) {
	return func(yield func(string, *browserv1.Node) bool) {
		up := make(map[string]string, len(nodes))
		for _, n := range nodes {
			owner := up[n.GetNodeId()]
			if n.ElementRef != nil {
				owner = n.GetElementRef()
			}
			for _, c := range n.GetChildren() {
				up[c] = owner
			}
			if !yield(owner+"\x00"+signature(n), n) {
				return
			}
		}
	}
}

// signature writes every field of a node but its id and children. It only reads: the node may be on its way to a caller.
func signature(n *browserv1.Node) string {
	var b strings.Builder
	m := n.ProtoReflect()
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.Name() == "node_id" || f.Name() == "children" || !m.Has(f) {
			continue
		}
		b.WriteString(string(f.Name()))
		b.WriteByte(0)
		b.WriteString(m.Get(f).String())
		b.WriteByte(0)
	}
	return b.String()
}

// sinceLines keeps new and changed lines, marked with + in place of -, with the lines that they stand under.
func (s *stitched) sinceLines(base *taken, out *browserv1.Snapshot) {
	before := map[string]int{}
	gone := map[string]bool{}
	for _, l := range base.lines {
		before[strings.TrimLeft(l, " ")]++
		if ref := refIn(l); ref != "" {
			gone[ref] = true
		}
	}
	stay := make([]bool, len(s.lines))
	fresh := make([]bool, len(s.lines))
	var path []int
	for i, l := range s.lines {
		delete(gone, refIn(l))
		for len(path) > 0 && depth(s.lines[path[len(path)-1]]) >= depth(l) {
			path = path[:len(path)-1]
		}
		key := strings.TrimLeft(l, " ")
		if before[key] > 0 {
			before[key]--
		} else {
			stay[i], fresh[i] = true, true
			for _, a := range path {
				stay[a] = true
			}
		}
		path = append(path, i)
	}
	var lines []string
	for i, l := range s.lines {
		switch {
		case fresh[i]:
			lines = append(lines, strings.Replace(l, "- ", "+ ", 1))
		case stay[i]:
			lines = append(lines, l)
		}
	}
	s.lines = lines
	if out.RemovedRefs != nil || len(s.nodes) > 0 {
		return // The nodes told already.
	}
	for _, l := range base.lines {
		if ref := refIn(l); gone[ref] {
			out.RemovedRefs = append(out.RemovedRefs, ref)
			delete(gone, ref)
		}
	}
}

// refIn is the ref of a line, or nothing.
func refIn(line string) string {
	_, rest, ok := strings.Cut(line, "[ref=")
	if !ok {
		return ""
	}
	ref, _, _ := strings.Cut(rest, "]")
	return ref
}
