package mcp

import (
	"fmt"
	"strings"
	"unicode/utf8"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// aside is what of a budget is left for the words and the structure beside an outline, in bytes.
const aside = 400

// snapshot adds the outline of a page: the lines from offset on that fit into the budget, and how to get the rest. kind is
// snapshotDelta for lines that tell a change.
func (r *reply) snapshot(resp *browserv1.SnapshotResponse, offset int, kind string) {
	text := strings.TrimRight(resp.GetOutline(), "\n")
	if kind == snapshotDelta {
		r.changed(resp, text)
		return
	}
	shown, notes := cut(text, offset, r.lines(), r.rest)
	r.pages = append(r.pages, fence(originOf(resp.GetUrl()), shown))
	if s := resp.GetSnapshot(); s.GetTruncated() {
		notes = append(notes, fmt.Sprintf("the page has %d nodes, and max_nodes left some out; max_nodes: 0 shows all", s.GetTotalNodes()))
	}
	if omitted := resp.GetProviderData().GetFields()["omitted"].GetListValue().GetValues(); len(omitted) > 0 {
		notes = append(notes, fmt.Sprintf("%d parts of the page cannot be read; provider_data.omitted names them", len(omitted)))
	}
	r.pages = append(r.pages, notes...)
}

// changed adds what is different since the snapshot before: lines that are new or changed start with +.
func (r *reply) changed(resp *browserv1.SnapshotResponse, text string) {
	removed := resp.GetSnapshot().GetRemovedRefs()
	if text == "" && len(removed) == 0 {
		r.say("nothing changed in the outline")
		return
	}
	if text != "" {
		shown, notes := cut(text, 0, r.lines(), func(int) string { return "browser_snapshot shows the page as it is now" })
		r.pages = append(r.pages, fence(originOf(resp.GetUrl()), shown))
		r.pages = append(r.pages, notes...)
	}
	if len(removed) > 0 {
		const most = 50
		more := ""
		if len(removed) > most {
			more = fmt.Sprintf(" and %d more", len(removed)-most)
			removed = removed[:most]
		}
		r.pages = append(r.pages, "gone: "+strings.Join(removed, " ")+more)
	}
}

// rest says how to get an outline's lines from end on.
func (r *reply) rest(end int) string {
	if r.tool.reads() {
		return fmt.Sprintf("go on with offset: %d, or narrow it with root_ref or interactive_only; budget: 0 shows all", end)
	}
	return fmt.Sprintf("browser_snapshot with offset: %d shows the rest", end)
}

// lines is how many bytes of outline fit into the budget; 0 for no limit.
func (r *reply) lines() int {
	if r.room == 0 {
		return 0
	}
	return max(r.room-aside, bytesPerToken)
}

// cut gives the lines from offset on that fit into so many bytes, whole ones, and tells what is missing.
func cut(text string, offset, room int, rest func(end int) string) (shown string, notes []string) {
	if offset == 0 && (room == 0 || len(text) <= room) {
		return text, nil
	}
	lines := strings.Split(text, "\n")
	if offset >= len(lines) {
		return "", []string{fmt.Sprintf("offset %d is past the end: the outline has %d lines", offset, len(lines))}
	}
	end, size := offset, 0
	for end < len(lines) && (room == 0 || size+len(lines[end])+1 <= room) {
		size += len(lines[end]) + 1
		end++
	}
	shown = strings.Join(lines[offset:end], "\n")
	if end == offset { // not even one line fits
		shown = edge(lines[end], room)
		end++
		notes = append(notes, fmt.Sprintf("line %d is cut; a higher budget shows it whole", end))
	}
	note := fmt.Sprintf("lines %d-%d of %d", offset+1, end, len(lines))
	if end < len(lines) {
		note += "; " + rest(end)
	}
	return shown, append(notes, note)
}

// edge gives at most so many bytes of a text, cut between characters.
func edge(text string, room int) string {
	if room = max(room, 0); len(text) <= room {
		return text
	}
	for room > 0 && !utf8.RuneStart(text[room]) {
		room--
	}
	return text[:room]
}
