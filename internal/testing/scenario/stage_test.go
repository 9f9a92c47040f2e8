package scenario

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/testing/fault"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

func TestStepsThatFollowAtOnceAreOneStage(t *testing.T) {
	s := Scenario{Steps: []Step{{}, {Together: true}, {Begun: true}, {}, {}}}
	var got []int
	for i := range s.Steps {
		got = append(got, s.Stage(i))
	}
	if diff := cmp.Diff([]int{0, 1, 1, 1, 4}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// If each stage has a fault of its own, a stage may not use the writes that another one has
// left over.
func TestWritesAreBoundedInEachStage(t *testing.T) {
	writes := func(n int) []fault.Write {
		return slices.Repeat([]fault.Write{{Kind: requests.Kind{Verb: "apply", Resource: "services", Namespace: "team"}, Path: "/api/v1/namespaces/team/services/shop", Code: 200}}, n)
	}
	reference := &Outcome{Writes: writes(2), Steps: []int{0, 1}}
	tests := map[string]struct {
		first, second int
		problems      int
	}{
		"as without":                     {1, 1, 0},
		"as often as is fine":            {4, 4, 0},
		"too often in the first":         {5, 1, 1},
		"too often in the second":        {1, 5, 1},
		"too often in both":              {5, 5, 2},
		"never in the first, then often": {0, 8, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &run{
				scenario: Scenario{Steps: make([]Step, 2)},
				trial:    Trial{Injected: map[int]InjectedFault{0: {}, 1: {}}},
				stages:   []stage{{first: 0}, {first: 1, writes: tc.first, injected: 1}},
			}
			got := &Outcome{Writes: writes(tc.first + tc.second), States: make([]map[string]any, 2), Injected: map[int]int{0: 1, 1: 1}}
			if problems := r.checkWrites(reference, got); len(problems) != tc.problems {
				t.Errorf("problems: %v, want %d", problems, tc.problems)
			}
		})
	}
}
