package engine

import (
	"context"
	"slices"
	"time"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/manifest"
)

// Verification says how a snapshot was read back.
type Verification struct {
	// Time is when that was done.
	Time time.Time `json:"time"`
	// ReadPercent is what VerifyOptions.ReadPercent was.
	ReadPercent float64 `json:"readPercent"`
}

// verificationType is the type of the manifests that hold verifications. The library does not know it, and leaves them alone.
const (
	verificationType = "slipway-verification"
	snapshotLabel    = "snapshot"
)

// verification is one as it is stored.
type verification struct {
	Verification
	id manifest.ID
}

// NoteVerified keeps in the repository that snapshots were verified, in place of what was noted of them before. So whoever
// has nothing but the repository knows which snapshots can be relied on.
func (r *Repository) NoteVerified(ctx context.Context, result VerifyResult, readPercent float64) error {
	ctx, done := r.storage.guard(ctx)
	defer done()
	const doing = "note what was verified"
	if len(result.Snapshots) == 0 {
		return nil
	}
	now := Verification{Time: r.clock.Now().UTC(), ReadPercent: readPercent}
	err := r.write(ctx, doing, func(ctx context.Context, w repo.DirectRepositoryWriter) error {
		for _, s := range result.Snapshots {
			labels := map[string]string{manifest.TypeLabelKey: verificationType, snapshotLabel: s.ID}
			if _, err := w.ReplaceManifests(ctx, labels, now); err != nil {
				return err
			}
		}
		return nil
	})
	return classify(ctx, doing, KindInternal, err)
}

// verifications returns the last verification of each snapshot, by its ID.
func verifications(ctx context.Context, rep repo.Repository) (map[string]verification, error) {
	entries, err := rep.FindManifests(ctx, map[string]string{manifest.TypeLabelKey: verificationType})
	if err != nil {
		return nil, err
	}
	found := map[string]verification{}
	for _, entry := range entries {
		v := verification{id: entry.ID}
		if _, err := rep.GetManifest(ctx, entry.ID, &v.Verification); err != nil {
			return nil, err
		}
		if of := entry.Labels[snapshotLabel]; found[of].Time.Before(v.Time) {
			found[of] = v
		}
	}
	return found, nil
}

// forgetVerifications removes what is noted of snapshots that are to be removed.
func forgetVerifications(ctx context.Context, w repo.DirectRepositoryWriter, snapshots []string) error {
	entries, err := w.FindManifests(ctx, map[string]string{manifest.TypeLabelKey: verificationType})
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !slices.Contains(snapshots, entry.Labels[snapshotLabel]) {
			continue
		}
		if err := w.DeleteManifest(ctx, entry.ID); err != nil {
			return err
		}
	}
	return nil
}
