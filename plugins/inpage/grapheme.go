package inpage

import (
	"unicode"
	"unicode/utf8"
)

// graphemes splits text into what a person takes for one character: a base with its combining marks, emoji joined by
// zero-width joiners, flags and skin tones. It follows the main rules of UAX #29, enough not to tear one apart.
func graphemes(text string) []string {
	var out []string
	start, flags := 0, 0
	var prev rune
	for i, r := range text {
		if i > start || i == 0 && prev == 0 {
			if i > 0 && !joins(prev, r, flags) {
				out = append(out, text[start:i])
				start, flags = i, 0
			}
		}
		if regional(r) {
			flags++
		}
		prev = r
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}

const joiner = '\u200d'

// joins says whether r belongs to the character that ends in prev; flags counts the regional indicators in it so far.
func joins(prev, r rune, flags int) bool {
	switch {
	case prev == '\r' && r == '\n':
		return true
	case prev == utf8.RuneError:
		return false
	case prev == joiner && r > 0x2000:
		return true
	case r == joiner, unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc), r >= 0x1F3FB && r <= 0x1F3FF, r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0020 && r <= 0xE007F:
		return prev != '\n' && prev != '\r'
	case regional(r) && regional(prev):
		return flags%2 == 1
	case hangul(r) && hangul(prev):
		return r >= 0x1160 && r <= 0x11FF
	}
	return false
}

func regional(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

// hangul are conjoining jamo and the syllables they attach to.
func hangul(r rune) bool { return r >= 0x1100 && r <= 0x11FF || r >= 0xAC00 && r <= 0xD7A3 }
