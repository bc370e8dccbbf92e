package mcp

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// snapshotWords are what an action may show of the page afterwards.
var snapshotWords = []string{snapshotNone, snapshotDelta, snapshotFull}

const (
	snapshotNone  = "none"
	snapshotDelta = "delta"
	snapshotFull  = "full"
)

// defaultBudget is how many tokens a reply may have when the call does not say; a token is taken for bytesPerToken bytes.
const (
	defaultBudget = 8000
	bytesPerToken = 4
)

// arguments are what a call said to the face itself.
type arguments struct {
	session  string
	snapshot string
	room     int // bytes; 0 for no limit
	offset   int // lines
}

// parse takes the face's own arguments out of a call's and reads the rest as the method's request. What is wrong is
// invalid_request and names the argument.
func (t *tool) parse(raw json.RawMessage) (arguments, proto.Message, error) {
	a := arguments{snapshot: snapshotNone, room: defaultBudget * bytesPerToken}
	fields := map[string]json.RawMessage{}
	if len(raw) > 0 && string(raw) != "null" {
		if err := wire.Check(raw); err != nil {
			return a, nil, err
		}
		if err := json.Unmarshal(raw, &fields); err != nil {
			return a, nil, fault.New(fault.InvalidRequest, "the arguments must be an object").Cause(err)
		}
	}
	budget := defaultBudget
	own := map[string]any{argSession: &a.session, argBudget: &budget}
	if t.reads() {
		own[argOffset] = &a.offset
	}
	if t.acts() {
		own[argSnapshot] = &a.snapshot
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if data, ok := fields[name]; ok {
			if err := json.Unmarshal(data, own[name]); err != nil {
				return a, nil, fault.New(fault.InvalidRequest, "%s has the wrong type", name).Field(name).Cause(err)
			}
			delete(fields, name)
		}
	}
	switch {
	case budget < 0 || budget > 1<<28:
		return a, nil, fault.New(fault.InvalidRequest, "budget must be 0 (no limit) or a number of tokens").Field(argBudget)
	case a.offset < 0:
		return a, nil, fault.New(fault.InvalidRequest, "offset must not be negative").Field(argOffset)
	case !slices.Contains(snapshotWords, a.snapshot):
		return a, nil, fault.New(fault.InvalidRequest, "snapshot must be one of %s", strings.Join(snapshotWords, ", ")).Field(argSnapshot)
	}
	a.room = budget * bytesPerToken
	if err := t.refuse(fields); err != nil {
		return a, nil, err
	}
	rest, err := json.Marshal(fields)
	if err != nil {
		return a, nil, fault.New(fault.InvalidRequest, "the arguments cannot be read").Cause(err)
	}
	req := t.method.NewRequest()
	return a, req, wire.Unmarshal(rest, req)
}

// refuse names the first argument that the tool does not have, and the one that it was most likely meant to be.
func (t *tool) refuse(fields map[string]json.RawMessage) error {
	known := t.arguments()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(known, name) {
			continue
		}
		err := fault.New(fault.InvalidRequest, "%s has no argument %q", t.name, name).Field(name)
		if name == "session_id" || name == "client_session_id" {
			return err.Hint("name the session with %q", argSession)
		}
		if n := wire.Nearest(name, known); n != "" {
			return err.Hint("did you mean %q?", n).With("nearest", n)
		}
		return err.Hint("it has %s", strings.Join(known, ", "))
	}
	return nil
}

// arguments lists every argument that the tool takes.
func (t *tool) arguments() []string {
	out := []string{argSession, argBudget}
	if t.reads() {
		out = append(out, argOffset)
	}
	if t.acts() {
		out = append(out, argSnapshot)
	}
	var collect func(md protoreflect.MessageDescriptor)
	collect = func(md protoreflect.MessageDescriptor) {
		for i := range md.Fields().Len() {
			fd := md.Fields().Get(i)
			switch spec := wire.SpecOf(fd); {
			case spec.GetOffMcp(), fd.Name() == "session_id":
			case spec.GetInline():
				collect(fd.Message())
			default:
				out = append(out, string(fd.Name()))
			}
		}
	}
	collect(t.method.Request.Descriptor())
	slices.Sort(out)
	return out
}
