package scenario

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A scenario in which the operator owns the object does not say how late it notices that an
// object of somebody else is gone.
func TestAMixWaitsForAnObjectThatMayBeAnothers(t *testing.T) {
	deletes := func(name string, within time.Duration) Step {
		return Step{Delete: &Reference{Kind: "Ingress", Name: name}, Within: metav1.Duration{Duration: within}}
	}
	pool := []Step{deletes("edge", 0), deletes("edge", 12*time.Second), deletes("other", time.Minute), {}}
	tests := map[string]struct {
		step Step
		want time.Duration
	}{
		"deleted in another scenario, too": {deletes("edge", 0), 12 * time.Second},
		"deleted here":                     {deletes("edge", 12*time.Second), 12 * time.Second},
		"deleted nowhere else":             {deletes("nothing", 0), 0},
		"no deletion":                      {Step{}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := longestWithin(pool, tc.step).Duration; got != tc.want {
				t.Errorf("it waits %v, want %v", got, tc.want)
			}
		})
	}
}
