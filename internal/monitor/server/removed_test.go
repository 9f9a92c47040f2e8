package server

import (
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

func TestWhoMissesChangesThatWereRemovedIsTold(t *testing.T) {
	until := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	of := func(created time.Time) store.Share {
		return store.Share{Of: &change.Tenure{UID: "u", Created: created}}
	}
	tests := map[string]struct {
		share        store.Share
		since, until time.Time
		want         bool
	}{
		"of all that ever had the name": {store.Share{All: true}, time.Time{}, until, true},
		"of a namespace that was there": {of(until.Add(-time.Hour)), time.Time{}, until, true},
		"of one that was made since":    {of(until.Add(time.Hour)), time.Time{}, until, false},
		"who may see nothing":           {store.Share{}, time.Time{}, until, false},
		"who asks for what is later":    {store.Share{All: true}, until.Add(time.Second), until, false},
		"who asks for some of it":       {store.Share{All: true}, until.Add(-time.Second), until, true},
		"of which nothing was removed":  {store.Share{All: true}, time.Time{}, time.Time{}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := reportsRemoved(tc.share, tc.since, tc.until); got != tc.want {
				t.Errorf("told: %v, want %v", got, tc.want)
			}
		})
	}
}
