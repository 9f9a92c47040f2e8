package mover

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/redact"
	"github.com/slipway-dev/slipway/internal/text"
)

// Result is what slipway-backup says when it ends: of what the program writes, that which the operator reads.
type Result struct {
	Command string `json:"command"`
	// OK reports whether all was done. Otherwise Kind and Message say why not.
	OK      bool   `json:"ok"`
	Kind    string `json:"kind"`
	Message string `json:"message"`
	// RepositoryID is the ID of the repository.
	RepositoryID string `json:"repositoryID"`

	Snapshot  *SnapshotResult `json:"snapshot"`
	Verify    *VerifyResult   `json:"verify"`
	Restore   *RestoreResult  `json:"restore"`
	Expire    *ExpireResult   `json:"expire"`
	Maintain  *MaintainResult `json:"maintain"`
	Drill     *DrillResult    `json:"drill"`
	Snapshots []SnapshotLine  `json:"snapshots"`
}

// SnapshotResult is what came of snapshot.
type SnapshotResult struct {
	ID  string `json:"id"`
	Run string `json:"run"`
	// SourceTime is what moment the source is of. It is zero in a result of an older release.
	SourceTime time.Time `json:"sourceTime"`
	// Start is when reading began.
	Start      time.Time `json:"start"`
	Stats      Stats     `json:"stats"`
	AddedBytes int64     `json:"addedBytes"`
	// Manifest is the digest of the manifest of the source.
	Manifest string `json:"manifest"`
}

// Stats is what a snapshot holds.
type Stats struct {
	Files      int64 `json:"files"`
	Bytes      int64 `json:"bytes"`
	Skipped    int64 `json:"skipped"`
	Unreadable int64 `json:"unreadable"`
	// Vanished is what went between the listing of a folder and the reading, and Changed what changed while it was read.
	Vanished int64 `json:"vanished"`
	Changed  int64 `json:"changed"`
}

// VerifyResult is what came of verify.
type VerifyResult struct {
	Files     int64 `json:"files"`
	Bytes     int64 `json:"bytes"`
	ReadFiles int64 `json:"readFiles"`
	ReadBytes int64 `json:"readBytes"`
}

// RestoreResult is what came of restore.
type RestoreResult struct {
	Snapshot          SnapshotResult `json:"snapshot"`
	Files             int64          `json:"files"`
	Bytes             int64          `json:"bytes"`
	OwnersNotKept     int64          `json:"ownersNotKept"`
	AttributesNotKept int64          `json:"attributesNotKept"`
}

// ExpireResult is what came of expire.
type ExpireResult struct {
	Removed int64 `json:"removed"`
	Kept    int64 `json:"kept"`
}

// MaintainResult is what came of maintain.
type MaintainResult struct {
	BytesAfter int64 `json:"bytesAfter"`
}

// SnapshotLine is a snapshot that was listed or verified.
type SnapshotLine struct {
	ID  string `json:"id"`
	Run string `json:"run"`
	// Manifest is the digest of the manifest, of a snapshot that was verified alone.
	Manifest string `json:"manifest"`
}

// ParseResult parses the termination message of a container. A message that is cut off, or of another program, is an error:
// then nobody knows what was done.
func ParseResult(message string) (*Result, error) {
	var r Result
	if err := json.Unmarshal([]byte(message), &r); err != nil {
		return nil, fmt.Errorf("the termination message is not a result: %w", err)
	}
	if r.Command == "" || (!r.OK && r.Kind == "") || (r.OK && r.Kind != "") {
		return nil, fmt.Errorf("the termination message is not a result")
	}
	if !isName(r.Command) || !isName(r.Kind) {
		return nil, fmt.Errorf("the termination message has a command or a kind that is none")
	}
	if !r.plain() {
		return nil, fmt.Errorf("the termination message has an ID that is none, or a count below 0")
	}
	// It may quote a server, a command or the name of a file.
	r.Message = text.Cut(text.Printable(redact.Clean(r.Message)), maxText)
	return &r, nil
}

// isName reports whether a word is a name of the program's own: it becomes a reason and a label of metrics. Empty is one.
func isName(word string) bool {
	const most = 64
	return len(word) <= most && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-") == ""
}

// maxText bounds each text of a result, in bytes.
const maxText = 1024

// plain reports whether what is compared and kept is what slipway-backup writes: short words, and counts.
func (r *Result) plain() bool {
	words := []string{r.RepositoryID}
	var counts []int64
	snapshot := func(s *SnapshotResult) {
		words = append(words, s.ID, s.Run, s.Manifest)
		counts = append(
			counts, s.Stats.Files, s.Stats.Bytes, s.Stats.Skipped, s.Stats.Unreadable, s.Stats.Vanished, s.Stats.Changed, s.AddedBytes,
		)
	}
	if r.Snapshot != nil {
		snapshot(r.Snapshot)
	}
	if v := r.Verify; v != nil {
		counts = append(counts, v.Files, v.Bytes, v.ReadFiles, v.ReadBytes)
	}
	if v := r.Restore; v != nil {
		snapshot(&v.Snapshot)
		counts = append(counts, v.Files, v.Bytes, v.OwnersNotKept, v.AttributesNotKept)
	}
	if v := r.Expire; v != nil {
		counts = append(counts, v.Removed, v.Kept)
	}
	if v := r.Maintain; v != nil {
		counts = append(counts, v.BytesAfter)
	}
	if d := r.Drill; d != nil {
		counts = append(counts, int64(d.Volumes), d.Files, d.Bytes, d.Entries, d.Changed, d.Unreadable)
	}
	for _, line := range r.Snapshots {
		words = append(words, line.ID, line.Run, line.Manifest)
	}
	bad := func(word string) bool { return len(word) > maxText || word != text.Printable(word) }
	return !slices.ContainsFunc(words, bad) && !slices.ContainsFunc(counts, func(n int64) bool { return n < 0 })
}

// Progress is how far slipway-backup says it has come.
type Progress struct {
	Bytes      int64 `json:"bytes"`
	TotalBytes int64 `json:"totalBytes"`
	// TotalKnown reports whether the total will not grow any more.
	TotalKnown bool `json:"totalKnown"`
}

// ParseProgress returns what a line of the log says of the progress, and whether it does.
func ParseProgress(line []byte) (Progress, bool) {
	var of struct {
		Message  string    `json:"msg"`
		Progress *Progress `json:"progress"`
	}
	if json.Unmarshal(line, &of) != nil || of.Message != "progress" || of.Progress == nil {
		return Progress{}, false
	}
	return *of.Progress, true
}

// maxEstimate is how far ahead the end of a step is reported: no step may take longer.
const maxEstimate = 24 * time.Hour

// Transfer says how much is done, and when the rest will be if it goes on like this. since is when the step began.
func (p Progress) Transfer(since, now time.Time) *slipwayv1alpha1.TransferProgress {
	progress := &slipwayv1alpha1.TransferProgress{Bytes: max(0, p.Bytes), TotalBytes: max(0, p.TotalBytes)}
	if p.TotalBytes <= 0 || p.Bytes < 0 {
		return progress
	}
	done := min(1, float64(p.Bytes)/float64(p.TotalBytes))
	progress.Percent = int32(100 * done)
	if p.TotalKnown && done > 0 && now.After(since) {
		left := float64(now.Sub(since)) * (1 - done) / done
		if left > float64(maxEstimate) {
			return progress // nobody can tell
		}
		estimate := metav1.NewTime(now.Add(time.Duration(left)).Truncate(time.Second))
		progress.EstimatedCompletionTime = &estimate
	}
	return progress
}
