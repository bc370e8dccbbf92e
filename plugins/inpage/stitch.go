package inpage

import (
	"strconv"
	"strings"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// stitched is a page with the documents of its frames in their places.
type stitched struct {
	nodes     []*browserv1.Node // the root first, in document order
	elements  []*browserv1.Element
	lines     []string
	text      string
	omitted   []omission
	total     int
	truncated bool
}

// stitch joins a reading and those inside of it, with at the most limit nodes (0 is no limit).
func stitch(r *reading, limit int) *stitched {
	s := &stitched{}
	s.count(r)
	if len(r.Nodes) > 0 {
		s.splice(r, limit)
	}
	s.lines = lines(r, limit)
	if limit > 0 && (len(s.nodes) > 0 && len(s.nodes) < s.total || len(s.lines) > limit) {
		s.truncated = true
		s.lines = s.lines[:min(len(s.lines), limit)]
	}
	s.text = text(r)
	return s
}

// count adds up what the readings say of themselves.
func (s *stitched) count(r *reading) {
	s.total += r.Total
	s.truncated = s.truncated || r.Truncated
	s.omitted = append(s.omitted, r.Omitted...)
	for _, f := range r.Frames {
		if inner := r.inner[f.Ref]; inner != nil {
			s.total-- // Its document is the frame element's node.
			s.count(inner)
		}
	}
}

// splice writes the nodes in document order, those of a frame's document below its frame element. The documents' own nodes
// come first where the limit is short, so that a frame takes nothing from the page around it.
func (s *stitched) splice(r *reading, limit int) {
	left := limit - len(r.Nodes)
	if limit == 0 {
		left = -1
	}
	budget := map[*reading]int{r: len(r.Nodes)}
	share(r, &left, budget)
	s.write(r, 0, nil, budget)
}

// share gives each inner document what is left of the limit, in document order; below zero there is no limit.
func share(r *reading, left *int, budget map[*reading]int) {
	for _, f := range r.Frames {
		inner := r.inner[f.Ref]
		if inner == nil {
			continue
		}
		n := len(inner.Nodes)
		if *left >= 0 {
			n = min(n, *left+1) // The document itself is not written.
			*left = max(0, *left-max(0, n-1))
		}
		budget[inner] = n
		share(inner, left, budget)
	}
}

// write appends a node and what is below it; parent gets its id.
func (s *stitched) write(r *reading, i int, parent *browserv1.Node, budget map[*reading]int) {
	frames := map[int]*reading{}
	for _, f := range r.Frames {
		if inner := r.inner[f.Ref]; inner != nil && f.Node != nil {
			frames[*f.Node] = inner
		}
	}
	var down func(i int, parent *browserv1.Node)
	down = func(i int, parent *browserv1.Node) {
		raw := &r.Nodes[i]
		n := raw.node("n" + strconv.Itoa(len(s.nodes)+1))
		s.nodes = append(s.nodes, n)
		if parent != nil {
			parent.Children = append(parent.Children, n.NodeId)
		}
		if raw.Ref != "" && raw.Actionable {
			s.elements = append(s.elements, raw.element())
		}
		for _, c := range raw.Children {
			if c < budget[r] {
				down(c, n)
			}
		}
		if inner := frames[i]; inner != nil && budget[inner] > 0 && len(inner.Nodes) > 0 {
			for _, c := range inner.Nodes[0].Children {
				if c < budget[inner] {
					s.write(inner, c, n, budget)
				}
			}
		}
	}
	down(i, parent)
}

// lines is the outline, with those of the frames' documents below their frame elements.
func lines(r *reading, limit int) []string {
	if len(r.inner) == 0 {
		return r.Outline
	}
	at := map[int]*reading{}
	for _, f := range r.Frames {
		if inner := r.inner[f.Ref]; inner != nil && f.Line != nil {
			at[*f.Line] = inner
		}
	}
	var out []string
	for i, line := range r.Outline {
		out = append(out, line)
		inner := at[i]
		if inner == nil {
			continue
		}
		indent := strings.Repeat(" ", depth(line)+2)
		for _, l := range lines(inner, limit) {
			out = append(out, indent+l)
		}
	}
	return out
}

// depth is the indent of a line in spaces.
func depth(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// text is the visible text, with that of the frames in the places that the engine marked; what has no mark comes at the end.
func text(r *reading) string {
	out := r.Text
	for _, f := range r.Frames {
		mark, within := "\ue000"+f.Ref+"\ue001", ""
		if inner := r.inner[f.Ref]; inner != nil {
			within = strings.TrimSpace(text(inner))
		}
		if strings.Contains(out, mark) {
			out = strings.Replace(out, mark, within, 1)
		} else if within != "" {
			out = strings.TrimSpace(out) + "\n\n" + within
		}
	}
	return strings.TrimSpace(out)
}

// node gives the node as the protocol has it.
func (n *rawNode) node(id string) *browserv1.Node {
	out := &browserv1.Node{
		NodeId: id, Role: n.Role, Name: n.Name, Actionable: n.Actionable,
		Value: n.Value, Checked: tristate(n.Checked), Pressed: tristate(n.Pressed), Expanded: n.Expanded,
		Selected: flag(n.Selected), Disabled: flag(n.Disabled), Required: flag(n.Required), Focused: flag(n.Focused),
		A11YHidden: flag(n.A11yHidden), Readonly: flag(n.Readonly), Invalid: flag(n.Invalid),
	}
	if n.Text != "" && n.Text != n.Name {
		out.Text = &n.Text
	}
	if n.Ref != "" {
		out.ElementRef = &n.Ref
	}
	if n.Level > 0 {
		level := int32(n.Level)
		out.Level = &level
	}
	return out
}

// element gives the node as one that can be acted on.
func (n *rawNode) element() *browserv1.Element {
	text := n.Text
	if text == "" {
		text = n.Name
	}
	return &browserv1.Element{
		ElementRef: n.Ref, Role: n.Role, Name: n.Name, Text: text, Actionable: n.Actionable, Enabled: !n.Disabled,
		SelectorHint: n.SelectorHint, Value: n.Value, Checked: tristate(n.Checked),
	}
}

// flag is a state that is said only where it holds.
func flag(b bool) *bool {
	if !b {
		return nil
	}
	return &b
}

// tristate reads true, false and mixed; nil for none of them.
func tristate(s string) *browserv1.Tristate {
	switch s {
	case "true":
		return browserv1.Tristate_TRISTATE_TRUE.Enum()
	case "false":
		return browserv1.Tristate_TRISTATE_FALSE.Enum()
	case "mixed":
		return browserv1.Tristate_TRISTATE_MIXED.Enum()
	}
	return nil
}
