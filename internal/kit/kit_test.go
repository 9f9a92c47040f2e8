package kit

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

func TestAReconcileEndsWithAStatusUnlessThereIsNothingTrueToSay(t *testing.T) {
	stale := outcome.StaleCache("Deployment")
	invalid := outcome.Invalidf("Invalid", "spec.port: no")
	waiting := outcome.Waitingf(3*time.Second, "Terminating", "soon")
	failed := errors.New("the status was refused")
	tests := map[string]struct {
		phases, status error
		recheck        time.Duration
		// statusRecheck is what the status asks for.
		statusRecheck time.Duration
		written       bool
		after         time.Duration
		fails         bool
	}{
		"all is well":                       {nil, nil, 0, 0, true, 0, false},
		"a recheck":                         {nil, nil, time.Minute, 0, true, time.Minute, false},
		"the status wants to be tried soon": {nil, nil, time.Minute, time.Second, true, time.Second, false},
		"a stale cache":                     {stale, nil, 0, 0, false, 50 * time.Millisecond, false},
		"a stale cache and trouble":         {errors.Join(stale, waiting), nil, 0, 0, true, 50 * time.Millisecond, false},
		"the user has to act":               {invalid, nil, 0, 0, true, 0, true},
		"something is expected":             {waiting, nil, 0, 0, true, 3 * time.Second, false},
		"the status could not be written":   {nil, failed, 0, 0, true, 0, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tools := &Tools{conflicts: outcome.NewConflictBackoff(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))}
			recheck, written := outcome.Recheck(tc.recheck), false
			result, err := tools.Conclude(t.Context(), types.NamespacedName{Name: "shop"}, tc.phases, &recheck, func() error {
				written = true
				recheck.After(tc.statusRecheck)
				return tc.status
			})
			if written != tc.written || result.RequeueAfter != tc.after || (err != nil) != tc.fails {
				t.Errorf("status written: %v, again after %v, error %v; want %v, %v, %v", written, result.RequeueAfter, err, tc.written, tc.after, tc.fails)
			}
		})
	}
}
