package token

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// Claims are the claims of a token. Numbers keep their original form.
type Claims map[string]any

// UnmarshalJSON keeps numbers as they are, because a float cannot hold an ID of 17 digits. It refuses names that occur twice in an
// object, as RFC 7519, 4 lets readers do.
func (c *Claims) UnmarshalJSON(text []byte) error {
	if err := checkNames(text); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode((*map[string]any)(c))
}

// Subject returns the claim sub, or "" if there is none.
func (c Claims) Subject() string {
	subject, _ := c["sub"].(string)
	return subject
}

// Text returns a claim as text. Strings, numbers and booleans stay as they are, lists and
// objects become JSON. If no claim has a name with dots, the name leads into objects. It
// returns false if there is no such claim, or if its value cannot be a header value.
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
	default: // numbers and booleans have the form of JSON
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

// isHeaderValue refuses control characters, and white space at the ends, which would be
// lost.
func isHeaderValue(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == 0x7f {
			return false
		}
	}
	return strings.Trim(text, " ") == text
}

// Expiry returns the claim exp. It returns false if there is none.
func (c Claims) Expiry() (time.Time, bool) {
	number, _ := c["exp"].(json.Number)
	seconds, err := number.Float64()
	if err != nil || seconds < 0 || seconds > maxExpiry {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}

// maxExpiry is the year 9999.
const maxExpiry = 253402300799
