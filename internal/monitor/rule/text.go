package rule

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText is how many bytes the text of an alarm has at most.
const MaxText = 1024

const ellipsis = "..."

// Text makes a text fit to be shown: at most MaxText bytes, with every character that a terminal or a page could take for an
// instruction written as an escape. What is already so stays as it is.
func Text(text string) string {
	var out strings.Builder
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				r = -1
			}
		}
		if out.Len() > MaxText {
			break
		}
		switch {
		case r == -1:
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case r == ' ' || unicode.IsGraphic(r) && !unicode.Is(unicode.Zs, r):
			out.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&out, `\U%08x`, r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return cut(out.String(), MaxText)
}

// cut shortens a text at a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
