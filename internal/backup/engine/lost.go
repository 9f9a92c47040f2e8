package engine

import (
	"context"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/content"
	"github.com/kopia/kopia/repo/manifest"
)

// The library keeps a content only when the index does not list it yet. So a content whose pack is gone would never be written
// again, however often its file is read: each new snapshot would lack it, too. Before a snapshot is made, such contents are
// marked as deleted. The library writes a content that is marked, and whoever needs an unmarked one finds it as before: were
// the pack away for a time only, then Maintain takes the mark away.

// packs are the packs that there are, and their sizes in bytes.
func (r *Repository) packs(ctx context.Context) (map[blob.ID]int64, error) {
	found := map[blob.ID]int64{}
	for _, prefix := range []blob.ID{content.PackBlobIDPrefixRegular, content.PackBlobIDPrefixSpecial} {
		err := r.rep.BlobReader().ListBlobs(ctx, prefix, func(m blob.Metadata) error {
			found[m.BlobID] = m.Length
			return nil
		})
		if err != nil {
			return nil, classify(ctx, "list the packs", KindUnreachable, err)
		}
	}
	return found, nil
}

// fits reports whether a pack is there, and long enough for a content.
func fits(packs map[blob.ID]int64, info content.Info) bool {
	size, found := packs[info.PackBlobID]
	return found && int64(info.PackOffset)+int64(info.PackedLength) <= size
}

// maxLost is how many contents may be lost. Who has lost more needs another repository, and marks are kept in memory.
const maxLost = 1_000_000

// lost returns the contents that the index lists and no pack holds, and marks them, so that they are written again.
func (r *Repository) lost(ctx context.Context) (map[content.ID]bool, error) {
	const doing = "look for what is lost"
	packs, err := r.packs(ctx)
	if err != nil {
		return nil, err
	}
	lost := map[content.ID]bool{}
	err = r.rep.ContentReader().IterateContents(ctx, content.IterateOptions{IncludeDeleted: true}, func(info content.Info) error {
		if info.ContentID.Prefix() != manifest.ContentPrefix && !fits(packs, info) {
			lost[info.ContentID] = true
		}
		if len(lost) > maxLost {
			return fail(KindCorrupt, doing, "more than %d contents are lost, of packs such as %s: begin another repository", maxLost, info.PackBlobID)
		}
		return nil
	})
	if err != nil {
		return nil, r.damaged(ctx, doing, err)
	}
	if len(lost) == 0 {
		return nil, nil
	}
	err = r.write(ctx, doing, func(ctx context.Context, w repo.DirectRepositoryWriter) error {
		for id := range lost {
			if err := w.ContentManager().DeleteContent(ctx, id); err != nil {
				return err
			}
		}
		return nil
	})
	return lost, classify(ctx, doing, KindInternal, err)
}
