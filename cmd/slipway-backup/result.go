package main

import (
	"encoding/json"
	"slices"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// maxResult is what a container may say when it ends.
const maxResult = 4096

// result is what came of a command.
type result struct {
	Command string `json:"command"`
	// OK reports whether all was done. Otherwise Kind and Message say why not.
	OK      bool        `json:"ok"`
	Kind    engine.Kind `json:"kind,omitempty"`
	Message string      `json:"message,omitempty"`
	// RepositoryID is to be kept by whoever runs the program, and given to it the next time.
	RepositoryID string `json:"repositoryID,omitempty"`
	// PeakMemoryBytes is the most memory that the process had.
	PeakMemoryBytes int64 `json:"peakMemoryBytes"`

	Snapshot *engine.SnapshotResult `json:"snapshot,omitempty"`
	Verify   *engine.VerifyResult   `json:"verify,omitempty"`
	Restore  *engine.RestoreResult  `json:"restore,omitempty"`
	Expire   *expireResult          `json:"expire,omitempty"`
	Maintain *engine.MaintainResult `json:"maintain,omitempty"`
	Delete   *engine.DeleteResult   `json:"delete,omitempty"`
	Drill    *mover.DrillResult     `json:"drill,omitempty"`
	// Snapshots are those that were listed, the newest first, or verified. When they are too many for the file, only some
	// are in it; SnapshotCount counts all.
	Snapshots     []snapshotLine `json:"snapshots,omitempty"`
	SnapshotCount int            `json:"snapshotCount"`
}

type snapshotLine struct {
	ID         string    `json:"id"`
	Run        string    `json:"run"`
	Volume     string    `json:"volume,omitempty"`
	SourceTime time.Time `json:"sourceTime"`
	Start      time.Time `json:"start"`
	Files      int64     `json:"files"`
	Bytes      int64     `json:"bytes"`
	Unreadable int64     `json:"unreadable,omitempty"`
	// Verified is when it was last read back without a fault.
	Verified *time.Time `json:"verified,omitempty"`
	// Manifest is the digest of the manifest, of a snapshot that was verified alone.
	Manifest string `json:"manifest,omitempty"`
}

type expireResult struct {
	Removed int `json:"removed"`
	Missing int `json:"missing"`
	Kept    int `json:"kept"`
}

func (r *result) setSnapshots(snapshots []engine.Snapshot) {
	r.SnapshotCount = len(snapshots)
	for _, s := range snapshots {
		line := snapshotLine{
			ID: s.ID, Run: s.Run, Volume: s.Volume, SourceTime: s.SourceTime, Start: s.Start, Files: s.Stats.Files, Bytes: s.Stats.Bytes,
			Unreadable: s.Stats.Unreadable,
		}
		if s.Verified != nil {
			line.Verified = &s.Verified.Time
		}
		r.Snapshots = append(r.Snapshots, line)
	}
}

// conclude notes how the command ended.
func (r *result) conclude(err error) {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil {
		r.PeakMemoryBytes = usage.Maxrss << 10
	}
	r.OK = err == nil
	if err != nil {
		r.Kind, r.Message = engine.KindOf(err), err.Error()
	}
}

// marshal writes the result, and leaves out what does not fit.
func (r *result) marshal(scrub *scrubber) ([]byte, error) {
	short := *scrub.result(r)
	short.Snapshots = slices.Clone(r.Snapshots)
	short.Message = cut(short.Message, 1024)
	for {
		raw, err := json.Marshal(&short)
		if err != nil {
			return nil, err
		}
		if len(raw) <= maxResult {
			return raw, nil
		}
		if !short.shorten() {
			return json.Marshal(&result{Command: r.Command, OK: r.OK, Kind: r.Kind, RepositoryID: r.RepositoryID})
		}
	}
}

// shorten leaves out something, and reports whether there was anything to leave out.
func (r *result) shorten() bool {
	switch {
	case len(r.Snapshots) > 0:
		r.Snapshots = r.Snapshots[:len(r.Snapshots)*9/10]
	case r.Snapshot != nil && len(r.Snapshot.Stats.UnreadableExamples)+len(r.Snapshot.Stats.SkippedExamples) > 0:
		shorter := *r.Snapshot
		shorter.Stats.UnreadableExamples, shorter.Stats.SkippedExamples = nil, nil
		r.Snapshot = &shorter
	case r.Restore != nil &&
		len(r.Restore.Examples)+len(r.Restore.Snapshot.Stats.UnreadableExamples)+len(r.Restore.Snapshot.Stats.SkippedExamples) > 0:
		shorter := *r.Restore
		shorter.Examples, shorter.Snapshot.Stats.UnreadableExamples, shorter.Snapshot.Stats.SkippedExamples = nil, nil, nil
		r.Restore = &shorter
	case r.Message != "":
		r.Message = ""
	default:
		return false
	}
	return true
}

// cut shortens a text to so many bytes, not within a character.
func cut(text string, length int) string {
	if len(text) <= length {
		return text
	}
	for length > 0 && !utf8.RuneStart(text[length]) {
		length--
	}
	return text[:length]
}
