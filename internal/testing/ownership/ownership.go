// Package ownership finds the fields of an object that a field manager owns, and changes
// them one at a time, as somebody else might.
package ownership

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Leaves lists the fields that a manager owns in an object.
func Leaves(object metav1.Object, manager string) ([]fieldpath.Path, error) {
	var leaves []fieldpath.Path
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != manager || entry.FieldsV1 == nil {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("the fields of %s: %w", manager, err)
		}
		set.Leaves().Iterate(func(path fieldpath.Path) { leaves = append(leaves, path.Copy()) })
	}
	return leaves, nil
}

// Change alters the value at a path so that it is another one of the same type. It
// returns false when there is none.
func Change(node any, path fieldpath.Path) bool {
	if element := path[0]; element.Key != nil {
		items, _ := node.([]any)
		for _, item := range items {
			if matches(item, element) {
				return Change(item, path[1:])
			}
		}
		return false
	}
	fields, _ := node.(map[string]any)
	name := *path[0].FieldName
	old, there := fields[name]
	switch {
	case !there:
		return false
	case len(path) == 1:
		fields[name] = other(old)
		return true
	case path[1].Key != nil && (len(path) == 2 || isKeyOf(path[2], path[1])):
		// An item that is owned whole, or its name: taken away.
		items, _ := old.([]any)
		fields[name] = slices.DeleteFunc(items, func(item any) bool { return matches(item, path[1]) })
		return true
	default:
		return Change(old, path[1:])
	}
}

func isKeyOf(field, element fieldpath.PathElement) bool {
	return field.FieldName != nil && slices.ContainsFunc(*element.Key, func(key value.Field) bool { return key.Name == *field.FieldName })
}

func matches(item any, element fieldpath.PathElement) bool {
	fields, ok := item.(map[string]any)
	if !ok {
		return false
	}
	for _, key := range *element.Key {
		if fmt.Sprint(fields[key.Name]) != fmt.Sprint(key.Value.Unstructured()) {
			return false
		}
	}
	return true
}

func other(value any) any {
	switch v := value.(type) {
	case string:
		return otherString(v)
	case float64:
		return v + 1
	case int64:
		return v + 1
	case bool:
		return !v
	case []any:
		return append(v, v...)
	case map[string]any:
		changed := map[string]any{}
		for name, inner := range v {
			changed[name] = other(inner)
		}
		return changed
	default:
		return nil
	}
}

// otherString keeps enumerations and formats valid where there is another value.
func otherString(value string) string {
	swaps := map[string]string{
		"TCP": "UDP", "ScheduleAnyway": "DoNotSchedule", "25%": "50%", "RollingUpdate": "Recreate", "RuntimeDefault": "Unconfined",
		"FallbackToLogsOnError": "File", "AlwaysAllow": "IfHealthyBudget", "100m": "200m", "64Mi": "128Mi", "2Gi": "3Gi", "Prefix": "Exact",
		"/": "/x", "/healthz": "/other", "ALL": "NET_RAW",
	}
	if swapped, ok := swaps[value]; ok {
		return swapped
	}
	return value + "x"
}
