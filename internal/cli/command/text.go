package command

import (
	"strings"
	"unicode"
)

// Printable makes a text safe to print: one line, without terminal control characters. Logs
// and events, and so messages, contain text that clients sent to the application.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n':
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.TrimRight(text, "\r"))
}
