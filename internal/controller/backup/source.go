package backup

import (
	"fmt"
	"slices"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// A copy counts for the source that it is of. Who names another volume in spec.source has no copy of that one yet, however new
// those of the one before are. They stay in the repository.

// ofDump tells a dump from a copy of volumes.
const ofDump = " (dump)"

// sourceOf is what a spec says is to be copied. It is empty where nobody can understand that.
func sourceOf(spec *slipwayv1alpha1.BackupSpec) string {
	source, err := mover.ParseSource(spec.Source)
	if err != nil {
		return ""
	}
	if spec.Dump != nil {
		return source.Text() + ofDump
	}
	return source.Text()
}

// counts reports whether the copies of a run are of the present source.
func (s *scope) counts(run *slipwayv1alpha1.BackupRun) bool {
	volumes := run.Status.Volumes
	if s.source == "" || len(volumes) == 0 {
		return s.source == ""
	}
	dump := ""
	if volumes[0].Dump != "" {
		dump = ofDump
	}
	if run.Status.Source != "" {
		return run.Status.Source+dump == s.source
	}
	// An older operator did not note it. Of a claim the copies tell.
	source, err := mover.ParseSource(s.backup.Spec.Source)
	if err != nil || (dump != "") != (s.backup.Spec.Dump != nil) {
		return false
	}
	claims := source.Claims()
	return dump != "" || claims == nil || !slices.ContainsFunc(volumes, func(v slipwayv1alpha1.BackupVolume) bool {
		return !slices.Contains(claims, v.Claim)
	})
}

// newestCopy is the newest run that completed with copies of the present source, or nil.
func (s *scope) newestCopy() *slipwayv1alpha1.BackupRun {
	for i := range s.runs {
		if s.runs[i].Status.Phase == slipwayv1alpha1.BackupCompleted && s.counts(&s.runs[i]) {
			return &s.runs[i]
		}
	}
	return nil
}

// lastBackup is what moment the newest verified copy of the present source is of, zero if there is none. It never goes back while
// the source stays: a run whose object was deleted has left its copy.
func (s *scope) lastBackup() time.Time {
	var last time.Time
	before := s.backup.Status
	if before.LastBackupTime != nil && (s.source == "" || before.LastBackupSource == "" || before.LastBackupSource == s.source) {
		last = before.LastBackupTime.Time
	}
	for i := range s.runs {
		if s.runs[i].Status.Phase != slipwayv1alpha1.BackupCompleted || !s.counts(&s.runs[i]) {
			continue
		}
		// Of several volumes the copy is as old as the oldest.
		var oldest time.Time
		for _, v := range s.runs[i].Status.Volumes {
			if v.SourceTime != nil && (oldest.IsZero() || v.SourceTime.Time.Before(oldest)) {
				oldest = v.SourceTime.Time
			}
		}
		if oldest.After(last) {
			last = oldest
		}
	}
	return last
}

// noCopy says that there is no verified copy, and whose copies do not count.
func (s *scope) noCopy(text string) string {
	other := ""
	switch run := s.newest(slipwayv1alpha1.BackupCompleted); {
	case run != nil && run.Status.Source != "":
		other = run.Status.Source
	case run != nil && len(run.Status.Volumes) > 0:
		other = "pvc/" + run.Status.Volumes[0].Claim
	case s.backup.Status.LastBackupTime != nil:
		other = s.backup.Status.LastBackupSource
	}
	if other == "" || s.source == "" {
		return text
	}
	return fmt.Sprintf("%s: the copies are of %s, and spec.source is %s now", text, other, s.source)
}
