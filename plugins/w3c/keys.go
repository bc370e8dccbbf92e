package w3c

import (
	"unicode/utf8"

	"github.com/droverhq/drover/plugins/inpage"
)

// keys are the characters by which WebDriver names keys (WebDriver, 17.4.2 "Keyboard actions").
var keys = map[string]rune{
	"Cancel": 0xE001, "Help": 0xE002, "Backspace": 0xE003, "Tab": 0xE004, "Clear": 0xE005, "Enter": 0xE006, "Shift": 0xE008,
	"Control": 0xE009, "Alt": 0xE00A, "Pause": 0xE00B, "Escape": 0xE00C, "PageUp": 0xE00E, "PageDown": 0xE00F, "End": 0xE010,
	"Home": 0xE011, "ArrowLeft": 0xE012, "ArrowUp": 0xE013, "ArrowRight": 0xE014, "ArrowDown": 0xE015, "Insert": 0xE016,
	"Delete": 0xE017, "F1": 0xE031, "F2": 0xE032, "F3": 0xE033, "F4": 0xE034, "F5": 0xE035, "F6": 0xE036, "F7": 0xE037,
	"F8": 0xE038, "F9": 0xE039, "F10": 0xE03A, "F11": 0xE03B, "F12": 0xE03C, "Meta": 0xE03D,
}

// Key gives the character that stands for an event's key; false where there is none.
func Key(e inpage.Event) (string, bool) {
	if r, ok := keys[e.Key]; ok {
		return string(r), true
	}
	return e.Key, utf8.RuneCountInString(e.Key) == 1 && !NamesKeys(e.Key)
}

// NamesKeys says whether a text holds characters by which WebDriver names keys.
func NamesKeys(text string) bool {
	for _, r := range text {
		if r >= 0xE000 && r <= 0xE05D {
			return true
		}
	}
	return false
}
