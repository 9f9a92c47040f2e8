package supervisor

import (
	"testing"
	"time"
)

// TestWhatIsNotStoredIsNotLive: while the store takes nothing, no kind counts as covered, and each says why. What a kind says of itself
// that nobody reads stays.
func TestWhatIsNotStoredIsNotLive(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	const full = "the store takes no changes: its disk is full"
	for name, test := range map[string]struct {
		state  State
		reason string
		since  time.Duration
		want   State
	}{
		"no trouble":          {Live, "", 0, Live},
		"trouble":             {Live, full, time.Minute, Behind},
		"behind for it":       {Behind, full, time.Minute, Behind},
		"a moment of trouble": {Live, full, time.Second, Live},
		"refused":             {Refused, full, time.Minute, Refused},
		"excluded":            {Excluded, full, time.Minute, Excluded},
	} {
		t.Run(name, func(t *testing.T) {
			got := troubled(KindCoverage{State: test.state, Reason: "its own"}, now, test.reason, now.Add(-test.since))
			if got.State != test.want {
				t.Errorf("%+v", got)
			}
			if named := got.Reason == full && got.Lag == test.since; named != (test.want == Behind) {
				t.Errorf("%+v", got)
			}
		})
	}
}
