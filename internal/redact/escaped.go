package redact

import (
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxUnescaped is how many times a text is unescaped in which known values are looked for.
const maxUnescaped = 3

// unescaped is a text in which what programs write in another way is as it is, and where each of its bytes was before.
type unescaped struct {
	text string
	// at has the place of each byte, and of the end.
	at []int
}

// unescape returns what a text becomes when all escapes of URLs, JSON, programming languages, shells, HTML and SQL in it are read,
// and false if it has none.
func unescape(text string) (unescaped, bool) {
	first := 0
	for first < len(text) && escapeLength(text[first:]) == 0 {
		first++
	}
	if first == len(text) {
		return unescaped{}, false
	}
	// What is read is never longer than its escape, except for a few names of HTML.
	out, at := append(make([]byte, 0, len(text)), text[:first]...), make([]int, first, len(text)+1)
	for i := range at {
		at[i] = i
	}
	for i := first; i < len(text); {
		if !isEscapeByte(text[i]) {
			out, at = append(out, text[i]), append(at, i)
			i++
			continue
		}
		decoded, length := escape(text[i:])
		if length == 0 {
			decoded, length = text[i:i+1], 1
		}
		out = append(out, decoded...)
		for range len(decoded) {
			at = append(at, i)
		}
		i += length
	}
	return unescaped{string(out), append(at, len(text))}, true
}

func isEscapeByte(c byte) bool { return c == '%' || c == '\\' || c == '&' || c == '\'' }

// escapeLength is how long an escape is that a text begins with.
func escapeLength(text string) int {
	if !isEscapeByte(text[0]) {
		return 0
	}
	_, length := escape(text)
	return length
}

// escape reads an escape that a text begins with. The length is 0 if it begins with none.
func escape(text string) (decoded string, length int) {
	switch text[0] {
	case '%':
		if c, ok := hexadecimal(text, 1, 2); ok {
			return string([]byte{byte(c)}), 3
		}
	case '&':
		if end := strings.IndexByte(text[:min(len(text), 10)], ';'); end > 1 {
			if decoded = html.UnescapeString(text[:end+1]); decoded != text[:end+1] {
				return decoded, end + 1
			}
		}
	case '\'':
		for _, inside := range []string{`'\''`, `'"'"'`, `''`} {
			if strings.HasPrefix(text, inside) {
				return "'", len(inside)
			}
		}
	case '\\':
		return backslash(text)
	}
	return "", 0
}

// backslash reads an escape of JSON, a programming language or a shell.
func backslash(text string) (decoded string, length int) {
	if len(text) < 2 {
		return "", 0
	}
	switch c := text[1]; c {
	case 'n', 't', 'r', 'b', 'f', 'v', 'a':
		return string("\n\t\r\b\f\v\a"[strings.IndexByte("ntrbfva", c)]), 2
	case 'x':
		if b, ok := hexadecimal(text, 2, 2); ok {
			return string([]byte{byte(b)}), 4
		}
	case 'U':
		if r, ok := hexadecimal(text, 2, 8); ok {
			return string(rune(r)), 10
		}
	case 'u':
		r, ok := hexadecimal(text, 2, 4)
		if !ok {
			break
		}
		if second, ok := hexadecimal(text, 8, 4); ok && strings.HasPrefix(text[6:], `\u`) && utf16.IsSurrogate(rune(r)) {
			return string(utf16.DecodeRune(rune(r), rune(second))), 12
		}
		return string(rune(r)), 6
	}
	if text[1] <= ' ' || text[1] >= utf8.RuneSelf || isLetter(text[1]) || isDigit(text[1]) {
		return "", 0
	}
	return text[1:2], 2
}

// hexadecimal reads so many hexadecimal digits at a place.
func hexadecimal(text string, at, digits int) (uint64, bool) {
	if len(text) < at+digits {
		return 0, false
	}
	n, err := strconv.ParseUint(text[at:at+digits], 16, 32)
	return n, err == nil
}

// escapedValues finds known values in a text after its escapes are read: once, and again in what became of it.
func (r *Redactor) escapedValues(text string) []part {
	var found []part
	whole := unescaped{text: text}
	for range maxUnescaped {
		next, ok := unescape(whole.text)
		if !ok {
			break
		}
		if whole.at != nil {
			for i, at := range next.at {
				next.at[i] = whole.at[at]
			}
		}
		whole = next
		for _, p := range r.whole(whole.text) {
			end := p.End // what is escaped as several bytes goes as a whole
			for end < len(whole.text) && whole.at[end] == whole.at[end-1] {
				end++
			}
			found = append(found, part{Span{whole.at[p.Start], whole.at[end]}, p.marker})
		}
	}
	return slices.DeleteFunc(found, func(p part) bool { return r.isMarked(text[p.Start:p.End]) })
}
