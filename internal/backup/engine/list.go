package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/manifest"
	"github.com/kopia/kopia/snapshot"
)

// The tags of a snapshot. The program of kopia shows and finds them without the prefix "tag:".
const (
	runTag        = "tag:slipway-run"
	partialTag    = "tag:slipway-partial"
	sourceTimeTag = "tag:slipway-source-time"
)

// Snapshot describes a snapshot.
type Snapshot struct {
	// ID names it in this repository.
	ID string `json:"id"`
	// Run is what SnapshotOptions.Run was.
	Run string `json:"run"`
	// Volume is what SnapshotOptions.Volume was.
	Volume string `json:"volume,omitempty"`
	// SourceTime is what moment the source is of: that of SnapshotOptions, else Start. Later writes may be in what was read
	// where it is Start.
	SourceTime time.Time `json:"sourceTime"`
	// Start and End are when the source was read.
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Stats say what it holds.
	Stats Stats `json:"stats"`
	// Manifest is the digest of the manifest of the source, which Compare wants to be told. Empty: an older snapshot, which
	// has none.
	Manifest string `json:"manifest,omitempty"`
	// Verified is the last time that it was read back without a fault. Nil: never, as far as the repository knows.
	Verified *Verification `json:"verified,omitempty"`
}

// ListOptions restrict what is listed.
type ListOptions struct {
	// Run lists the snapshot of this run only. Default: all.
	Run string
}

// List returns the snapshots, in the order of SourceTime, the oldest first. It lists all or fails: one that cannot be read is an error.
func (r *Repository) List(ctx context.Context, options ListOptions) ([]Snapshot, error) {
	ctx, done := r.storage.guard(ctx)
	defer done()
	all, err := r.manifests(ctx)
	if err != nil {
		return nil, err
	}
	verified, err := verifications(ctx, r.rep)
	if err != nil {
		return nil, r.damaged(ctx, "list the snapshots", err)
	}
	listed := []Snapshot{}
	for _, m := range all {
		if !isComplete(m) || (options.Run != "" && m.Tags[runTag] != options.Run) {
			continue
		}
		s, err := describe(m)
		if err != nil {
			return nil, err
		}
		if v, found := verified[s.ID]; found {
			s.Verified = &v.Verification
		}
		listed = append(listed, s)
	}
	return listed, nil
}

// manifests returns what there is of us in the repository, the oldest first: snapshots, and what interrupted runs left.
func (r *Repository) manifests(ctx context.Context) ([]*snapshot.Manifest, error) {
	const doing = "list the snapshots"
	if err := r.rep.Refresh(ctx); err != nil {
		return nil, r.damaged(ctx, doing, err)
	}
	all, err := loadManifests(ctx, r.rep)
	if err != nil {
		return nil, r.damaged(ctx, doing, err)
	}
	slices.SortFunc(all, func(a, b *snapshot.Manifest) int {
		return cmp.Or(sourceTime(a).Compare(sourceTime(b)), begun(a).Compare(begun(b)), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// loadManifests loads all or fails. The library's way to load many leaves out those that it cannot read.
func loadManifests(ctx context.Context, rep repo.Repository) ([]*snapshot.Manifest, error) {
	found, err := rep.FindManifests(ctx, map[string]string{
		manifest.TypeLabelKey: snapshot.ManifestType, snapshot.HostnameLabel: hostName, snapshot.UsernameLabel: userName,
	})
	if err != nil {
		return nil, err
	}
	all := make([]*snapshot.Manifest, 0, len(found))
	for _, entry := range found {
		m, err := snapshot.LoadSnapshot(ctx, rep, entry.ID)
		if err != nil {
			return nil, err
		}
		if _, ours := volumeOf(m.Source); ours {
			all = append(all, m)
		}
	}
	return all, nil
}

func isComplete(m *snapshot.Manifest) bool {
	return m.IncompleteReason == "" && m.Tags[runTag] != ""
}

// describe returns what a snapshot says of itself.
func describe(m *snapshot.Manifest) (Snapshot, error) {
	var stats Stats
	if err := json.Unmarshal([]byte(m.Description), &stats); err != nil {
		return Snapshot{}, fail(KindCorrupt, "read the snapshot", "the description of %s: %w", m.ID, err)
	}
	return toSnapshot(m, stats), nil
}

func toSnapshot(m *snapshot.Manifest, stats Stats) Snapshot {
	volume, _ := volumeOf(m.Source)
	return Snapshot{
		ID: string(m.ID), Run: m.Tags[runTag], Volume: volume, SourceTime: sourceTime(m), Start: begun(m).UTC(), End: m.EndTime.ToTime().UTC(), Stats: stats,
		Manifest: m.Tags[manifestTag],
	}
}

// sourceTime is what moment a snapshot is of. One that says nothing, or no time, is of when it was read.
func sourceTime(m *snapshot.Manifest) time.Time {
	at, err := time.Parse(time.RFC3339Nano, m.Tags[sourceTimeTag])
	if err != nil || at.After(begun(m)) {
		return begun(m).UTC()
	}
	return at.UTC()
}
