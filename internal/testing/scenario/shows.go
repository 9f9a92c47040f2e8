package scenario

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What Shows may ask of an object, besides Type=Status/Reason of a condition anywhere in its status. The value of a key is
// what it is in the object, for a Secret without its encoding.
const (
	showsNothing = "nothing"   // it does not exist
	showsKey     = "data "     // it has a key
	showsNoKey   = "no data "  // it has it not
	showsSays    = "says "     // a condition has these words
	showsPods    = "replicas " // it asks for so many
)

// shows tells what objects do not show that they should show after a step. A random mix of steps shows anything.
func (r *run) shows(step Step) error {
	state := r.Recorder.State(r.namespace)
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(step.Shows)) {
		object, exists := state[name].(map[string]any)
		for _, want := range step.Shows[name] {
			if shows(object, exists, want) {
				continue
			}
			problems = append(problems,
				fmt.Errorf("%s does not show %q; conditions: %s", name, want, strings.Join(conditionsOf(object["status"]), ", ")))
		}
	}
	return errors.Join(problems...)
}

func shows(object map[string]any, exists bool, want string) bool {
	data, _ := object["data"].(map[string]any)
	if !exists || want == showsNothing {
		return !exists && want == showsNothing
	}
	if key, asked := strings.CutPrefix(want, showsNoKey); asked {
		_, has := data[key]
		return !has
	}
	if key, asked := strings.CutPrefix(want, showsKey); asked {
		return showsData(data, key)
	}
	if replicas, asked := strings.CutPrefix(want, showsPods); asked {
		spec, _ := object["spec"].(map[string]any)
		return fmt.Sprint(spec["replicas"]) == replicas
	}
	conditions := conditionsOf(object["status"])
	if words, asked := strings.CutPrefix(want, showsSays); asked {
		return slices.ContainsFunc(conditions, func(c string) bool { return strings.Contains(c, words) })
	}
	return slices.ContainsFunc(conditions, func(c string) bool { return strings.HasPrefix(c, want+":") })
}

// showsData reports whether data has a key, with a value that contains a text where one is asked for: key=text.
func showsData(data map[string]any, asked string) bool {
	key, text, _ := strings.Cut(asked, "=")
	encoded, has := data[key].(string)
	if !has {
		return false
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	return text == "" || err == nil && strings.Contains(string(raw), text)
}

// conditionsOf are the conditions anywhere in a status, as Type=Status/Reason: message.
func conditionsOf(node any) []string {
	var found []string
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			found = append(found, conditionsOf(item)...)
		}
	case map[string]any:
		if node["type"] != nil && node["status"] != nil && node["reason"] != nil {
			return []string{fmt.Sprintf("%v=%v/%v: %v", node["type"], node["status"], node["reason"], node["message"])}
		}
		for _, key := range slices.Sorted(maps.Keys(node)) {
			found = append(found, conditionsOf(node[key])...)
		}
	}
	return found
}
