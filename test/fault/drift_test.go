//go:build faulttest

package fault_test

import (
	"testing"
)

// F9: somebody changes every field that the operator owns, one after the other. (That
// every child is deleted is a scenario of its own.)
func TestDrift(t *testing.T) {
	t.Parallel()
	played := false
	for _, kind := range kinds {
		for _, s := range kind.Scenarios {
			if !s.Drift {
				continue
			}
			played = true
			t.Run(s.Kind+"/"+s.Name, func(t *testing.T) {
				t.Parallel()
				drifts, err := bench.PlayDrift(t, kind, s)
				if err != nil {
					t.Fatal(err)
				}
				refused := 0
				for _, d := range drifts {
					if d.Refused != nil {
						refused++
						continue
					}
					if d.Problem != nil {
						t.Errorf("%s %s: %v", d.Object, d.Field, d.Problem)
					}
					table.Add(s.Kind+"/"+s.Name, "F9 drift", d.Problem == nil)
				}
				t.Logf("%d fields were changed; %d more cannot be changed by anybody", len(drifts)-refused, refused)
				if len(drifts) == refused {
					t.Error("no field could be changed")
				}
			})
		}
	}
	if !played && *onlyKind == "" {
		t.Error("no scenario asks for drift")
	}
}
