package token

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Claims are what a token says. Numbers are as they were written.
type Claims map[string]any

// UnmarshalJSON keeps numbers as they are: an ID of 17 digits is not a float.
func (c *Claims) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode((*map[string]any)(c))
}

// Subject returns the claim sub, empty if there is none.
func (c Claims) Subject() string {
	subject, _ := c["sub"].(string)
	return subject
}

// Text returns a claim as text: strings, numbers and booleans as they are, lists and
// objects as JSON. A name with dots that is no claim's leads into objects. It reports
// false if there is no such claim, or if it cannot be the value of a header.
func (c Claims) Text(name string) (string, bool) {
	value, found := find(c, name)
	if !found {
		return "", false
	}
	text := ""
	switch value := value.(type) {
	case nil:
		return "", false
	case string:
		text = value
	default: // JSON's own form of a number or a boolean
		encoded, err := json.Marshal(value)
		if err != nil {
			return "", false
		}
		text = string(encoded)
	}
	if !isHeaderValue(text) {
		return "", false
	}
	return text, true
}

func find(object map[string]any, name string) (any, bool) {
	if value, found := object[name]; found {
		return value, true
	}
	first, rest, more := strings.Cut(name, ".")
	inner, isObject := object[first].(map[string]any)
	if !more || !isObject {
		return nil, false
	}
	return find(inner, rest)
}

// isHeaderValue refuses control characters, and white space that would be lost at the ends.
func isHeaderValue(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == 0x7f {
			return false
		}
	}
	return strings.Trim(text, " ") == text
}
