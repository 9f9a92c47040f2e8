package engine

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// The library writes names as JSON, which knows UTF-8 only and would replace any other byte for good. So a byte that is no
// UTF-8 becomes a character of a private area. Such a character in a name is itself written byte by byte, so that every name
// has one form, and every form at most one name.
const (
	firstByte = '\uEF80' // stands for the byte 0x80
	lastByte  = '\uEFFF' // stands for the byte 0xFF
)

// encodeName returns the name of a file as it is stored.
func encodeName(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, isByte) {
		return name
	}
	var encoded strings.Builder
	for position := 0; position < len(name); {
		r, size := utf8.DecodeRuneInString(name[position:])
		if (r == utf8.RuneError && size == 1) || isByte(r) {
			for _, b := range []byte(name[position : position+size]) {
				encoded.WriteRune(firstByte + rune(b-0x80))
			}
		} else {
			encoded.WriteString(name[position : position+size])
		}
		position += size
	}
	return encoded.String()
}

var errName = errors.New("the name cannot be that of a file")

// decodeName returns the name of a file from its stored form. It refuses what encodeName does not return and what no
// system call lists, so that a name from a hostile repository leads nowhere.
func decodeName(encoded string) (string, error) {
	var name strings.Builder
	for _, r := range encoded {
		if isByte(r) {
			name.WriteByte(byte(r-firstByte) + 0x80)
		} else {
			name.WriteRune(r)
		}
	}
	decoded := name.String()
	if decoded == "" || decoded == "." || decoded == ".." || strings.ContainsAny(decoded, "/\x00") || encodeName(decoded) != encoded {
		return "", errName
	}
	return decoded, nil
}

// encodePath is encodeName for each element of a path.
func encodePath(path string) string {
	elements := strings.Split(path, "/")
	for i, element := range elements {
		elements[i] = encodeName(element)
	}
	return strings.Join(elements, "/")
}

func isByte(r rune) bool { return r >= firstByte && r <= lastByte }
