package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/content/indexblob"
	"github.com/kopia/kopia/repo/maintenance"
	"github.com/kopia/kopia/snapshot"
	"github.com/kopia/kopia/snapshot/snapshotgc"
	"k8s.io/utils/clock"
)

// MaintainResult is what came of Maintain.
type MaintainResult struct {
	// BytesBefore and BytesAfter are the size of the repository.
	BytesBefore int64 `json:"bytesBefore"`
	BytesAfter  int64 `json:"bytesAfter"`
}

// Maintain frees what no snapshot uses any more, and keeps the indexes small. Run it about once a day. It takes several runs
// to free what a snapshot used: one marks what is unused and 24 hours old; a later one drops it from the indexes, when that
// was known for 4 hours; a later one deletes its packs, when they are 24 hours old and an hour has passed since the rest of
// them was written elsewhere. So a writer that nobody knows of loses nothing. With a run a day the space is free after six,
// but for at most two packs of 20 MiB, which are written anew only together with another one.
func (r *Repository) Maintain(ctx context.Context) (MaintainResult, error) {
	ctx, done := r.storage.guard(ctx)
	defer done()
	const doing = "maintain the repository"
	var result MaintainResult
	if err := r.readAllManifests(ctx); err != nil {
		return result, err
	}
	if err := r.ownMaintenance(ctx); err != nil {
		return result, err
	}
	if err := r.removeTemporary(); err != nil {
		return result, classify(ctx, doing, KindInternal, err)
	}
	var err error
	if result.BytesBefore, err = r.size(ctx); err != nil {
		return result, err
	}
	err = r.write(ctx, doing, func(ctx context.Context, w repo.DirectRepositoryWriter) error {
		return maintenance.RunExclusive(ctx, w, maintenance.ModeFull, false, func(ctx context.Context, run maintenance.RunParameters) error {
			if err := snapshotgc.Run(ctx, w, true, maintenance.SafetyFull, run.MaintenanceStartTime); err != nil {
				return err
			}
			if err := dropDeleted(ctx, w); err != nil {
				return err
			}
			return maintenance.Run(ctx, run, maintenance.SafetyFull)
		})
	})
	if err != nil {
		return result, r.damaged(ctx, doing, err)
	}
	result.BytesAfter, err = r.size(ctx)
	return result, err
}

// dropDeleted drops from the indexes what was marked long enough ago. maintenance.Run does the same, but later: it first
// writes the contents of half-empty packs to new ones, the marked ones too, which marks them anew. With a run a day they
// would never be dropped.
func dropDeleted(ctx context.Context, w repo.DirectRepositoryWriter) error {
	schedule, err := maintenance.GetSchedule(ctx, w)
	if err != nil {
		return err
	}
	before := dropBefore(schedule.Runs[maintenance.TaskSnapshotGarbageCollection])
	if before.IsZero() {
		return nil
	}
	if _, err := w.ContentManager().CompactIndexes(ctx, indexblob.CompactOptions{AllIndexes: true, DropDeletedBefore: before}); err != nil {
		return err
	}
	return w.Refresh(ctx)
}

// dropBefore is the time before which a mark counts. The newest collection has unmarked what a snapshot came to use after the
// one before, provided that such a snapshot had the time to be written. Zero when there is no such time.
func dropBefore(runs []maintenance.RunInfo) time.Time {
	var newest time.Time
	for _, run := range runs { // the newest first
		switch {
		case !run.Success:
		case newest.IsZero():
			newest = run.Start
		case newest.Sub(run.End) > maintenance.SafetyFull.MarginBetweenSnapshotGC:
			return run.Start.Add(-maintenance.SafetyFull.DropContentFromIndexExtraMargin)
		}
	}
	return time.Time{}
}

// readAllManifests makes sure that every snapshot can be read, whoever made it. The library takes for unused what belongs to
// a snapshot that it cannot read. Read once, a snapshot stays in the cache.
func (r *Repository) readAllManifests(ctx context.Context) error {
	const doing = "read all snapshots before maintenance"
	ids, err := snapshot.ListSnapshotManifests(ctx, r.rep, nil, nil)
	if err != nil {
		return r.damaged(ctx, doing, err)
	}
	for _, id := range ids {
		if _, err := snapshot.LoadSnapshot(ctx, r.rep, id); err != nil {
			return r.damaged(ctx, doing, err)
		}
	}
	return nil
}

func (r *Repository) size(ctx context.Context) (int64, error) {
	var size int64
	err := r.rep.BlobReader().ListBlobs(ctx, "", func(m blob.Metadata) error {
		size += m.Length
		return nil
	})
	return size, classify(ctx, "measure the repository", KindUnreachable, err)
}

// temporaryFile is the name of a file that the library had not finished to write.
var temporaryFile = regexp.MustCompile(`\.f\.tmp\.[0-9a-f]+$`)

// removeTemporary removes unfinished files of processes that were killed, a day after.
func (r *Repository) removeTemporary() error {
	if r.storage.folder == "" {
		return nil
	}
	old := clock.RealClock{}.Now().Add(-24 * time.Hour) // these files have the time of the machine
	return filepath.WalkDir(r.storage.folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !temporaryFile.MatchString(e.Name()) {
			return ignoreMissing(err)
		}
		info, err := e.Info()
		if err != nil || info.ModTime().After(old) {
			return ignoreMissing(err)
		}
		return ignoreMissing(os.Remove(path))
	})
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
