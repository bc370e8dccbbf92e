package main

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// Styles of text on a terminal (ECMA-48 SGR).
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// paint styles text where the writer is a terminal and NO_COLOR is not set (no-color.org).
func (a *app) paint(w io.Writer, style, text string) string {
	if text == "" || !terminal(w) || os.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// terminal says whether a person reads what is written there.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
