package change_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/testing/generate"
)

// Since when a condition is so is beside the state: it is no part of what is compared, and the object that is judged has it.
func TestTimesAreBesideTheState(t *testing.T) {
	thing := func(at string) change.State {
		raw := fmt.Sprintf(`{"metadata":{"name":"a","generation":3},"status":{"conditions":[{"type":"Ready","status":"False","lastTransitionTime":%s}],
			"parents":[{"name":"b","conditions":[{"type":"Accepted","status":"True"},{"type":"Valid","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}]}}`, at)
		return reduce(t, raw, nil)
	}
	early, late := thing(`"2026-01-01T01:00:00+01:00"`), thing(`"2026-01-02T00:00:00Z"`)
	if early.Hash != late.Hash {
		t.Error("a time is a change")
	}
	for _, c := range []struct{ state, want string }{
		{mustObject(t, early), `"lastTransitionTime":"2026-01-01T00:00:00Z","status":"False"`},
		{mustObject(t, late), `"lastTransitionTime":"2026-01-02T00:00:00Z","status":"False"`},
		{mustObject(t, late), `{"status":"True","type":"Accepted"},{"lastTransitionTime":"2026-01-01T00:00:00Z","status":"True","type":"Valid"}`},
		{mustObject(t, late), `"generation":3`},
		{mustObject(t, thing(`"soon"`)), `{"status":"False","type":"Ready"}`},
		{mustObject(t, thing(`7`)), `{"status":"False","type":"Ready"}`},
	} {
		if !strings.Contains(c.state, c.want) {
			t.Errorf("%s does not have %s", c.state, c.want)
		}
	}
}

const since = "lastTransitionTime"

func mustObject(t *testing.T, s change.State) string {
	t.Helper()
	object, err := s.Object()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Whatever a status looks like: an object has the times that it had, where it had them, and a state says at most so much of them.
func FuzzTimes(f *testing.F) {
	generate.Seed(f, 20)
	f.Fuzz(func(t *testing.T, data []byte) {
		source := generate.From(data)
		count := 0
		raw, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Thing", "metadata": map[string]any{"name": "a"}, "status": anyStatus(source, &count, 0),
		})
		if err != nil {
			t.Fatal(err)
		}
		state := reduce(t, string(raw), nil)
		if state.MetadataOnly || len(state.Times) > 4*1024 {
			t.Errorf("%d bytes of times, %s", len(state.Times), state.Reason)
		}
		object, err := state.Object()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &want); err != nil {
			t.Fatal(err)
		}
		if got, want := timesByName(object["status"], nil), timesByName(want["status"], nil); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v of %s", got, want, raw)
		}
	})
}

// anyStatus is a value in which each condition has a type of its own, so that it is found again.
func anyStatus(source *generate.Source, count *int, depth int) any {
	switch n := source.Below(6); {
	case n < 2 && depth < 5:
		list := []any{}
		for range source.Below(4) {
			list = append(list, anyStatus(source, count, depth+1))
		}
		return list
	case n < 5 && depth < 5:
		object := map[string]any{}
		for i := range source.Below(4) {
			object[fmt.Sprint("field", source.Below(20), i)] = anyStatus(source, count, depth+1)
		}
		if source.Below(2) == 0 {
			*count++
			object["type"], object["status"] = fmt.Sprint("Type", *count), "True"
			if source.Below(3) > 0 {
				object[since] = fmt.Sprintf("2026-01-01T00:%02d:00Z", *count%60)
			}
		}
		return object
	default:
		return source.Below(100)
	}
}

// timesByName lists the conditions with their times, in order.
func timesByName(value any, list []string) []string {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			list = timesByName(item, list)
		}
	case map[string]any:
		if name, typed := v["type"].(string); typed {
			list = append(list, fmt.Sprint(name, " ", v[since]))
		}
		for _, item := range v {
			list = timesByName(item, list)
		}
	}
	slices.Sort(list)
	return list
}
