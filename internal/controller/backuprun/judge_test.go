package backuprun

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
)

func TestACopyIsNeverNewerThanItCanBe(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 500, time.UTC)
	ago := func(minutes int) time.Time {
		return now.Truncate(time.Second).Add(-time.Duration(minutes) * time.Minute)
	}
	asked := func(minutes int) *metav1.Time { return &metav1.Time{Time: ago(minutes)} }
	tests := map[string]struct {
		made  mover.SnapshotResult
		asked *metav1.Time
		want  time.Time
	}{
		"of the volume":                       {mover.SnapshotResult{SourceTime: ago(5), Start: ago(5)}, nil, ago(5)},
		"of a snapshot":                       {mover.SnapshotResult{SourceTime: ago(9), Start: ago(5)}, asked(9), ago(9)},
		"of the snapshot of a later attempt":  {mover.SnapshotResult{SourceTime: ago(6), Start: ago(5)}, asked(9), ago(6)},
		"by an older release":                 {mover.SnapshotResult{Start: ago(5)}, nil, ago(5)},
		"by an older release, of a snapshot":  {mover.SnapshotResult{Start: ago(5)}, asked(9), ago(9)},
		"read before it was":                  {mover.SnapshotResult{SourceTime: ago(4), Start: ago(5)}, nil, ago(5)},
		"by a node whose clock is ahead":      {mover.SnapshotResult{SourceTime: ago(-60), Start: ago(-60)}, nil, ago(0)},
		"a snapshot, and a clock ahead":       {mover.SnapshotResult{SourceTime: ago(9), Start: ago(-60)}, asked(9), ago(9)},
		"an older release, and a clock ahead": {mover.SnapshotResult{Start: ago(-60)}, nil, ago(0)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := sourceTime(&tc.made, tc.asked, now); !got.Time.Equal(tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// A sample is not all of a copy, and what went while it was read is not in it.
func TestWhatWasReadIsTold(t *testing.T) {
	tests := map[string]struct {
		volume  slipwayv1alpha1.BackupVolume
		read    int64
		leftOut int32
		want    string
	}{
		"all":      {slipwayv1alpha1.BackupVolume{Files: 60}, 60, 0, "every copy was read back"},
		"a sample": {slipwayv1alpha1.BackupVolume{Files: 60}, 3, 0, "every copy was checked, and 3 of 60 files read back (spec.verify.mode of the Backup)"},
		"one that vanished": {
			slipwayv1alpha1.BackupVolume{Files: 1, Vanished: 1, Changed: 2},
			1, 0,
			"every copy was read back; 1 path vanished before being read; 2 files changed while being read",
		},
		"a part": {
			slipwayv1alpha1.BackupVolume{Files: 1, Unreadable: 1},
			1, 0,
			"every copy was read back; 1 path missing, not readable (spec.allowPartial of the Backup)",
		},
		"not all volumes": {
			slipwayv1alpha1.BackupVolume{Files: 1},
			1, 8,
			"every copy was read back; 8 volumes of former pods left out: a Backup takes 32 volumes (volumes and leftOut in status)",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &scope{volumes: []slipwayv1alpha1.BackupVolume{tc.volume}, verification: &slipwayv1alpha1.BackupVerification{ReadFiles: tc.read}, leftOut: tc.leftOut}
			if got := s.whatWasRead(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
