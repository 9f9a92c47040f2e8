package main

import "github.com/slipway-dev/slipway/internal/backup/engine"

// The exit codes. They stay as they are: scripts depend on them.
const (
	exitInternal = 1
	exitInvalid  = 2
)

var exitCodes = map[engine.Kind]int{
	engine.KindInternal:         exitInternal,
	engine.KindInvalid:          exitInvalid,
	engine.KindWrongPassword:    10,
	engine.KindWrongRepository:  11,
	engine.KindNotFound:         12,
	engine.KindAlreadyExists:    13,
	engine.KindUnreachable:      14,
	engine.KindAccessDenied:     15,
	engine.KindNoSpace:          16,
	engine.KindSourceUnreadable: 17,
	engine.KindSourceEmpty:      18,
	engine.KindTargetNotEmpty:   19,
	engine.KindTargetUnwritable: 20,
	engine.KindCorrupt:          21,
	engine.KindCanceled:         22,
	engine.KindMassDeletion:     23,
	engine.KindSnapshotMissing:  24,
	engine.KindSnapshotStale:    25,
	engine.KindSnapshotDiffers:  26,
	engine.KindManifestMissing:  27,
	engine.KindManifestDiffers:  28,
	engine.KindNothingRestored:  29,
	engine.KindDumpFailed:       30,
	engine.KindDumpLost:         31,
	engine.KindNothingCompared:  32,
	engine.KindFileMissing:      33,
	engine.KindContentDiffers:   34,
	engine.KindModeDiffers:      35,
	engine.KindLinkDiffers:      36,
	engine.KindHalfRestored:     37,
	engine.KindPathNotFound:     38,
	engine.KindBucketNotFound:   39,
}

// exitCode is never 0 for an error.
func exitCode(err error) int {
	if code, found := exitCodes[engine.KindOf(err)]; found {
		return code
	}
	return exitInternal
}
