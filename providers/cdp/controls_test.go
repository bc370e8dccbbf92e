package cdp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/wire"
)

// The pages of controls, and the list of differences that were argued.
const (
	controlPages       = "../../plugins/inpage/testdata/controls"
	controlDifferences = "../../plugins/inpage/testdata/differences.txt"
)

// On every page of controls the snapshot says of each element the role, name and states that Chromium's own accessibility
// tree says of the very same element, but for the differences that are listed with their reason. One that is not listed
// fails, and so does one that is listed and no longer there. `-update` writes the list anew; what is new in it stands
// under "not argued" and fails until someone has moved it to where it is explained.
func TestControlsAgreeWithChromium(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(controlPages, "*.html"))
	if err != nil || len(files) < 40 {
		t.Fatalf("%d pages of controls (%v)", len(files), err)
	}
	pages := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		pages["/"+filepath.Base(f)] = string(data)
	}
	base := site(t, pages)
	u := newRig(t, nil).session("controls")
	var found []string
	compared := 0
	for _, f := range files {
		name := filepath.Base(f)
		u.open(base + "/" + name)
		u.eval(settled)
		c := &comparison{user: u, page: strings.TrimSuffix(name, ".html"), frames: map[string]string{}}
		c.run()
		found = append(found, c.found...)
		compared += c.compared
	}
	t.Logf("%d pages, %d nodes compared, %d differences", len(files), compared, len(found))
	if compared < 450 {
		t.Errorf("only %d nodes were compared", compared)
	}
	judgeDifferences(t, found)
}

// settled waits for what pages do by themselves after they were loaded: the focus that autofocus gives with the next
// frame, and media that turn out to be missing.
const settled = `(async () => {
	for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
	for (const m of document.querySelectorAll('audio,video')) {
		while (m.networkState === HTMLMediaElement.NETWORK_LOADING) await new Promise(requestAnimationFrame);
	}
	await new Promise(requestAnimationFrame);
})()`

// facts are what a tree says of one element; state words are those of the protocol.
type facts struct {
	role, name string
	states     map[string]string
}

// comparison is that of one page.
type comparison struct {
	*user
	page     string
	title    string
	ours     map[string]facts  // by element ref
	frames   map[string]string // a frame's id → the label of its element
	found    []string
	compared int
}

func (c *comparison) run() {
	c.t.Helper()
	all := int32(0)
	snap := do[*browserv1.SnapshotResponse](c.rig, &browserv1.SnapshotRequest{SessionId: c.id, MaxNodes: &all})
	c.title, c.ours = snap.GetSnapshot().GetRoot().GetName(), map[string]facts{}
	for _, n := range snap.GetSnapshot().GetNodes() {
		if n.ElementRef != nil {
			c.ours[n.GetElementRef()] = ourFacts(n)
		}
	}
	var tree struct {
		FrameTree struct{ Frame struct{ ID string } }
	}
	c.cdp("Page.getFrameTree", map[string]any{}, &tree)
	left := map[string]bool{}
	for ref := range c.ours {
		left[ref] = true
	}
	c.frames[tree.FrameTree.Frame.ID] = ""
	for len(c.frames) > 0 {
		for id, prefix := range c.frames {
			delete(c.frames, id)
			c.document(id, prefix, left)
		}
	}
	if len(left) > 0 {
		c.t.Errorf("%s: refs without an element: %v", c.page, left)
	}
	slices.Sort(c.found)
}

// axNode is a node of Chromium's tree.
type axNode struct {
	Ignored          bool
	Role, Name       struct{ Value any }
	Value            *struct{ Value any }
	BackendDOMNodeID int
	Properties       []struct {
		Name  string
		Value struct{ Value any }
	}
}

// document compares what both trees say of the elements of a frame's document.
func (c *comparison) document(frame, prefix string, left map[string]bool) {
	c.t.Helper()
	// A world of that name is there already, so this gives the engine's own.
	var world struct{ ExecutionContextID int }
	c.cdp("Page.createIsolatedWorld", map[string]any{"frameId": frame, "worldName": worldName}, &world)
	var tree struct{ Nodes []axNode }
	c.cdp("Accessibility.getFullAXTree", map[string]any{"frameId": frame}, &tree)
	theirs := map[string]facts{}
	labels := map[string]string{}
	byRef := map[string]string{} // the key of an element that has a ref → the ref
	for _, n := range tree.Nodes {
		if n.Ignored || n.BackendDOMNodeID == 0 {
			continue
		}
		if n.Role.Value == "RootWebArea" && prefix == "" {
			c.differ("document", &facts{role: "document", name: c.title}, facts{role: "document", name: collapse(n.Name.Value)}, true)
		}
		el, ok := c.identify(map[string]any{"backendNodeId": n.BackendDOMNodeID, "executionContextId": world.ExecutionContextID})
		if !ok { // A text, a mark made by a style sheet, or the document itself.
			continue
		}
		key := strconv.Itoa(n.BackendDOMNodeID)
		theirs[key], labels[key] = chromiumFacts(n), prefix+el.label
		if role := theirs[key].role; role == "iframe" || role == "PluginObject" {
			c.enterFrame(n.BackendDOMNodeID, labels[key])
		}
	}
	// Every ref that lives in this world gives its element, and so its backend node.
	for ref := range c.ours {
		if !left[ref] {
			continue
		}
		object, ok := c.objectOf(world.ExecutionContextID, ref)
		if !ok {
			continue
		}
		var node struct{ Node struct{ BackendNodeID int } }
		c.cdp("DOM.describeNode", map[string]any{"objectId": object}, &node)
		key := strconv.Itoa(node.Node.BackendNodeID)
		el, _ := c.identify(map[string]any{"backendNodeId": node.Node.BackendNodeID, "executionContextId": world.ExecutionContextID})
		byRef[key], labels[key] = ref, prefix+el.label
		delete(left, ref)
	}
	for key, label := range labels {
		their, seen := theirs[key]
		var our *facts
		if ref, ok := byRef[key]; ok {
			f := c.ours[ref]
			our = &f
		}
		c.differ(label, our, their, seen)
	}
}

// differ notes how the facts of one element differ.
func (c *comparison) differ(label string, our *facts, their facts, seen bool) {
	note := func(what, chromium, snapshot string) {
		c.found = append(c.found, fmt.Sprintf("%s | %s | %s | %s | %s", c.page, label, what, chromium, snapshot))
	}
	switch {
	case our == nil && their.role == "generic" && their.name == "" && len(their.states) == 0:
		return // It says nothing, and the snapshot leaves it out.
	case our == nil:
		note("node", their.said(), "absent")
	case !seen:
		note("node", "absent", our.said())
	default:
		c.compared++
		if our.role != their.role {
			note("role", their.role, our.role)
		}
		if our.name != their.name {
			note("name", strconv.Quote(their.name), strconv.Quote(our.name))
		}
		for _, k := range stateWords {
			if our.states[k] != their.states[k] {
				note(k, orNone(their.states[k]), orNone(our.states[k]))
			}
		}
	}
}

var stateWords = []string{"value", "checked", "selected", "expanded", "disabled", "required", "level", "pressed", "focused"}

func (f facts) said() string { return f.role + " " + strconv.Quote(f.name) }

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// ourFacts reads a node of the snapshot.
func ourFacts(n *browserv1.Node) facts {
	f := facts{role: n.GetRole(), name: n.GetName(), states: map[string]string{}}
	for word, holds := range map[string]bool{
		"selected": n.GetSelected(), "disabled": n.GetDisabled(), "required": n.GetRequired(), "focused": n.GetFocused(),
	} {
		if holds {
			f.states[word] = "true"
		}
	}
	if n.Value != nil {
		f.states["value"] = strconv.Quote(n.GetValue())
	}
	if n.Expanded != nil {
		f.states["expanded"] = strconv.FormatBool(n.GetExpanded())
	}
	if n.Level != nil {
		f.states["level"] = strconv.Itoa(int(n.GetLevel()))
	}
	for word, v := range map[string]*browserv1.Tristate{"checked": n.Checked, "pressed": n.Pressed} {
		if v != nil {
			f.states[word] = strings.ToLower(strings.TrimPrefix(v.String(), "TRISTATE_"))
		}
	}
	return f
}

// spelling has ARIA's words for roles that Chromium calls by names of its own.
var spelling = map[string]string{"image": "img", "Iframe": "iframe", "IframePresentational": "iframe", "Audio": "audio", "Video": "video", "Canvas": "canvas"}

// chromiumFacts reads a node of Chromium's tree. White space is collapsed as in the snapshot.
func chromiumFacts(n axNode) facts {
	f := facts{role: fmt.Sprint(n.Role.Value), name: collapse(n.Name.Value), states: map[string]string{}}
	if word, ok := spelling[f.role]; ok {
		f.role = word
	}
	if n.Value != nil && collapse(n.Value.Value) != "" {
		f.states["value"] = strconv.Quote(fmt.Sprint(n.Value.Value))
	}
	for _, p := range n.Properties {
		v := fmt.Sprint(p.Value.Value)
		switch p.Name {
		case "checked", "pressed", "expanded", "level":
			f.states[p.Name] = v
		case "selected", "disabled", "required", "focused":
			if v == "true" {
				f.states[p.Name] = v
			}
		}
	}
	return f
}

func collapse(v any) string {
	if v == nil {
		return ""
	}
	return strings.Join(strings.FieldsFunc(fmt.Sprint(v), func(r rune) bool { return strings.ContainsRune("\t\n\f\r ", r) }), " ")
}

// labelled says how a person finds an element: its tag and its number among those of that tag in its document or root.
const labelled = `function() {
	if (this.nodeType !== 1 || !this.isConnected) return '';
	const at = el => {
		const root = el.getRootNode(), same = [...root.querySelectorAll(el.localName)];
		const own = el.localName + (same.length > 1 ? '[' + (same.indexOf(el) + 1) + ']' : '') + (el.id ? '#' + el.id : '');
		return root.host ? at(root.host) + ' ' + own : own;
	};
	return at(this);
}`

type identified struct{ label string }

// identify labels the element of a node; false for what is no element.
func (c *comparison) identify(node map[string]any) (identified, bool) {
	c.t.Helper()
	var object struct{ Object struct{ ObjectID string } }
	if err := c.tryCDP("DOM.resolveNode", node, &object); err != nil || object.Object.ObjectID == "" {
		return identified{}, false
	}
	var said struct{ Result struct{ Value string } }
	if err := c.tryCDP("Runtime.callFunctionOn", map[string]any{"objectId": object.Object.ObjectID, "functionDeclaration": labelled, "returnByValue": true}, &said); err != nil {
		return identified{}, false
	}
	return identified{said.Result.Value}, said.Result.Value != ""
}

// objectOf gives the element of a ref in the engine's world; false when it is not of this document.
func (c *comparison) objectOf(world int, ref string) (string, bool) {
	c.t.Helper()
	var object struct{ Result struct{ ObjectID string } }
	c.cdp("Runtime.evaluate", map[string]any{"contextId": world, "expression": fmt.Sprintf("globalThis.__drover?.element(%q)", ref)}, &object)
	return object.Result.ObjectID, object.Result.ObjectID != ""
}

// enterFrame has the document of a frame element compared too.
func (c *comparison) enterFrame(backend int, label string) {
	c.t.Helper()
	var node struct{ Node struct{ FrameID string } }
	c.cdp("DOM.describeNode", map[string]any{"backendNodeId": backend}, &node)
	if node.Node.FrameID != "" {
		c.frames[node.Node.FrameID] = label + " "
	}
}

// cdp is a command that must succeed.
func (c *comparison) cdp(method string, params map[string]any, into any) {
	c.t.Helper()
	if err := c.tryCDP(method, params, into); err != nil {
		c.t.Fatalf("%s: %s: %v", c.page, method, err)
	}
}

func (c *comparison) tryCDP(method string, params map[string]any, into any) error {
	body, err := wire.ToStruct(map[string]any{"method": method, "params": params})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	resp, err := c.srv.Custom(ctx, &browserv1.CustomRequest{SessionId: c.id, Method: "cdp.send", Params: body})
	if err != nil {
		return err
	}
	return reread(resp.GetResult(), into)
}

func reread(v *structpb.Value, into any) error {
	data, err := protojson.Marshal(v)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}
