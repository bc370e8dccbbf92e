package policy

import "github.com/agext/levenshtein"

// nearest gives the known word that a mistyped one was most likely meant to be; "" when none is close.
func nearest(word string, known []string) string {
	best, at := "", 0.0
	for _, k := range known {
		if s := levenshtein.Match(word, k, nil); s > at {
			best, at = k, s
		}
	}
	if at < 0.6 {
		return ""
	}
	return best
}
