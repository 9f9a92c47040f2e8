package boundary

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Has reports whether an object has a value for a property.
func Has(object map[string]any, path string) bool {
	holder, step, err := find(object, path)
	return err == nil && holder.has(step)
}

// HasRoom reports whether an object has what would hold a property: With would work.
func HasRoom(object map[string]any, path string) bool {
	_, _, err := find(object, path)
	return err == nil
}

// With returns a copy of an object in which a property has a value. Of a list it is the
// first item that is changed, of a map the first key in order.
func With(object map[string]any, path string, value Value) (map[string]any, error) {
	changed := runtime.DeepCopyJSON(object)
	holder, step, err := find(changed, path)
	if err != nil {
		return nil, err
	}
	if value.Unset {
		delete(holder.object, step)
		return changed, nil
	}
	content := runtime.DeepCopyJSONValue(value.Value)
	if holder.list != nil {
		holder.list[0] = content
	} else {
		holder.object[step] = content
	}
	return changed, nil
}

// Names returns how the API server may call a property of an object: with the index of
// the item, and with the key of a map in either spelling.
func Names(object map[string]any, path string) []string {
	dotted, bracketed := "", ""
	for i, step := range steps(path) {
		switch step {
		case "[]":
			dotted, bracketed = dotted+"[0]", bracketed+"[0]"
		case "*":
			key := "*"
			if holder, _, err := find(object, join(steps(path)[:i+1])); err == nil {
				key = firstKey(holder.object)
			}
			dotted, bracketed = dotted+"."+key, bracketed+"["+key+"]"
		default:
			dotted, bracketed = dotted+"."+step, bracketed+"."+step
		}
	}
	return []string{strings.TrimPrefix(dotted, "."), strings.TrimPrefix(bracketed, ".")}
}

// holder is the list or the object that a property is in.
type holder struct {
	list   []any
	object map[string]any
}

func (h holder) has(step string) bool {
	if h.list != nil {
		return true
	}
	_, ok := h.object[step]
	return ok
}

// steps splits spec.envFrom[].name into spec, envFrom, [] and name.
func steps(path string) []string {
	return strings.Split(strings.ReplaceAll(path, "[]", ".[]"), ".")
}

func join(list []string) string {
	return strings.ReplaceAll(strings.Join(list, "."), ".[]", "[]")
}

// find returns what holds a property, and the field or key under which it is there.
func find(object map[string]any, path string) (holder, string, error) {
	var at any = object
	list := steps(path)
	for i, step := range list {
		here, key, err := enter(at, step)
		if err != nil {
			return holder{}, "", fmt.Errorf("%s: %w", join(list[:i+1]), err)
		}
		if i == len(list)-1 {
			return here, key, nil
		}
		if here.list != nil {
			at = here.list[0]
		} else {
			at = here.object[key]
		}
	}
	return holder{}, "", fmt.Errorf("%q is no path", path)
}

func enter(at any, step string) (holder, string, error) {
	if step == "[]" {
		list, ok := at.([]any)
		if !ok || len(list) == 0 {
			return holder{}, "", fmt.Errorf("there is no item")
		}
		return holder{list: list}, step, nil
	}
	object, ok := at.(map[string]any)
	if !ok {
		return holder{}, "", fmt.Errorf("there is no object to hold it")
	}
	if step == "*" {
		if len(object) == 0 {
			return holder{}, "", fmt.Errorf("there is no key")
		}
		return holder{object: object}, firstKey(object), nil
	}
	return holder{object: object}, step, nil
}

func firstKey(object map[string]any) string {
	return slices.Sorted(maps.Keys(object))[0]
}
