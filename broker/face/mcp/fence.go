package mcp

import (
	"crypto/rand"
	"net/url"
	"strings"
)

// fence marks text that comes from a page, with its origin. The mark holds a random word that is new in every reply, so
// that no page can write an end of its own; should the text hold the word by chance, another one is taken.
func fence(origin, text string) string {
	mark := strings.ToLower(rand.Text()[:8])
	for strings.Contains(text, mark) {
		mark = strings.ToLower(rand.Text()[:8])
	}
	var b strings.Builder
	b.Grow(len(text) + len(origin) + 40)
	b.WriteString("[page " + mark)
	if origin != "" {
		b.WriteString(" " + origin)
	}
	b.WriteString("]\n" + text)
	if !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString("[/page " + mark + "]")
	return b.String()
}

// originOf gives the origin of an address: scheme and host, or the scheme alone where there is no host. Nothing that a page
// could choose the wording of goes into the mark.
func originOf(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return ""
	case u.Host != "":
		return plain(u.Scheme + "://" + u.Host)
	case u.Scheme != "":
		return plain(u.Scheme + ":")
	}
	return ""
}

// plain leaves of a text what scheme, host and port are written with.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(".:/-_", r):
			return r
		}
		return -1
	}, s)
}
