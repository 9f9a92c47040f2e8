package health

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// These bound the work on an object that somebody made to be expensive.
const (
	// maxItems is how many items of a list are looked at.
	maxItems = 1000
	// maxValue is how many bytes of a value or a message are quoted.
	maxValue = 1024
)

// found is a value with the path that leads to it.
type found struct {
	path  string
	value any
	// beside is the map that holds the value.
	beside map[string]any
}

// step is one step of a path.
type step struct {
	// field is the key of a map.
	field string
	// key and is select the item of a list whose field key has the value is.
	key, is string
	// all selects every item of a list, and every value of a map.
	all bool
}

// text returns the step as it is written in a path. It is not used for all items.
func (s step) text() string {
	switch {
	case s.key != "":
		return "[" + s.key + `="` + s.is + `"]`
	case strings.ContainsAny(s.field, "./"):
		return `["` + s.field + `"]`
	default:
		return "." + s.field
	}
}

// nextStep takes the first step off a path: .field, ["a.field"], [key="value"] or [] for all items.
func nextStep(path string) (first step, rest string) {
	if field, ok := strings.CutPrefix(path, "."); ok {
		end := strings.IndexAny(field, ".[")
		if end < 0 {
			end = len(field)
		}
		return step{field: field[:end]}, field[end:]
	}
	inner, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
	key, is, isItem := strings.Cut(inner, "=")
	switch {
	case inner == "":
		return step{all: true}, rest
	case isItem:
		return step{key: key, is: strings.Trim(is, `"`)}, rest
	default:
		return step{field: strings.Trim(inner, `"`)}, rest
	}
}

// lookup finds the values at a path. There may be more than one only where the path asks for all items of a list.
func lookup(object map[string]any, path string) []found {
	return follow(found{value: object}, path)
}

func follow(from found, path string) []found {
	for path != "" {
		var next step
		next, path = nextStep(path)
		if next.all {
			var all []found
			if fields, isMap := from.value.(map[string]any); isMap {
				for _, key := range keysOf(fields) {
					all = append(all, follow(found{path: from.path + step{field: key}.text(), value: fields[key], beside: fields}, path)...)
				}
				return all
			}
			list, _ := from.value.([]any)
			for i, item := range list[:min(len(list), maxItems)] {
				all = append(all, follow(found{path: from.path + "[" + strconv.Itoa(i) + "]", value: item}, path)...)
			}
			return all
		}
		value, beside, ok := next.in(from.value)
		if !ok {
			return nil
		}
		from = found{path: from.path + next.text(), value: value, beside: beside}
	}
	return []found{from}
}

// keysOf returns keys of a map, in order.
func keysOf(fields map[string]any) []string {
	keys := slices.Sorted(maps.Keys(fields))
	return keys[:min(len(keys), maxItems)]
}

// in takes the step. If two items of a list have the same key, there is none: nobody knows which of them counts.
func (s step) in(value any) (next any, beside map[string]any, ok bool) {
	if s.key == "" {
		holder, _ := value.(map[string]any)
		next, ok = holder[s.field]
		return next, holder, ok && next != nil
	}
	list, _ := value.([]any)
	for _, item := range list[:min(len(list), maxItems)] {
		entry, _ := item.(map[string]any)
		if is, _ := entry[s.key].(string); is != s.is {
			continue
		}
		if ok {
			return nil, nil, false
		}
		next, beside, ok = entry, entry, true
	}
	return next, beside, ok
}

// scalar returns a value as text. ok is false for a map, a list, and nothing.
func scalar(value any) (text string, ok bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case int:
		return strconv.Itoa(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case json.Number:
		return v.String(), true
	default:
		return "", false
	}
}

// number returns a whole number, which some controllers write as text.
func number(value any) (int64, bool) {
	text, ok := scalar(value)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// isEmpty reports whether a value says nothing: no text, no entry, no item.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	default:
		return false
	}
}
