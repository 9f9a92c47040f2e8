package restore

import (
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// The status tells the time that the copy is listed with, also where a snapshot of the volume was read later.
func TestTheTimeOfACopyIsThatOfItsSource(t *testing.T) {
	read := time.Date(2026, 3, 4, 2, 40, 0, 0, time.UTC)
	tests := map[string]struct {
		of, now, want time.Time
	}{
		"of a snapshot of the volume":   {read.Add(-35 * time.Minute), read.Add(time.Hour), read.Add(-35 * time.Minute)},
		"of the volume itself":          {read, read.Add(time.Hour), read},
		"a result of an older release":  {time.Time{}, read.Add(time.Hour), read},
		"a node whose clock is ahead":   {read, read.Add(-time.Minute), read.Add(-time.Minute)},
		"the same, of an older release": {time.Time{}, read.Add(-time.Minute), read.Add(-time.Minute)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := sourceTime(&mover.SnapshotResult{SourceTime: tc.of, Start: read}, tc.now); !got.Time.Equal(tc.want) {
				t.Errorf("the copy is of %v, want %v", got, tc.want)
			}
		})
	}
}
