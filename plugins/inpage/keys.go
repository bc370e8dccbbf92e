package inpage

import (
	"sort"
	"strings"
	"unicode/utf8"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// stroke is one key of a US keyboard: KeyboardEvent's key, code and location (UI Events KeyboardEvent code values), the
// legacy keyCode, and what it writes.
type stroke struct {
	key, code string
	keyCode   int
	location  int
	text      string
}

// named are the keys that write nothing, or something other than their name, by KeyboardEvent.key.
var named = map[string]stroke{
	"Enter":       {"Enter", "Enter", 13, 0, "\r"},
	"Tab":         {"Tab", "Tab", 9, 0, ""},
	"Backspace":   {"Backspace", "Backspace", 8, 0, ""},
	"Escape":      {"Escape", "Escape", 27, 0, ""},
	"Delete":      {"Delete", "Delete", 46, 0, ""},
	"Insert":      {"Insert", "Insert", 45, 0, ""},
	"Home":        {"Home", "Home", 36, 0, ""},
	"End":         {"End", "End", 35, 0, ""},
	"PageUp":      {"PageUp", "PageUp", 33, 0, ""},
	"PageDown":    {"PageDown", "PageDown", 34, 0, ""},
	"ArrowLeft":   {"ArrowLeft", "ArrowLeft", 37, 0, ""},
	"ArrowUp":     {"ArrowUp", "ArrowUp", 38, 0, ""},
	"ArrowRight":  {"ArrowRight", "ArrowRight", 39, 0, ""},
	"ArrowDown":   {"ArrowDown", "ArrowDown", 40, 0, ""},
	"CapsLock":    {"CapsLock", "CapsLock", 20, 0, ""},
	"NumLock":     {"NumLock", "NumLock", 144, 0, ""},
	"ScrollLock":  {"ScrollLock", "ScrollLock", 145, 0, ""},
	"Pause":       {"Pause", "Pause", 19, 0, ""},
	"PrintScreen": {"PrintScreen", "PrintScreen", 44, 0, ""},
	"ContextMenu": {"ContextMenu", "ContextMenu", 93, 0, ""},
	"Clear":       {"Clear", "NumpadClear", 12, 3, ""},
	"Help":        {"Help", "Help", 47, 0, ""},
	"Alt":         {"Alt", "AltLeft", 18, 1, ""},
	"Control":     {"Control", "ControlLeft", 17, 1, ""},
	"Meta":        {"Meta", "MetaLeft", 91, 1, ""},
	"Shift":       {"Shift", "ShiftLeft", 16, 1, ""},
	"AltGraph":    {"AltGraph", "AltRight", 18, 2, ""},

	"AudioVolumeMute":    {"AudioVolumeMute", "AudioVolumeMute", 173, 0, ""},
	"AudioVolumeDown":    {"AudioVolumeDown", "AudioVolumeDown", 174, 0, ""},
	"AudioVolumeUp":      {"AudioVolumeUp", "AudioVolumeUp", 175, 0, ""},
	"MediaTrackNext":     {"MediaTrackNext", "MediaTrackNext", 176, 0, ""},
	"MediaTrackPrevious": {"MediaTrackPrevious", "MediaTrackPrevious", 177, 0, ""},
	"MediaStop":          {"MediaStop", "MediaStop", 178, 0, ""},
	"MediaPlayPause":     {"MediaPlayPause", "MediaPlayPause", 179, 0, ""},
}

// aliases are other names that people give to keys, in lower case.
var aliases = map[string]string{
	"return": "Enter", "esc": "Escape", "del": "Delete", "ins": "Insert", "left": "ArrowLeft", "right": "ArrowRight",
	"up": "ArrowUp", "down": "ArrowDown", "ctrl": "Control", "cmd": "Meta", "command": "Meta", "win": "Meta", "super": "Meta",
	"option": "Alt", "opt": "Alt", "pgup": "PageUp", "pgdn": "PageDown", "pgdown": "PageDown", "menu": "ContextMenu",
	"space": " ", "spacebar": " ", "plus": "+",
}

// modifierBits are the keys that hold others.
var modifierBits = map[string]Modifiers{"Alt": ModAlt, "Control": ModControl, "Meta": ModMeta, "Shift": ModShift}

// shifted are the characters of the US layout that need Shift, beside those that do not, each with its code and keyCode.
var shifted = []struct {
	plain, shift string
	code         string
	keyCode      int
}{
	{"1", "!", "Digit1", 49},
	{"2", "@", "Digit2", 50},
	{"3", "#", "Digit3", 51},
	{"4", "$", "Digit4", 52},
	{"5", "%", "Digit5", 53},
	{"6", "^", "Digit6", 54},
	{"7", "&", "Digit7", 55},
	{"8", "*", "Digit8", 56},
	{"9", "(", "Digit9", 57},
	{"0", ")", "Digit0", 48},
	{"-", "_", "Minus", 189},
	{"=", "+", "Equal", 187},
	{"[", "{", "BracketLeft", 219},
	{"]", "}", "BracketRight", 221},
	{"\\", "|", "Backslash", 220},
	{";", ":", "Semicolon", 186},
	{"'", "\"", "Quote", 222},
	{",", "<", "Comma", 188},
	{".", ">", "Period", 190},
	{"/", "?", "Slash", 191},
	{"`", "~", "Backquote", 192},
	{" ", " ", "Space", 32},
}

// strokeOf finds the key that has a name or writes a character, with Shift held or not.
func strokeOf(name string, shift bool) (stroke, bool) {
	if utf8.RuneCountInString(name) != 1 {
		return namedStroke(name)
	}
	c := name[0]
	switch {
	case name == "\r" || name == "\n":
		return named["Enter"], true
	case name == "\t":
		return named["Tab"], true
	case len(name) == 1 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'):
		upper := strings.ToUpper(name)
		if shift {
			name = upper
		}
		return stroke{name, "Key" + upper, int(upper[0]), 0, name}, true
	}
	for _, s := range shifted {
		if name != s.plain && name != s.shift {
			continue
		}
		if shift {
			name = s.shift
		}
		return stroke{name, s.code, s.keyCode, 0, name}, true
	}
	return stroke{key: name, text: name}, true // A character that no key of this keyboard writes.
}

func namedStroke(name string) (stroke, bool) {
	if s, ok := named[name]; ok {
		return s, true
	}
	low := strings.ToLower(name)
	if a, ok := aliases[low]; ok {
		return strokeOf(a, false)
	}
	if n := functionKey(low); n > 0 {
		key := strings.ToUpper(low)
		return stroke{key, key, 111 + n, 0, ""}, true
	}
	for k, s := range named {
		if strings.EqualFold(k, name) {
			return s, true
		}
	}
	return stroke{}, false
}

// functionKey reads f1 to f24; 0 for anything else.
func functionKey(low string) int {
	digits, ok := strings.CutPrefix(low, "f")
	if !ok || digits == "" || len(digits) > 2 || digits[0] == '0' {
		return 0
	}
	n := 0
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + int(c-'0')
	}
	if n > 24 {
		return 0
	}
	return n
}

// chord reads `Control+Shift+a`: the modifiers that are held and the key. A plus sign is the key itself when it stands last.
func chord(s string) (Modifiers, stroke, error) {
	var held Modifiers
	rest := s
	for {
		i := strings.IndexByte(rest, '+')
		if i <= 0 || i == len(rest)-1 {
			break
		}
		st, ok := strokeOf(strings.TrimSpace(rest[:i]), false)
		bit := modifierBits[st.key]
		if !ok || bit == 0 {
			return 0, stroke{}, fault.New(fault.InvalidRequest, "%q is no modifier key", rest[:i]).Field("key").
				Hint("put Alt, Control, Meta or Shift before the key, as in Control+Shift+a")
		}
		held |= bit
		rest = rest[i+1:]
	}
	name := rest
	if t := strings.TrimSpace(rest); t != "" {
		name = t
	}
	st, ok := strokeOf(name, held&ModShift != 0)
	if !ok || name == "" {
		return 0, stroke{}, fault.New(fault.InvalidRequest, "there is no key %q", name).Field("key").
			Hint("use a name of KeyboardEvent.key such as %s, or one character", strings.Join(nearKeys(name), ", "))
	}
	if held&(ModControl|ModAlt|ModMeta) != 0 {
		st.text = "" // A shortcut writes nothing.
	}
	return held, st, nil
}

// nearKeys lists some names of keys that begin like a wrong one, or the usual ones.
func nearKeys(name string) []string {
	var near []string
	for k := range named {
		if name != "" && strings.HasPrefix(strings.ToLower(k), strings.ToLower(name[:1])) {
			near = append(near, k)
		}
	}
	sort.Strings(near)
	if len(near) == 0 {
		return []string{"Enter", "Tab", "Escape", "ArrowDown"}
	}
	return near[:min(len(near), 5)]
}

// press is the input of a key with modifiers, pressed and released.
func (s stroke) press(held Modifiers) []Event {
	events := holdEvents(held)
	down := held | modifierBits[s.key]
	events = append(events,
		Event{Kind: KeyDown, Key: s.key, Code: s.code, KeyCode: s.keyCode, Location: s.location, Text: s.text, Modifiers: down},
		Event{Kind: KeyUp, Key: s.key, Code: s.code, KeyCode: s.keyCode, Location: s.location, Modifiers: held})
	return append(events, releaseEvents(held)...)
}

// modifierOrder is the order in which modifiers go down.
var modifierOrder = []string{"Control", "Alt", "Shift", "Meta"}

// holdEvents presses modifier keys.
func holdEvents(held Modifiers) []Event {
	var events []Event
	var now Modifiers
	for _, name := range modifierOrder {
		if bit := modifierBits[name]; held&bit != 0 {
			now |= bit
			s := named[name]
			events = append(events, Event{Kind: KeyDown, Key: s.key, Code: s.code, KeyCode: s.keyCode, Location: s.location, Modifiers: now})
		}
	}
	return events
}

// releaseEvents lets modifier keys go.
func releaseEvents(held Modifiers) []Event {
	var events []Event
	for i := len(modifierOrder) - 1; i >= 0; i-- {
		name := modifierOrder[i]
		if bit := modifierBits[name]; held&bit != 0 {
			held &^= bit
			s := named[name]
			events = append(events, Event{Kind: KeyUp, Key: s.key, Code: s.code, KeyCode: s.keyCode, Location: s.location, Modifiers: held})
		}
	}
	return events
}

// modifiersOf gives the request's modifiers as a set.
func modifiersOf(list []browserv1.Modifier) Modifiers {
	var held Modifiers
	for _, m := range list {
		switch m {
		case browserv1.Modifier_MODIFIER_ALT:
			held |= ModAlt
		case browserv1.Modifier_MODIFIER_CONTROL:
			held |= ModControl
		case browserv1.Modifier_MODIFIER_META:
			held |= ModMeta
		case browserv1.Modifier_MODIFIER_SHIFT:
			held |= ModShift
		case browserv1.Modifier_MODIFIER_UNSPECIFIED:
		}
	}
	return held
}
