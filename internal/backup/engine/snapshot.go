package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	kopiafs "github.com/kopia/kopia/fs"
	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/compression"
	"github.com/kopia/kopia/repo/content"
	"github.com/kopia/kopia/repo/object"
	"github.com/kopia/kopia/snapshot"
	"github.com/kopia/kopia/snapshot/policy"
	"github.com/kopia/kopia/snapshot/snapshotfs"
	"github.com/kopia/kopia/snapshot/upload"
)

// SnapshotOptions say what to keep.
type SnapshotOptions struct {
	// Source is the folder. Its owner and mode are kept too, its name is not.
	Source string
	// Run names the run that makes the snapshot, at most 300 bytes: the UID of a run and the name of a claim have 290. When there is a snapshot of this run already, it is
	// returned, and the source is not read again.
	Run string
	// Volume tells the sources of a repository apart, when there are several: what is unchanged is looked for in snapshots
	// of the same one only. Default: none, for a repository with one source. Of a name, such as that of a volume claim.
	Volume string
	// SourceTime is what moment the source is of, where that is earlier than the reading: a snapshot of a volume that was taken
	// before. One that is later than the reading is taken for a clock that is ahead. Default: when reading began.
	SourceTime time.Time
	// Paths restricts the snapshot to these files and folders in the source. Each has to exist. Default: all.
	Paths []string
	// Exclude leaves out what matches one of these patterns. A pattern without a slash is for a name in any folder, one
	// with a slash for a path from the source; * and ? stand for characters of one name, ** for any number of folders; a
	// slash at the end makes it one for folders only. Default: nothing but a folder lost+found of the root user.
	Exclude []string
	// AllowPartial makes a snapshot although something could not be read. It says so in Stats.Unreadable. Default: false.
	AllowPartial bool
	// AllowEmpty makes a snapshot although the source holds no file. Default: false, because an empty volume is mostly one
	// that lost its data, and its snapshots would replace the good ones.
	AllowEmpty bool
	// IgnoreChangeTime takes a file of the same size and modification time for unchanged, even when its change time is
	// later than the snapshot before. Right where something sets owners of all files between two runs. Default: false.
	IgnoreChangeTime bool
	// ReadAll reads every file, whatever earlier snapshots hold. Default: false.
	ReadAll bool
	// Parallel is how many files are read at a time. Default: the number of processors.
	Parallel int
	// Meter shows the progress. Default: none.
	Meter *Meter
	// Stream is what to keep instead of Source. Paths, Exclude and AllowPartial do not go with it. Default: none.
	Stream *StreamOptions

	checkpointEvery time.Duration // for tests: how often unfinished work is made reusable; default 45 minutes
}

// maxRun is how long the name of a run may be.
const maxRun = 300

// Stats say what a snapshot holds, and what it does not.
type Stats struct {
	// Files, Folders, Links (symbolic ones) and Pipes are counted without the source itself. A file with several hard
	// links counts several times.
	Files   int64 `json:"files"`
	Folders int64 `json:"folders"`
	Links   int64 `json:"links"`
	Pipes   int64 `json:"pipes"`
	// Bytes is the size of all files, as they are read: holes count.
	Bytes int64 `json:"bytes"`
	// Vanished is what was removed between the listing of a folder and the reading. It is not in the snapshot.
	Vanished int64 `json:"vanished"`
	// Changed is how many files changed while they were read. They are in the snapshot as they were read.
	Changed int64 `json:"changed"`
	// Skipped is how many sockets and devices there were, which are not kept. SkippedExamples names some.
	Skipped         int64    `json:"skipped"`
	SkippedExamples []string `json:"skippedExamples,omitempty"`
	// Unreadable is how many paths are missing because they could not be read: 0 unless the snapshot is a partial one.
	// UnreadableExamples names some, with the reason.
	Unreadable         int64    `json:"unreadable"`
	UnreadableExamples []string `json:"unreadableExamples,omitempty"`
	// Stream reports whether the source was a stream, which is kept as one file. There was no folder, so a restore leaves the
	// target itself as it is.
	Stream bool `json:"stream,omitempty"`
}

func (s Stats) empty() bool { return s.Files+s.Links+s.Pipes == 0 }

// SnapshotResult is what came of Snapshot.
type SnapshotResult struct {
	Snapshot
	// AddedBytes is by how much the repository grew, compressed and encrypted.
	AddedBytes int64 `json:"addedBytes"`
	// Adopted reports whether an earlier process had made the snapshot of this run.
	Adopted bool `json:"adopted"`
}

// Snapshot keeps the source. When it returns without an error, the snapshot is in the repository and durable. Otherwise
// there is no snapshot of this run. Let another process Verify it before you rely on it.
func (r *Repository) Snapshot(ctx context.Context, options SnapshotOptions) (SnapshotResult, error) {
	ctx, done := r.storage.guard(ctx)
	defer done()
	const doing = "make the snapshot"
	if options.Run == "" || len(options.Run) > maxRun {
		return SnapshotResult{}, fail(KindInvalid, doing, "the name of the run is empty, or longer than %d bytes", maxRun)
	}
	if strings.Contains(options.Volume, "/") || len(options.Volume) > 253 {
		return SnapshotResult{}, fail(KindInvalid, doing, "the name of the volume holds a slash, or is longer than 253 bytes")
	}
	earlier, err := r.manifests(ctx)
	if err != nil {
		return SnapshotResult{}, err
	}
	for _, m := range earlier {
		if isComplete(m) && m.Tags[runTag] == options.Run {
			found, err := describe(m)
			return SnapshotResult{Snapshot: found, Adopted: true}, err
		}
	}
	if options.Stream != nil {
		return r.snapshotStream(ctx, options)
	}
	return r.snapshotFolder(ctx, options, earlier)
}

// snapshotFolder makes a snapshot of a folder.
func (r *Repository) snapshotFolder(ctx context.Context, options SnapshotOptions, earlier []*snapshot.Manifest) (SnapshotResult, error) {
	const doing = "make the snapshot"
	filter, err := newFilter(options.Paths, options.Exclude)
	if err != nil {
		return SnapshotResult{}, err
	}
	source, err := openSource(options.Source, filter)
	if err != nil {
		return SnapshotResult{}, err
	}
	defer source.close()
	stop := estimate(ctx, options, filter)
	defer stop()
	lost, err := r.lost(ctx)
	if err != nil {
		return SnapshotResult{}, err
	}

	before := r.storage.written.Load()
	var made *snapshot.Manifest
	var stats Stats
	err = r.write(ctx, doing, func(ctx context.Context, w repo.DirectRepositoryWriter) error {
		k := keeper{options: options, source: source, writer: w, earlier: earlier, lost: lost}
		var err error
		made, stats, err = k.keep(ctx)
		return err
	})
	if err != nil {
		return SnapshotResult{}, classify(ctx, doing, KindInternal, err)
	}
	return SnapshotResult{Snapshot: toSnapshot(made, stats), AddedBytes: r.storage.written.Load() - before}, nil
}

// keeper makes one snapshot.
type keeper struct {
	options SnapshotOptions
	source  *source
	writer  repo.DirectRepositoryWriter
	earlier []*snapshot.Manifest
	lost    map[content.ID]bool // what the index lists and no pack holds
}

// keep writes the tree and what is beside it.
func (k *keeper) keep(ctx context.Context) (*snapshot.Manifest, Stats, error) {
	k.source.collector, k.source.sampler = newCollector(), newSampler()
	made, stats, err := k.upload(ctx)
	if err != nil {
		return nil, stats, err
	}
	source := &sourceManifest{header: manifestHeader{Bounds: k.source.sampler.bounds()}, entries: k.source.sampler.entries()}
	return made, stats, k.save(ctx, made, stats, k.source.collector.lines(), source)
}

// save writes the attributes, the manifest of the source, and the snapshot that holds them and the tree.
func (k *keeper) save(ctx context.Context, made *snapshot.Manifest, stats Stats, lines []attributes, source *sourceManifest) error {
	beside, err := k.writeAttributes(ctx, made, stats, lines)
	if err != nil {
		return err
	}
	manifest, digest, err := k.writeManifest(ctx, made, stats, source)
	if err != nil {
		return err
	}
	var root snapshotfs.DirManifestBuilder
	root.AddEntry(made.RootEntry)
	root.AddEntry(beside)
	root.AddEntry(manifest)
	folder := root.Build(made.StartTime, "")
	id, err := snapshotfs.WriteDirManifest(ctx, k.writer, ".", folder, metadataCompression)
	if err != nil {
		return err
	}
	made.RootEntry = newEntry("", snapshot.EntryTypeDirectory, id, made.StartTime)
	made.RootEntry.DirSummary = folder.Summary
	description, err := json.Marshal(stats)
	if err != nil {
		return err
	}
	made.Description = string(description)
	made.Tags = map[string]string{runTag: k.options.Run, manifestTag: digest}
	if at := k.options.SourceTime; !at.IsZero() && at.Before(begun(made)) {
		made.Tags[sourceTimeTag] = timeTag(at)
	}
	if stats.Unreadable > 0 {
		made.Tags[partialTag] = "true"
	}
	if _, err := snapshot.SaveSnapshot(ctx, k.writer, made); err != nil {
		return err
	}
	return k.dropCheckpoints(ctx)
}

// dropCheckpoints removes what this run and interrupted ones left for the next to begin with.
func (k *keeper) dropCheckpoints(ctx context.Context) error {
	all, err := loadManifests(ctx, k.writer)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.IncompleteReason == "" || m.Source != sourceOf(k.options.Volume) {
			continue
		}
		if err := k.writer.DeleteManifest(ctx, m.ID); err != nil {
			return err
		}
	}
	return nil
}

const (
	contentCompression  = compression.Name("zstd")
	metadataCompression = compression.Name("zstd-fastest")
)

// upload writes the tree.
func (k *keeper) upload(ctx context.Context) (*snapshot.Manifest, Stats, error) {
	meter := meterOrNone(k.options.Meter)
	k.source.previous = k.reuse(meter)
	writer := &uploadWriter{DirectRepositoryWriter: k.writer}
	uploader := upload.NewUploader(writer)
	seen := &observer{meter: meter, cancel: uploader.Cancel, forget: k.source.forget}
	uploader.Progress = seen
	uploader.DisableIgnoreRules = true // the source has its own
	uploader.ParallelUploads = k.options.Parallel
	if uploader.ParallelUploads == 0 {
		uploader.ParallelUploads = runtime.NumCPU()
	}
	if k.options.checkpointEvery > 0 {
		uploader.CheckpointInterval = k.options.checkpointEvery
	}
	if !k.options.SourceTime.IsZero() {
		uploader.CheckpointLabels = map[string]string{sourceTimeTag: timeTag(k.options.SourceTime)}
	}
	defer context.AfterFunc(ctx, uploader.Cancel)()

	tree := policy.BuildTree(nil, &policy.Policy{
		CompressionPolicy:         policy.CompressionPolicy{CompressorName: contentCompression},
		MetadataCompressionPolicy: policy.MetadataCompressionPolicy{CompressorName: metadataCompression},
	})
	root := &folder{entry: &entry{source: k.source, relative: "."}, previous: k.previousRoots(ctx)}
	made, err := uploader.Upload(ctx, root, tree, sourceOf(k.options.Volume))
	writer.end()
	switch {
	case ctx.Err() != nil:
		return nil, Stats{}, ctx.Err()
	case seen.fatal != nil:
		return nil, Stats{}, seen.fatal
	case err != nil:
		return nil, Stats{}, err
	case made.IncompleteReason != "":
		return nil, Stats{}, fmt.Errorf("the library gave up: %s", made.IncompleteReason)
	}
	if err := k.source.refuseMarked(); err != nil {
		return nil, Stats{}, err
	}
	stats := k.stats(made, seen)
	return made, stats, k.judge(made, stats)
}

// reuse is how unchanged files are found in earlier snapshots.
func (k *keeper) reuse(meter *Meter) *reuse {
	return &reuse{
		rep: k.writer, lost: k.lost, ignoreChangeTime: k.options.IgnoreChangeTime,
		reused: func(bytes int64) { meter.bytes.Add(bytes) },
	}
}

// previousRoots are the trees of the newest snapshot and of what interrupted runs kept since.
func (k *keeper) previousRoots(ctx context.Context) []previousFolder {
	if k.options.ReadAll {
		return nil
	}
	var newest *snapshot.Manifest
	ours := sourceOf(k.options.Volume)
	for _, m := range k.earlier {
		if m.Source == ours && isComplete(m) { // the newest is the last
			newest = m
		}
	}
	var roots []previousFolder
	if newest != nil {
		if p, err := readParts(ctx, k.writer, newest.RootEntry); err == nil {
			roots = append(roots, previousFolder{object: p.data.ObjectID, of: sourceTime(newest)})
			k.source.sampler.follow(k.previousManifest(ctx, newest, p.manifest), sourceTime(newest))
		}
	}
	for _, m := range k.earlier {
		if m.Source == ours && m.IncompleteReason != "" && m.RootEntry != nil && (newest == nil || m.StartTime.After(newest.StartTime)) {
			roots = append(roots, previousFolder{object: m.RootEntry.ObjectID, of: sourceTime(m)})
		}
	}
	return roots
}

func (k *keeper) stats(made *snapshot.Manifest, seen *observer) Stats {
	stored := made.RootEntry.DirSummary
	return Stats{
		Files: stored.TotalFileCount, Folders: stored.TotalDirCount - 1, Links: stored.TotalSymlinkCount, Pipes: k.source.pipes.Load(),
		Bytes:    stored.TotalFileSize,
		Vanished: seen.vanished, Changed: k.source.changed.Load(),
		Skipped: k.source.skipped, SkippedExamples: k.source.examples,
		Unreadable: seen.unreadable, UnreadableExamples: seen.examples,
	}
}

// judge decides whether what was written may become a snapshot.
func (k *keeper) judge(made *snapshot.Manifest, stats Stats) error {
	const doing = "make the snapshot"
	stored, failed, seen := stats.Files+stats.Folders+stats.Links, stats.Vanished+stats.Unreadable, k.source.seen.Load()
	reported := int64(made.Stats.ErrorCount + made.Stats.IgnoredErrorCount)
	switch {
	case stored+failed != seen, reported != failed:
		return fail(KindInternal, doing, "of %d paths %d are stored, %d are known to have failed, and the library says that %d have", seen, stored, failed, reported)
	case stats.Unreadable > 0 && !k.options.AllowPartial:
		return fail(KindSourceUnreadable, doing, "%d paths could not be read, such as %s", stats.Unreadable, strings.Join(stats.UnreadableExamples, ", "))
	case stats.empty() && !k.options.AllowEmpty:
		return fail(KindSourceEmpty, doing, "the source holds no file")
	default:
		return nil
	}
}

// writeAttributes writes the file beside the tree.
func (k *keeper) writeAttributes(ctx context.Context, made *snapshot.Manifest, stats Stats, lines []attributes) (*snapshot.DirEntry, error) {
	w := k.writer.NewObjectWriter(ctx, object.WriterOptions{
		Description: "FILE:" + attributesName, Compressor: metadataCompression, MetadataCompressor: metadataCompression,
	})
	defer w.Close()
	size := &countingWriter{}
	if err := writeAttributes(io.MultiWriter(w, size), stats, lines); err != nil {
		return nil, err
	}
	id, err := w.Result()
	if err != nil {
		return nil, err
	}
	e := newEntry(attributesName, snapshot.EntryTypeFile, id, made.StartTime)
	e.FileSize = size.n
	return e, nil
}

func isSourceError(err error) bool {
	var ofSource *sourceError
	return errors.As(err, &ofSource)
}

// begun is when a snapshot began.
func begun(m *snapshot.Manifest) time.Time { return kopiafs.UTCTimestamp.ToTime(m.StartTime) }

func timeTag(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
