package main

import (
	"context"
	"errors"
	"slices"

	"github.com/slipway-dev/slipway/internal/backup/engine"
)

// onRepository opens the repository for a command, and closes it.
func onRepository(command func(context.Context, *work, *engine.Repository) error) func(context.Context, *work) error {
	return on(engine.Open, command)
}

// on is onRepository with a way to open it.
func on(
	open func(context.Context, engine.Options) (*engine.Repository, error), command func(context.Context, *work, *engine.Repository) error,
) func(context.Context, *work) error {
	return func(ctx context.Context, w *work) error {
		r, err := open(ctx, w.options)
		if err != nil {
			return err
		}
		w.result.RepositoryID = r.ID()
		return errors.Join(command(ctx, w, r), r.Close(ctx))
	}
}

// takeSnapshot makes the repository first, when it was never there and the configuration says so.
func takeSnapshot(ctx context.Context, w *work) error {
	err := onRepository(snapshot)(ctx, w)
	if !w.config.Repository.Create || w.options.ExpectedID != "" || w.result.RepositoryID != "" ||
		engine.KindOf(err) != engine.KindNotFound {
		return err
	}
	return on(engine.CreateAndOpen, snapshot)(ctx, w)
}

func snapshot(ctx context.Context, w *work, r *engine.Repository) error {
	c := w.config.Snapshot
	var stream *engine.StreamOptions
	if c.Dump != nil {
		hangUp := func() {}
		defer func() { hangUp() }()
		stream = streamOf(*c.Dump, &hangUp)
	}
	made, err := r.Snapshot(ctx, engine.SnapshotOptions{
		Source: c.Source, Run: c.Run, Volume: c.Volume, SourceTime: c.SourceTime, Paths: c.Paths, Exclude: c.Exclude,
		AllowPartial: c.AllowPartial, AllowEmpty: c.AllowEmpty,
		IgnoreChangeTime: c.IgnoreChangeTime, ReadAll: c.ReadAll, Parallel: c.Parallel, Meter: w.meter, Stream: stream,
	})
	if err == nil {
		w.result.Snapshot = &made
	}
	return err
}

func verify(ctx context.Context, w *work, r *engine.Repository) error {
	c := w.config.Verify
	verified, err := r.Verify(ctx, engine.VerifyOptions{
		Run: c.Run, Snapshots: c.Snapshots, ReadPercent: c.ReadPercent, Parallel: c.Parallel, Meter: w.meter,
	})
	if err != nil {
		return err
	}
	if err := r.NoteVerified(ctx, verified, c.ReadPercent); err != nil {
		return err
	}
	w.result.setSnapshots(verified.Snapshots)
	if len(verified.Snapshots) == 1 {
		w.result.Snapshots[0].Manifest = verified.Snapshots[0].Manifest
	}
	verified.Snapshots = nil
	w.result.Verify = &verified
	return nil
}

func restore(ctx context.Context, w *work, r *engine.Repository) error {
	if len(w.config.Drill.Volumes) > 0 {
		return restoreForDrill(ctx, w, r)
	}
	c := w.config.Restore
	if c.Latest {
		all, err := r.List(ctx, engine.ListOptions{})
		if err != nil {
			return err
		}
		if c.Snapshot, err = latest(all, c); err != nil {
			return err
		}
	}
	restored, err := r.Restore(ctx, engine.RestoreOptions{
		Snapshot: c.Snapshot, Run: c.Run, Target: c.Target, Paths: c.Paths, Overwrite: c.Overwrite, Attempt: c.Attempt,
		Parallel: c.Parallel, Meter: w.meter,
	})
	if err == nil {
		w.result.Restore = &restored
	}
	return err
}

func expire(ctx context.Context, w *work, r *engine.Repository) error {
	c := w.config.Expire
	if c.Retention != nil {
		all, err := r.List(ctx, engine.ListOptions{})
		if err != nil {
			return err
		}
		planned, err := planned(all, *c.Retention, w.now())
		if err != nil {
			return err
		}
		c.Snapshots = append(c.Snapshots, planned...)
	}
	expired, err := r.Expire(ctx, engine.ExpireOptions{Snapshots: c.Snapshots})
	if err == nil {
		w.result.Expire = &expireResult{Removed: len(expired.Removed), Missing: len(expired.Missing), Kept: expired.Kept}
	}
	return err
}

func maintain(ctx context.Context, w *work, r *engine.Repository) error {
	maintained, err := r.Maintain(ctx)
	if err == nil {
		w.result.Maintain = &maintained
	}
	return err
}

func list(ctx context.Context, w *work, r *engine.Repository) error {
	listed, err := r.List(ctx, engine.ListOptions{Run: w.config.List.Run})
	slices.Reverse(listed)
	w.result.setSnapshots(listed)
	return err
}

// deleteRepository deletes it. Where nobody knows its ID, because whoever made it was killed before it could say so, the password
// tells whose it is, and its age that it may be deleted.
func deleteRepository(ctx context.Context, w *work) error {
	if w.options.ExpectedID == "" || !w.config.Delete.MadeSince.IsZero() {
		r, err := engine.Open(ctx, w.options)
		if err != nil {
			return err
		}
		w.options.ExpectedID = r.ID()
		if err := errors.Join(r.RefuseOlder(ctx, w.config.Delete.MadeSince), r.Close(ctx)); err != nil {
			return err
		}
	}
	w.result.RepositoryID = w.options.ExpectedID
	deleted, err := engine.Delete(ctx, w.options)
	if err == nil {
		w.result.Delete = &deleted
	}
	return err
}
