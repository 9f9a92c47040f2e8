package health_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/health"
)

// foreign is a row of testdata/foreign.txt: a kind, the state, and what of an object decides.
type foreign struct {
	group, kind, state string
	object             map[string]any
}

// foreignKinds reads the table of kinds of other projects. A line is
//
//	group Kind: State atom atom…; State atom…
//
// An atom is Type=Status or Type=Status/Reason of a condition, with @2h if it has been so for 2 hours, or .path=value. A blank in a
// value is written as ~.
func foreignKinds(t testing.TB) (rows []foreign) {
	t.Helper()
	raw, err := os.ReadFile("testdata/foreign.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		head, rest, _ := strings.Cut(line, ": ")
		group, kind, found := strings.Cut(head, " ")
		if !found {
			t.Fatalf("no kind in %q", line)
		}
		for _, part := range strings.Split(rest, "; ") {
			words := strings.Fields(part)
			rows = append(rows, foreign{group: group, kind: kind, state: words[0], object: foreignObject(group, kind, words[1:])})
		}
	}
	return rows
}

func foreignObject(group, kind string, atoms []string) map[string]any {
	object := map[string]any{"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"name": "a", "generation": int64(1)}}
	var conditions []any
	for _, atom := range atoms {
		if strings.HasPrefix(atom, ".") {
			at := strings.LastIndex(atom, "=")
			put(object, atom[:at], strings.ReplaceAll(atom[at+1:], "~", " "))
			continue
		}
		name, value, _ := strings.Cut(atom, "=")
		value, age, _ := strings.Cut(value, "@")
		status, reason, _ := strings.Cut(value, "/")
		c := map[string]any{"type": name, "status": status, "reason": reason}
		if ago, err := time.ParseDuration(age); err == nil {
			c["lastTransitionTime"] = now.Add(-ago).Format(time.RFC3339)
		}
		conditions = append(conditions, c)
	}
	if conditions != nil {
		put(object, ".status.conditions", "")
		object["status"].(map[string]any)["conditions"] = conditions
	}
	return object
}

// put makes a field. A step is .name, .[name] for a name with dots, or .name[] for the one item of a list.
func put(object map[string]any, path, value string) {
	var steps []string
	for rest := strings.TrimPrefix(path, "."); rest != ""; {
		var step string
		if inner, found := strings.CutPrefix(rest, "["); found {
			step, rest, _ = strings.Cut(inner, "]")
			rest = strings.TrimPrefix(rest, ".")
		} else {
			step, rest, _ = strings.Cut(rest, ".")
		}
		steps = append(steps, step)
	}
	at := object
	for i, step := range steps {
		name, isList := strings.CutSuffix(step, "[]")
		if i == len(steps)-1 {
			at[name] = typedValue(value)
			return
		}
		next, _ := at[name].(map[string]any)
		if items, _ := at[name].([]any); len(items) > 0 {
			next = items[0].(map[string]any)
		}
		if next == nil {
			next = map[string]any{}
			at[name] = next
			if isList {
				at[name] = []any{next}
			}
		}
		at = next
	}
}

func typedValue(text string) any {
	switch text {
	case "true", "false":
		return text == "true"
	case "[]":
		return []any{}
	case "":
		return nil
	}
	var number int64
	if n, err := fmt.Sscanf(text, "%d", &number); n == 1 && err == nil && fmt.Sprint(number) == text {
		return number
	}
	return text
}

// What other projects write into a status is read as they mean it.
func TestForeignKinds(t *testing.T) {
	for _, row := range foreignKinds(t) {
		v := health.Evaluate(row.object, health.Options{Now: now})
		state := string(v.State)
		switch v.Reason {
		case health.ReasonSuspended, health.ReasonNoStatus, health.ReasonHasNoStatus:
			state = v.Reason
		}
		if state != row.state {
			t.Errorf("%s %s is %s, want %s: %+v of %v", row.group, row.kind, state, row.state, v, row.object)
		}
		checkRules(t, row.object, v)
	}
}
