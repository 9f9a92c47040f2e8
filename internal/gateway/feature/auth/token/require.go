package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var errNamedTwice = errors.New("a name occurs twice in an object")

// Has reports whether a claim is one of the values, or a list that has one of them. Names lead into objects as in Text. Strings,
// booleans and whole numbers count, as JSON writes them, and of the claims scope and scp the words (RFC 8693, 4.2). Where readers
// could find different claims under the name, there is none.
func (c Claims) Has(name string, values []string) bool {
	found := readings(c, name)
	if len(found) != 1 || !found[0].exact {
		return false
	}
	value := found[0].value
	if text, is := value.(string); is && (name == "scope" || name == "scp") {
		return slices.ContainsFunc(strings.Split(text, " "), func(word string) bool { return isOneOf(word, values) })
	}
	if list, is := value.([]any); is {
		return slices.ContainsFunc(list, func(element any) bool { return isOneOf(element, values) })
	}
	return isOneOf(value, values)
}

// reading is a claim that some reader finds under a name. An exact one has the name in its own case.
type reading struct {
	value any
	exact bool
}

// readings returns all claims that readers may find, who ignore case or prefer one of the ways through dots.
func readings(object map[string]any, name string) []reading {
	var found []reading
	for key, value := range object {
		if strings.EqualFold(key, name) {
			found = append(found, reading{value, key == name})
		}
		inner, isObject := value.(map[string]any)
		if !isObject {
			continue
		}
		// The key may itself have dots.
		for at := range name {
			if name[at] != '.' || !strings.EqualFold(key, name[:at]) {
				continue
			}
			for _, one := range readings(inner, name[at+1:]) {
				found = append(found, reading{one.value, one.exact && key == name[:at]})
			}
		}
	}
	return found
}

// isOneOf never holds for lists, objects and null. Of numbers it takes the one form that a whole number has, because readers may
// round others. A string that holds the replacement character may have been another one.
func isOneOf(value any, values []string) bool {
	text := ""
	switch value := value.(type) {
	case string:
		text = value
	case bool:
		text = strconv.FormatBool(value)
	case json.Number:
		text = value.String()
		if strings.ContainsAny(text, ".eE+") || text == "-0" {
			return false
		}
	default:
		return false
	}
	return !strings.ContainsRune(text, utf8.RuneError) && slices.Contains(values, text)
}

// checkNames returns an error if an object has a name twice, at any depth. Readers take the first of them or the last.
func checkNames(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var open []map[string]bool // the names of each open object, nil for a list
	isName := false            // a string that comes now is a name
	for {
		word, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name, isText := word.(string)
		switch {
		case word == json.Delim('{'):
			open, isName = append(open, map[string]bool{}), true
			continue
		case word == json.Delim('['):
			open, isName = append(open, nil), false
			continue
		case word == json.Delim('}') || word == json.Delim(']'):
			open = open[:len(open)-1]
		case isText && isName:
			names := open[len(open)-1]
			if names[name] {
				return errNamedTwice
			}
			names[name], isName = true, false
			continue
		}
		isName = len(open) > 0 && open[len(open)-1] != nil
	}
}
