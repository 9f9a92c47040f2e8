package outcome

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"
)

func TestAPauseGrowsWithRetriesAlone(t *testing.T) {
	const base, limit = 20 * time.Millisecond, 100 * time.Millisecond
	tests := map[string]struct {
		// after is how long after the failure before each failure comes.
		after []time.Duration
		want  []time.Duration
	}{
		"every failure is that of a retry": {
			after: []time.Duration{0, 20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond, 100 * time.Millisecond},
			want:  []time.Duration{20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond, limit, limit},
		},
		"failures of reconciles that changes caused": {
			after: []time.Duration{0, 0, 5 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond},
			want:  []time.Duration{base, base, 15 * time.Millisecond, 10 * time.Millisecond, 40 * time.Millisecond, 30 * time.Millisecond},
		},
		"a failure long after others, of which the last was not to be retried": {
			after: []time.Duration{0, 20 * time.Millisecond, 40 * time.Millisecond, 81*time.Millisecond + 2*limit},
			want:  []time.Duration{20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond, base},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clock := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
			b := newBackoff[string](clock, base, limit)
			var got []time.Duration
			for _, after := range tc.after {
				clock.SetTime(clock.Now().Add(after))
				got = append(got, b.When("shop"))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if other := b.When("other"); other != base {
				t.Errorf("another object that failed for the first time pauses for %v, want %v", other, base)
			}
			b.Forget("shop")
			if again := b.When("shop"); again != base {
				t.Errorf("after a success the pause is %v, want %v", again, base)
			}
		})
	}
}
