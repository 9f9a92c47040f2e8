package hook_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/backup/hook"
)

// Whatever an annotation holds, what it is read as is what any reader of JSON finds in it: written again it says the same, and
// each permit stands in it under exactly these names.
func FuzzPermits(f *testing.F) {
	for _, seed := range []string{
		`[{"container":"db","command":["/freeze","a b"]}]`, `[]`, `[{}]`, `null`, `[{"Container":"db","command":["x"]}]`,
		`[{"container":"db","container":"x","command":["x"]}]`, `[{"container":"db","command":["\ud800"]}]`, `[{"command":["x"],"container":"db"}] `,
		`[{"container":"db","command":["x"]},]`, `[{"container":"d\u0062","command":["\u2028"]}]`, "[{\"container\":\"db\",\"command\":[\"\xff\"]}]",
		`[[{"container":"db","command":["x"]}]]`, `[{"container":"db","command":["x"],"command":["y"]}]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		permits, err := hook.ParsePermits(annotation)
		if err != nil {
			if permits != nil {
				t.Fatalf("refused (%v), and yet %+v", err, permits)
			}
			return
		}
		var model []map[string]any
		if err := json.Unmarshal([]byte(annotation), &model); err != nil {
			t.Fatalf("%q is no list for others: %v", annotation, err)
		}
		if len(model) != len(permits) {
			t.Fatalf("%q has %d entries for others, and %d here", annotation, len(model), len(permits))
		}
		for i, permit := range permits {
			words := make([]any, 0, len(permit.Command))
			for _, word := range permit.Command {
				words = append(words, word)
			}
			want := map[string]any{"container": permit.Container, "command": words}
			if !reflect.DeepEqual(model[i], want) {
				t.Errorf("entry %d of %q is %v for others, and %v here", i, annotation, model[i], want)
			}
			if permit.Container == "" || len(permit.Command) == 0 || strings.ContainsRune(strings.Join(permit.Command, ""), 0) {
				t.Errorf("entry %d of %q allows %+v", i, annotation, permit)
			}
		}
		again, err := json.Marshal(model)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := hook.ParsePermits(string(again)); err != nil || !reflect.DeepEqual(read, permits) && len(permits) > 0 {
			t.Errorf("%q, written again as %q, says %+v (%v) and not %+v", annotation, again, read, err, permits)
		}
	})
}
