package fieldname

import "strings"

// IsValue reports whether text has no control characters, so that it can be the value of a header field.
func IsValue(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
