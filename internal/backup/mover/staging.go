package mover

import (
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

// Staging is what has become of what a Job is to read, before there is a Job: a snapshot of a volume.
type Staging struct {
	// Does says in a sentence what is going on.
	Does string
	// Since is when that began.
	Since time.Time
	// Failure is what went wrong, or empty.
	Failure string
}

// StagingRecheck is when to look at a VolumeSnapshot again. There is no watch: a cluster need not have the kind, and a run has
// one for some seconds.
const StagingRecheck = 2 * time.Second

// Stage says what follows from that. A snapshot that is not ready in time is given up, as a pod is that does not start.
func (p RunProgress) Stage(staging Staging, now time.Time) Next {
	next := p.stay(now)
	left := staging.Since.Add(PendingLimit).Sub(now)
	switch {
	case staging.Failure != "":
		return p.FailAttempt(&health.Trouble{Reason: slipwayv1alpha1.ReasonVolumeSnapshotFailed, Message: staging.Failure}, now)
	case !now.Before(p.Deadline()):
		return p.Fail(slipwayv1alpha1.ReasonDeadlineExceeded, "it was not done within spec.deadline", now)
	case left <= 0:
		return p.Fail(slipwayv1alpha1.ReasonVolumeSnapshotFailed, staging.Does+", and was not ready within 10 minutes", now)
	}
	next.Phase, next.Reason, next.Message = slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonTakingSnapshot, staging.Does
	next.Recheck = min(StagingRecheck, left, next.Recheck)
	return next
}

// Hold says that nothing follows until trouble has gone. It does not end by itself.
func (p RunProgress) Hold(trouble *health.Trouble, now time.Time) Next {
	next := p.stay(now)
	if next.Phase != slipwayv1alpha1.BackupRunning {
		next.Phase = slipwayv1alpha1.BackupPending
	}
	next.Recheck = 0
	if trouble != nil {
		next.Reason, next.Message = trouble.Reason, trouble.Message
	}
	return next
}
