package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// told is what the sentences about losses take of a budget, in bytes.
const told = 200

// fit brings the structured result within what the text left of the budget. Lists lose their last entries, long texts their
// end, and what can only be left out whole is left out; each loss is told, and the whole result is kept for a while as a
// resource.
func (r *reply) fit(c *client) {
	if r.room == 0 {
		return
	}
	room := r.room - told
	for _, p := range r.pages {
		room -= len(p) + 1
	}
	room = max(room, aside)
	if size(r.fields) <= room {
		return
	}
	whole := encode(r.fields)
	for size(r.fields) > room {
		name := largest(r.fields)
		if len(r.fields[name]) <= 64 {
			break // many small fields; there is nothing to gain
		}
		r.say(r.shrink(name, room-(size(r.fields)-len(r.fields[name]))))
	}
	link := c.kept.link("result.json", "application/json", whole)
	link.Description = "The whole result, for a while"
	r.content = append(r.content, link)
	r.say("budget: 0 shows all")
}

// shrink makes one field fit into so many bytes, and tells what it lost.
func (r *reply) shrink(name string, room int) string {
	var list []json.RawMessage
	if json.Unmarshal(r.fields[name], &list) == nil && list != nil {
		used, n := 2, 0
		for n < len(list) && used+len(list[n])+1 <= room {
			used += len(list[n]) + 1
			n++
		}
		r.fields[name] = encode(list[:n])
		return fmt.Sprintf("%s: %d of %d shown", name, n, len(list))
	}
	var text string
	if json.Unmarshal(r.fields[name], &text) == nil {
		keep := edge(text, room-2)
		for len(encode(keep)) > room && keep != "" { // escapes make it longer than it is
			keep = edge(keep, len(keep)-max((len(encode(keep))-room)/6, 1))
		}
		r.fields[name] = encode(keep)
		return fmt.Sprintf("%s: %d of %d bytes shown", name, len(keep), len(text))
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(r.fields[name], &object) == nil && object != nil {
		used := 2
		kept := map[string]json.RawMessage{}
		for _, k := range slices.Sorted(maps.Keys(object)) {
			if more := len(k) + len(object[k]) + 4; used+more <= room {
				used += more
				kept[k] = object[k]
			}
		}
		r.fields[name] = encode(kept)
		return fmt.Sprintf("%s: %d of %d shown", name, len(kept), len(object))
	}
	delete(r.fields, name)
	return name + " is left out"
}

func size(fields map[string]json.RawMessage) int {
	n := 2
	for k, v := range fields {
		n += len(k) + len(v) + 4
	}
	return n
}

func largest(fields map[string]json.RawMessage) string {
	name := ""
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if name == "" || len(fields[k]) > len(fields[name]) {
			name = k
		}
	}
	return name
}

// encode writes texts, lists and objects of JSON, which cannot fail.
func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return data
}
