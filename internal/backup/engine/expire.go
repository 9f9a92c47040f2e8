package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/manifest"
	"github.com/kopia/kopia/snapshot"
)

// ExpireOptions say which snapshots to remove.
type ExpireOptions struct {
	// Snapshots are the IDs. Nothing else is removed.
	Snapshots []string
}

// ExpireResult is what came of Expire.
type ExpireResult struct {
	// Removed are the IDs of what was removed.
	Removed []string `json:"removed"`
	// Missing are the IDs of what was not there any more, which is in order: an earlier process may have removed them and
	// not lived to say so.
	Missing []string `json:"missing"`
	// Kept is how many snapshots there are now.
	Kept int `json:"kept"`
}

// Expire removes snapshots. The space that only they used is freed by Maintain.
func (r *Repository) Expire(ctx context.Context, options ExpireOptions) (ExpireResult, error) {
	ctx, done := r.storage.guard(ctx)
	defer done()
	const doing = "expire snapshots"
	result := ExpireResult{Removed: []string{}, Missing: []string{}}
	before, err := r.completeIDs(ctx)
	if err != nil {
		return result, err
	}
	asked := slices.Clone(options.Snapshots)
	slices.Sort(asked)
	for _, id := range slices.Compact(asked) {
		if slices.Contains(before, id) {
			result.Removed = append(result.Removed, id)
			continue
		}
		if err := r.refuseForeign(ctx, id); err != nil {
			return result, err
		}
		result.Missing = append(result.Missing, id)
	}
	if len(result.Removed) > 0 {
		err = r.write(ctx, doing, func(ctx context.Context, w repo.DirectRepositoryWriter) error {
			for _, id := range result.Removed {
				if err := w.DeleteManifest(ctx, manifest.ID(id)); err != nil {
					return fmt.Errorf("remove %s: %w", id, err)
				}
			}
			return forgetVerifications(ctx, w, result.Removed)
		})
		if err != nil {
			return result, classify(ctx, doing, KindInternal, err)
		}
	}
	after, err := r.completeIDs(ctx)
	if err != nil {
		return result, err
	}
	result.Kept = len(after)
	wanted := slices.DeleteFunc(before, func(id string) bool { return slices.Contains(result.Removed, id) })
	if !slices.Equal(after, wanted) {
		return result, fail(KindInternal, doing, "there should be %d snapshots afterwards, there are %d", len(wanted), len(after))
	}
	return result, nil
}

func (r *Repository) completeIDs(ctx context.Context) ([]string, error) {
	all, err := r.manifests(ctx)
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, m := range all {
		if isComplete(m) {
			ids = append(ids, string(m.ID))
		}
	}
	return ids, nil
}

// refuseForeign fails when an ID is of something that this package did not make.
func (r *Repository) refuseForeign(ctx context.Context, id string) error {
	const doing = "expire snapshots"
	_, err := snapshot.LoadSnapshot(ctx, r.rep, manifest.ID(id))
	if err == nil {
		return fail(KindInvalid, doing, "%s is not a snapshot of ours", id)
	}
	if kind := kindOfCause(ctx, KindCorrupt, err); kind != KindNotFound {
		return &Error{Kind: kind, Doing: doing, Err: err}
	}
	return nil
}
