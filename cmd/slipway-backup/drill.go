package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// restoreForDrill restores the copies that a drill is about, each to a new folder.
func restoreForDrill(ctx context.Context, w *work, r *engine.Repository) error {
	c := w.config.Drill
	if w.config.Restore.Target != "" {
		return &engine.Error{
			Kind: engine.KindInvalid, Doing: "restore for a drill", Err: errors.New("a drill has no other target than its folder"),
		}
	}
	all, err := r.List(ctx, engine.ListOptions{})
	if err != nil {
		return err
	}
	// All of them are looked for before any is restored.
	for _, v := range c.Volumes {
		if err := expected(all, v, c.NotBefore); err != nil {
			return err
		}
	}
	done := mover.DrillResult{}
	for _, v := range c.Volumes {
		folder, err := scratchOf(c, v)
		if err != nil {
			return err
		}
		if err := os.Mkdir(folder, 0o700); err != nil {
			return &engine.Error{Kind: engine.KindTargetUnwritable, Doing: "make a folder for the drill", Err: err}
		}
		restored, err := r.Restore(ctx, engine.RestoreOptions{
			Snapshot: v.Snapshot, Target: folder, Parallel: w.config.Restore.Parallel, Meter: w.meter,
		})
		if err != nil {
			return err
		}
		done.Volumes++
		done.Files += restored.Files
		done.Bytes += restored.Bytes
	}
	w.result.Drill = &done
	return nil
}

// compareDrill compares what was restored with what was read from the source.
func compareDrill(ctx context.Context, w *work, r *engine.Repository) error {
	c := w.config.Drill
	if len(c.Volumes) == 0 {
		return &engine.Error{Kind: engine.KindInvalid, Doing: "compare", Err: errors.New("no volume is named")}
	}
	done := mover.DrillResult{}
	for _, v := range c.Volumes {
		folder, err := scratchOf(c, v)
		if err != nil {
			return err
		}
		compared, err := r.Compare(ctx, engine.CompareOptions{
			Snapshot: v.Snapshot, Manifest: v.Manifest, Folder: folder, AllowEmpty: c.AllowEmpty, Meter: w.meter,
		})
		if err != nil {
			return ofVolume(v, err)
		}
		done.Volumes++
		done.Files += compared.Files
		done.Bytes += compared.Bytes
		done.Entries += compared.Entries
		done.Changed += compared.Changed
		done.Unreadable += compared.Unreadable
	}
	w.result.Drill = &done
	return nil
}

// ofVolume says which volume an error is about.
func ofVolume(v mover.DrillVolume, err error) error {
	return &engine.Error{Kind: engine.KindOf(err), Doing: fmt.Sprintf("volume %q", v.Volume), Err: err}
}

// scratchOf is the folder of a volume.
func scratchOf(c mover.Drill, v mover.DrillVolume) (string, error) {
	if c.Folder == "" || v.Volume == "" || v.Volume == "." || v.Volume == ".." || strings.Contains(v.Volume, "/") {
		return "", &engine.Error{
			Kind: engine.KindInvalid, Doing: "find the folder of a volume",
			Err: fmt.Errorf("%q in %q is no folder for a drill", v.Volume, c.Folder),
		}
	}
	return filepath.Join(c.Folder, v.Volume), nil
}

// expected looks for the copy that status tells of, and compares what the repository says of it. A newer one may have come
// since: a run may go on beside a drill.
func expected(all []engine.Snapshot, v mover.DrillVolume, notBefore time.Time) error {
	refuse := func(kind engine.Kind, format string, arguments ...any) error {
		return ofVolume(v, &engine.Error{Kind: kind, Doing: "find the snapshot", Err: fmt.Errorf(format, arguments...)})
	}
	i := slices.IndexFunc(all, func(s engine.Snapshot) bool { return s.ID == v.Snapshot })
	switch {
	case v.Snapshot == "" || i < 0:
		return refuse(engine.KindSnapshotMissing, "%q is not in the repository", v.Snapshot)
	case all[i].Verified == nil:
		return refuse(engine.KindSnapshotMissing, "%q is in the repository, and nothing says that it was verified", v.Snapshot)
	case all[i].Run != v.Run || all[i].Volume != v.Volume:
		return refuse(
			engine.KindSnapshotDiffers, "%q is of the run %q and the volume %q, expected was the run %q", v.Snapshot, all[i].Run,
			all[i].Volume, v.Run,
		)
	// Status may tell an earlier time: it believes no clock that is ahead.
	case all[i].SourceTime.Before(v.SourceTime.Truncate(time.Second)):
		return refuse(engine.KindSnapshotDiffers, "%q is of %s, expected was %s", v.Snapshot, stamp(all[i].SourceTime), stamp(v.SourceTime))
	case all[i].SourceTime.Before(notBefore.Truncate(time.Second)):
		return refuse(engine.KindSnapshotStale, "the newest verified one that is known is of %s, and one of %s or newer is promised",
			stamp(all[i].SourceTime), stamp(notBefore))
	default:
		return nil
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
