package mover

import (
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// MaxAttempts is how often a run or a restore is tried.
const MaxAttempts = 3

// reasons are the kinds of errors of slipway-backup in the words of the API. The program's tests hold that all are here.
var reasons = map[string]string{
	"Invalid":          slipwayv1alpha1.ReasonInvalid,
	"WrongPassword":    slipwayv1alpha1.ReasonWrongPassword,
	"WrongRepository":  slipwayv1alpha1.ReasonWrongRepository,
	"NotFound":         slipwayv1alpha1.ReasonRepositoryNotFound,
	"BucketNotFound":   slipwayv1alpha1.ReasonDestinationNotFound,
	"PathNotFound":     slipwayv1alpha1.ReasonPathNotFound,
	"AlreadyExists":    slipwayv1alpha1.ReasonDestinationNotEmpty,
	"Unreachable":      slipwayv1alpha1.ReasonUnreachable,
	"AccessDenied":     slipwayv1alpha1.ReasonAccessDenied,
	"NoSpace":          slipwayv1alpha1.ReasonNoSpace,
	"SourceUnreadable": slipwayv1alpha1.ReasonSourceUnreadable,
	"SourceEmpty":      slipwayv1alpha1.ReasonSourceEmpty,
	"HalfRestored":     slipwayv1alpha1.ReasonHalfRestored,
	"TargetNotEmpty":   slipwayv1alpha1.ReasonTargetNotEmpty,
	"TargetUnwritable": slipwayv1alpha1.ReasonTargetUnwritable,
	"Corrupt":          slipwayv1alpha1.ReasonCorrupt,
	"Canceled":         slipwayv1alpha1.ReasonPodLost,
	"MassDeletion":     slipwayv1alpha1.ReasonMassDeletion,
	"DumpFailed":       slipwayv1alpha1.ReasonDumpFailed,
	"DumpLost":         slipwayv1alpha1.ReasonPodLost,
	"Internal":         slipwayv1alpha1.ReasonMoverFailed,
	"SnapshotMissing":  slipwayv1alpha1.ReasonSnapshotMissing,
	"SnapshotStale":    slipwayv1alpha1.ReasonSnapshotStale,
	"SnapshotDiffers":  slipwayv1alpha1.ReasonSnapshotDiffers,
	"ManifestMissing":  slipwayv1alpha1.ReasonManifestMissing,
	"ManifestDiffers":  slipwayv1alpha1.ReasonManifestDiffers,
	"NothingRestored":  slipwayv1alpha1.ReasonNothingRestored,
	"NothingCompared":  slipwayv1alpha1.ReasonNothingCompared,
	"FileMissing":      slipwayv1alpha1.ReasonFileMissing,
	"ContentDiffers":   slipwayv1alpha1.ReasonContentDiffers,
	"ModeDiffers":      slipwayv1alpha1.ReasonModeDiffers,
	"LinkDiffers":      slipwayv1alpha1.ReasonLinkDiffers,
}

// Reason is the reason of a condition for a kind of error of slipway-backup.
func Reason(kind string) string {
	if reason, known := reasons[kind]; known {
		return reason
	}
	return slipwayv1alpha1.ReasonMoverFailed
}

// WorthRetry reports whether another attempt may end otherwise though nobody changes anything. What the user has to change, and
// damage, is reported at once.
func WorthRetry(reason string) bool {
	switch reason {
	case slipwayv1alpha1.ReasonUnreachable, slipwayv1alpha1.ReasonNoSpace, slipwayv1alpha1.ReasonMoverFailed,
		slipwayv1alpha1.ReasonPodLost, slipwayv1alpha1.ReasonEvicted, slipwayv1alpha1.ReasonOOMKilled,
		slipwayv1alpha1.ReasonHookInterrupted, slipwayv1alpha1.ReasonPodGone, slipwayv1alpha1.ReasonVolumeSnapshotFailed:
		return true
	default:
		return false
	}
}

// RetryAfter is how long to wait after so many attempts.
func RetryAfter(attempts int32) time.Duration {
	if attempts <= 1 {
		return 30 * time.Second
	}
	return 2 * time.Minute
}
