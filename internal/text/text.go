// Package text bounds the texts that go into the API: messages of conditions, events and annotations.
package text

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/slipway-dev/slipway/internal/redact"
)

// Printable returns a text in one line of characters that are printed, and nothing else: for what somebody else has written,
// which may hold what moves the cursor of a terminal, or turns the direction of a line.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		if unicode.IsSpace(r) {
			return ' '
		}
		return unicode.ReplacementChar
	}, text)
}

// Bytes writes a size for people, for example 1.2 GiB.
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	const units = "KMGTPE"
	for value >= 1023.95 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", value, units[unit])
}

// Cut shortens a text to at most limit bytes. It does not split a character. Of a text that is too long it hides the secrets first:
// what is left of one that was cut off does not look like one any more.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	if text = redact.Clean(text); len(text) <= limit {
		return text
	}
	const ellipsis = "..."
	end := limit - len(ellipsis)
	for end > 0 && text[end]&0xC0 == 0x80 {
		end--
	}
	return text[:end] + ellipsis
}

// Count is a number of things, such as 1 file or 2 files: thing is the word for one.
func Count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
