package main

import "github.com/slipway-dev/slipway/internal/repository"

// The exit codes. They stay as they are: scripts depend on them.
const (
	exitInternal = 1
	exitInvalid  = 2
)

var exitCodes = map[repository.Kind]int{
	repository.KindInternal:         exitInternal,
	repository.KindInvalid:          exitInvalid,
	repository.KindWrongPassword:    10,
	repository.KindWrongRepository:  11,
	repository.KindNotFound:         12,
	repository.KindAlreadyExists:    13,
	repository.KindUnreachable:      14,
	repository.KindAccessDenied:     15,
	repository.KindNoSpace:          16,
	repository.KindSourceUnreadable: 17,
	repository.KindSourceEmpty:      18,
	repository.KindTargetNotEmpty:   19,
	repository.KindTargetUnwritable: 20,
	repository.KindCorrupt:          21,
	repository.KindCanceled:         22,
	repository.KindMassDeletion:     23,
	repository.KindSnapshotMissing:  24,
	repository.KindSnapshotStale:    25,
	repository.KindSnapshotDiffers:  26,
	repository.KindManifestMissing:  27,
	repository.KindManifestDiffers:  28,
	repository.KindNothingRestored:  29,
	repository.KindDumpFailed:       30,
	repository.KindDumpLost:         31,
	repository.KindNothingCompared:  32,
	repository.KindFileMissing:      33,
	repository.KindContentDiffers:   34,
	repository.KindModeDiffers:      35,
	repository.KindLinkDiffers:      36,
	repository.KindHalfRestored:     37,
	repository.KindPathNotFound:     38,
	repository.KindBucketNotFound:   39,
}

// exitCode is never 0 for an error.
func exitCode(err error) int {
	if code, found := exitCodes[repository.KindOf(err)]; found {
		return code
	}
	return exitInternal
}
