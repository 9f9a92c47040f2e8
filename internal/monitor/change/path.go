package change

import (
	"errors"
	"strconv"
	"strings"
)

// A path is what Field.Path holds, in steps:
//
//	.name         a member of an object, where the name is a letter or _, then letters, digits, _ and -
//	["any text"]  a member with any other name, as a JSON string
//	[3]           an item of a list: of the list before the change where it was removed, and of that after it otherwise
//	[name="app"]  an item by the members that are its keys, as JSON, with a comma between two
//	[="text"]     an item of a set, as JSON
//	[]            the order of a list's items: the values are lists of what stands between the brackets of the items
//	[*]           any item or member, in configured paths only
type step struct {
	typ stepType
	// name is that of a member, and the text between the brackets of an item by keys or value.
	name  string
	index int
	// keys are those of an item, and value is the item of a set.
	keys  []node
	value node
}

type stepType uint8

const (
	nameStep stepType = iota
	indexStep
	keysStep
	valueStep
	orderStep
	eachStep
)

// maxPath is the longest path of a field. A change below a longer one is left out, and its record is truncated.
const maxPath = 2048

var errPath = errors.New("it has .name, [\"name\"], [number], [key=value], [=value], [] and [*]")

func isSimpleName(name string) bool {
	if name == "" || isDigit(name[0]) || name[0] == '-' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && !isDigit(c) && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func appendName(to []byte, name string) []byte {
	if isSimpleName(name) {
		return append(append(to, '.'), name...)
	}
	return append(appendString(append(to, '['), name), ']')
}

// appendKeyName writes the name of a key in front of its value.
func appendKeyName(to []byte, name string) []byte {
	if isSimpleName(name) {
		return append(to, name...)
	}
	return appendString(to, name)
}

func parsePath(path string) ([]step, error) {
	var steps []step
	for path != "" {
		s, rest, err := parseStep(path)
		if err != nil {
			return nil, err
		}
		steps, path = append(steps, s), rest
	}
	return steps, nil
}

func parseStep(path string) (step, string, error) {
	if path[0] == '.' {
		end := 1
		for end < len(path) && path[end] != '.' && path[end] != '[' {
			end++
		}
		if !isSimpleName(path[1:end]) {
			return step{}, "", errPath
		}
		return step{typ: nameStep, name: path[1:end]}, path[end:], nil
	}
	if len(path) < 2 || path[0] != '[' {
		return step{}, "", errPath
	}
	end := closing(path)
	if end < 0 {
		return step{}, "", errPath
	}
	s, err := parseBrackets(path[1:end])
	return s, path[end+1:], err
}

// closing finds the bracket that ends a step. One inside a JSON string does not.
func closing(path string) int {
	depth, quoted := 0, false
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func parseBrackets(text string) (step, error) {
	switch {
	case text == "":
		return step{typ: orderStep}, nil
	case text == "*":
		return step{typ: eachStep}, nil
	case text[0] == '=':
		value, err := decode(text[1:])
		return step{typ: valueStep, name: text, value: value}, err
	case isDigit(text[0]):
		index, err := strconv.ParseInt(text, 10, 32)
		return step{typ: indexStep, index: int(index)}, err
	}
	if name, err := decode(text); err == nil {
		if name.typ != stringNode {
			return step{}, errPath
		}
		return step{typ: nameStep, name: name.text}, nil
	}
	keys, err := parseKeys(text)
	return step{typ: keysStep, name: text, keys: keys}, err
}

// parseKeys reads key=value,key=value.
func parseKeys(text string) ([]node, error) {
	var keys []node
	for {
		name, rest, err := parseKeyName(text)
		if err != nil {
			return nil, err
		}
		d := decoder{text: rest}
		var value node
		if err := d.value(&value, 0); err != nil {
			return nil, err
		}
		value.key = name
		keys = append(keys, value)
		if rest = rest[d.at:]; rest == "" {
			return keys, nil
		}
		if rest[0] != ',' {
			return nil, errPath
		}
		text = rest[1:]
	}
}

func parseKeyName(text string) (string, string, error) {
	if strings.HasPrefix(text, `"`) {
		d := decoder{text: text}
		name, err := d.string()
		if err != nil {
			return "", "", err
		}
		if rest, found := strings.CutPrefix(text[d.at:], "="); found {
			return name, rest, nil
		}
		return "", "", errPath
	}
	name, rest, found := strings.Cut(text, "=")
	if !found || !isSimpleName(name) {
		return "", "", errPath
	}
	return name, rest, nil
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' }
