package scenario

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/fault"
)

// justBefore is how many writes from before the end are told: a late one follows from them.
const justBefore = 5

// Late is an error that a busy machine does not excuse, like Unsafe: something was written
// after the operator had nothing left to do.
type Late struct{ error }

// Unwrap returns what was written.
func (l Late) Unwrap() error { return l.error }

// late tells what was written after the end, what that changed, and what was last written
// before. The versions are all that were seen, and seen is how many of them there were at
// the end; so are writes and written.
func late(end time.Time, writes []fault.Write, written int, versions []Version, seen int) error {
	lines := []string{fmt.Sprintf("%d writes after the end:", len(writes)-written)}
	for _, w := range writes[written:] {
		lines = append(lines, fmt.Sprintf("%s %s: %s", since(end, w.At), describe(w), w.Body))
	}
	for i := seen; i < len(versions); i++ {
		lines = append(lines,
			fmt.Sprintf("%s %s was seen changed: %s", since(end, versions[i].At), versions[i].Object, changedIn(versions, i)))
	}
	for _, w := range writes[max(0, written-justBefore):written] {
		lines = append(lines, fmt.Sprintf("%s %s", since(end, w.At), describe(w)))
	}
	return Late{errors.New(strings.Join(lines, "\n"))}
}

// since says how long after the end something was, or before it.
func since(end, at time.Time) string {
	after := at.Sub(end).Round(time.Millisecond)
	if after < 0 {
		return fmt.Sprintf("%v before it:", -after)
	}
	return fmt.Sprintf("%v after it:", after)
}

// describe is a write with the object and the answer.
func describe(w fault.Write) string {
	return fmt.Sprintf("%s %s (answered %d)", w.Verb, w.Target(), w.Code)
}

// changedIn tells which fields a version has otherwise than the one before of its object.
func changedIn(versions []Version, at int) string {
	version := versions[at]
	if version.Deleted {
		return gone
	}
	var before map[string]any
	for _, earlier := range versions[:at] {
		switch {
		case earlier.Object != version.Object:
		case earlier.Deleted:
			before = nil
		default:
			before = earlier.Fields
		}
	}
	if before == nil {
		return "(made)"
	}
	changed := changedFields("", before, version.Fields)
	if len(changed) == 0 {
		return "(nothing)"
	}
	return strings.Join(changed, "; ")
}

// bookkeeping are fields that change with every write.
var bookkeeping = []string{"metadata.resourceVersion", "metadata.managedFields"}

// changedFields lists what differs between two values, by path: before -> after. Where
// there was nothing, or there is nothing any more, that is <nil>.
func changedFields(path string, before, after any) []string {
	if slices.Contains(bookkeeping, path) || reflect.DeepEqual(before, after) {
		return nil
	}
	first, firstOK := fieldsOf(before)
	second, secondOK := fieldsOf(after)
	if !firstOK || !secondOK {
		return []string{fmt.Sprintf("%s: %v -> %v", path, before, after)}
	}
	names := map[string]bool{}
	for name := range first {
		names[name] = true
	}
	for name := range second {
		names[name] = true
	}
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		changed = append(changed, changedFields(strings.TrimPrefix(path+"."+name, "."), first[name], second[name])...)
	}
	return changed
}

// fieldsOf are the fields of an object, or the items of a list by their type or name, or
// else their place.
func fieldsOf(value any) (map[string]any, bool) {
	switch value := value.(type) {
	case map[string]any:
		return value, true
	case []any:
		items := map[string]any{}
		for i, item := range value {
			items[itemName(i, item)] = item
		}
		return items, true
	default:
		return nil, false
	}
}

func itemName(place int, item any) string {
	fields, _ := item.(map[string]any)
	for _, key := range []string{"type", "name"} {
		if name, ok := fields[key].(string); ok {
			return name
		}
	}
	return fmt.Sprint(place)
}
