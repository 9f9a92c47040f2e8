package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/kopia/kopia/repo/manifest"
	"github.com/kopia/kopia/snapshot"
	"golang.org/x/sync/errgroup"
)

// RestoreOptions say what to bring back, and where to.
type RestoreOptions struct {
	// Snapshot is the ID.
	Snapshot string
	// Run, instead of Snapshot, is the run that made it.
	Run string
	// Target is the folder to write to. It has to exist and to be empty, but for a folder lost+found.
	Target string
	// Paths restricts the restore to these files and folders of the snapshot. They come to the same path in the target.
	// Each has to exist. Default: all.
	Paths []string
	// Overwrite accepts a target that is not empty. A file that is in the way of one is replaced, a folder is kept and
	// filled, what is not in the snapshot stays. A folder in the way of a file, or a file in the way of a folder, is an
	// error. Default: false.
	Overwrite bool
	// Attempt names what several attempts have in common. Each marks the target with a file, and takes the mark away when all
	// is written; until then Snapshot refuses the target. Another of the same name finds the mark, and goes on although the
	// target is not empty. Default: none, and what an interrupted restore has written is in the way of the next.
	Attempt string
	// Parallel is how many files are written at a time. Default: the number of processors.
	Parallel int
	// Meter shows the progress. Default: none.
	Meter *Meter
}

// RestoreResult is what came of Restore.
type RestoreResult struct {
	// Snapshot is what was restored.
	Snapshot Snapshot `json:"snapshot"`
	// Files, Folders, Links, Pipes and Bytes are what was written.
	Files   int64 `json:"files"`
	Folders int64 `json:"folders"`
	Links   int64 `json:"links"`
	Pipes   int64 `json:"pipes"`
	Bytes   int64 `json:"bytes"`
	// OwnersNotKept is how many owners could not be set, which only the root user may do at will.
	OwnersNotKept int64 `json:"ownersNotKept"`
	// AttributesNotKept is how many extended attributes, ACLs among them, the target did not take.
	AttributesNotKept int64 `json:"attributesNotKept"`
	// Examples names some of both, with the reason.
	Examples []string `json:"examples,omitempty"`
}

// Restore writes a snapshot to a folder: contents, owners, modes, times, links, extended attributes. When it returns without
// an error, all of it is durable. Otherwise the target holds a part, and Overwrite or Attempt is needed to try again.
func (r *Repository) Restore(ctx context.Context, options RestoreOptions) (RestoreResult, error) {
	ctx, done := r.storage.guard(ctx)
	defer done()
	const doing = "restore"
	m, err := r.find(ctx, options)
	if err != nil {
		return RestoreResult{}, err
	}
	described, err := describe(m)
	if err != nil {
		return RestoreResult{}, err
	}
	filter, err := newFilter(options.Paths, nil)
	if err != nil {
		return RestoreResult{}, err
	}
	p, err := readParts(ctx, r.rep, m.RootEntry)
	if err != nil {
		return RestoreResult{}, r.damaged(ctx, doing, err)
	}
	if err := r.exist(ctx, p, filter.paths); err != nil {
		return RestoreResult{}, r.damaged(ctx, doing, err)
	}
	target, err := openTarget(options)
	if err != nil {
		return RestoreResult{}, err
	}
	defer target.close()
	w := &restorer{repository: r, filter: filter, target: target, meter: meterOrNone(options.Meter), attributes: map[string]attributes{}, stream: described.Stats.Stream}
	w.meter.totalFiles.Store(described.Stats.Files)
	w.meter.totalBytes.Store(described.Stats.Bytes)
	w.meter.known.Store(len(filter.paths) == 0)
	err = w.restore(ctx, p, options)
	if err != nil {
		target.untouched()
	}
	result := target.result
	result.Snapshot = described
	if err == nil {
		err = sameResult(filter, described.Stats, result)
	}
	return result, r.explain(ctx, doing, err)
}

// sameResult compares what was written with what the snapshot holds.
func sameResult(filter *filter, stats Stats, result RestoreResult) error {
	if len(filter.paths) > 0 {
		return nil
	}
	if stats.Files != result.Files || stats.Folders != result.Folders || stats.Links != result.Links || stats.Pipes != result.Pipes || stats.Bytes != result.Bytes {
		return fmt.Errorf("the snapshot holds %+v, written was %+v", stats, result)
	}
	return nil
}

// find returns the snapshot to restore.
func (r *Repository) find(ctx context.Context, options RestoreOptions) (*snapshot.Manifest, error) {
	const doing = "find the snapshot to restore"
	if (options.Snapshot == "") == (options.Run == "") {
		return nil, fail(KindInvalid, doing, "one of snapshot and run has to be set")
	}
	all, err := r.manifests(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if isComplete(m) && (m.ID == manifest.ID(options.Snapshot) || (options.Run != "" && m.Tags[runTag] == options.Run)) {
			return m, nil
		}
	}
	return nil, fail(KindNotFound, doing, "there is no snapshot %s%s", options.Snapshot, options.Run)
}

// exist looks for paths in a snapshot.
func (r *Repository) exist(ctx context.Context, p parts, paths []string) error {
	pipes := map[string]bool{}
	if len(paths) > 0 {
		if _, err := readAttributesOf(ctx, r.rep, p, func(line attributes) error {
			if line.Pipe != nil {
				pipes[line.Path] = true
			}
			return nil
		}); err != nil {
			return err
		}
	}
	for _, wanted := range paths {
		// A named pipe is beside the tree.
		if pipes[encodePath(wanted)] {
			continue
		}
		if err := r.exists(ctx, p.data, wanted); err != nil {
			return err
		}
	}
	return nil
}

// exists looks for a path in a tree.
func (r *Repository) exists(ctx context.Context, root *snapshot.DirEntry, wanted string) error {
	at := root
	for _, name := range strings.Split(wanted, "/") {
		if at.Type != snapshot.EntryTypeDirectory {
			return fail(KindPathNotFound, "restore", "%q is not in the snapshot", wanted)
		}
		entries, err := readFolder(ctx, r.rep, at.ObjectID)
		if err != nil {
			return err
		}
		at = nil
		for _, e := range entries {
			if e.Name == encodeName(name) {
				at = e
			}
		}
		if at == nil {
			return fail(KindPathNotFound, "restore", "%q is not in the snapshot", wanted)
		}
	}
	return nil
}

// restorer writes one snapshot.
type restorer struct {
	repository *Repository
	filter     *filter
	target     *target
	meter      *Meter
	attributes map[string]attributes // by path as it is stored
	stream     bool                  // there was no folder whose attributes the target could get

	writing *errgroup.Group
	folders []restoredFolder
	linked  map[int]string // the first path of each file with several
	links   []hardLink     // to make when all files are written
}

// restoredFolder gets its attributes when all below it is written, as it may be one that nobody may write to.
type restoredFolder struct {
	relative, stored string
	entry            *snapshot.DirEntry
}

type hardLink struct {
	relative, first string
	size            int64
}

func (w *restorer) restore(ctx context.Context, p parts, options RestoreOptions) error {
	if _, err := readAttributesOf(ctx, w.repository.rep, p, func(line attributes) error {
		w.attributes[line.Path] = line
		return nil
	}); err != nil {
		return err
	}
	w.linked = map[int]string{}
	group, limited := errgroup.WithContext(ctx)
	w.writing = group
	w.writing.SetLimit(parallel(options.Parallel))
	err := w.folder(limited, p.data, ".", ".")
	if failed := w.writing.Wait(); failed != nil {
		err = failed // the walk was only ended by that
	}
	if err != nil {
		return err
	}
	for _, l := range w.links {
		if err := w.target.link(l); err != nil {
			return err
		}
	}
	if err := w.pipes(); err != nil {
		return err
	}
	for i := len(w.folders) - 1; i >= 0; i-- {
		f := w.folders[i]
		if err := w.target.finishFolder(f.relative, f.entry, w.attributes[f.stored].Extended); err != nil {
			return err
		}
	}
	if err := w.target.sync(); err != nil {
		return err
	}
	return w.unmark()
}

// unmark takes the mark away, once everything is on disk. The folder gets its time back, which that has changed.
func (w *restorer) unmark() error {
	whole := len(w.filter.paths) == 0 && !w.stream
	if err := w.target.unmark(whole); err != nil {
		return err
	}
	if len(w.folders) > 0 && w.folders[0].relative == "." {
		f := w.folders[0]
		if err := w.target.finishFolder(f.relative, f.entry, w.attributes[f.stored].Extended); err != nil {
			return err
		}
	}
	return w.target.sync()
}

// folder restores what is in a folder, which exists.
func (w *restorer) folder(ctx context.Context, e *snapshot.DirEntry, relative, stored string) error {
	if relative != "." || (len(w.filter.paths) == 0 && !w.stream) {
		w.folders = append(w.folders, restoredFolder{relative: relative, stored: stored, entry: e})
	}
	entries, err := readFolder(ctx, w.repository.rep, e.ObjectID)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, child := range entries {
		name, err := decodeName(child.Name)
		if err != nil || seen[name] {
			return fmt.Errorf("%q in the folder %q: %w", child.Name, relative, errors.Join(errName, err))
		}
		seen[name] = true
		childPath := path.Join(relative, name)
		if !w.filter.wants(childPath, child.Type == snapshot.EntryTypeDirectory) {
			continue
		}
		if err := w.child(ctx, child, childPath, path.Join(stored, child.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (w *restorer) child(ctx context.Context, e *snapshot.DirEntry, relative, stored string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch e.Type {
	case snapshot.EntryTypeDirectory:
		if err := w.target.makeFolder(relative); err != nil {
			return err
		}
		return w.folder(ctx, e, relative, stored)
	case snapshot.EntryTypeSymlink:
		return w.symlink(ctx, e, relative)
	case snapshot.EntryTypeFile:
		return w.file(ctx, e, relative, stored)
	default:
		return fmt.Errorf("%q has the unknown type %q", relative, e.Type)
	}
}

func (w *restorer) symlink(ctx context.Context, e *snapshot.DirEntry, relative string) error {
	r, err := w.repository.rep.OpenObject(ctx, e.ObjectID)
	if err != nil {
		return err
	}
	defer r.Close()
	var raw buffer
	if _, err := raw.ReadFrom(r); err != nil {
		return err
	}
	return w.target.symlink(relative, raw.String(), e)
}

// file writes a file beside the walk.
func (w *restorer) file(ctx context.Context, e *snapshot.DirEntry, relative, stored string) error {
	more := w.attributes[stored]
	if more.Link != 0 {
		if first, found := w.linked[more.Link]; found {
			w.links = append(w.links, hardLink{relative: relative, first: first, size: e.FileSize})
			return nil
		}
		w.linked[more.Link] = relative
	}
	w.writing.Go(func() error {
		r, err := w.repository.rep.OpenObject(ctx, e.ObjectID)
		if err != nil {
			return fmt.Errorf("%q: %w", relative, err)
		}
		defer r.Close()
		if err := w.target.file(relative, &meteredReader{reader: r, meter: w.meter}, e, more.Extended); err != nil {
			return err
		}
		w.meter.files.Add(1)
		return nil
	})
	return nil
}

// pipes makes the named pipes.
func (w *restorer) pipes() error {
	for stored, more := range w.attributes {
		if more.Pipe == nil {
			continue
		}
		elements := strings.Split(stored, "/")
		for i, element := range elements {
			name, err := decodeName(element)
			if err != nil {
				return fmt.Errorf("the pipe %q: %w", stored, err)
			}
			elements[i] = name
		}
		relative := strings.Join(elements, "/")
		if !w.filter.wants(relative, false) {
			continue
		}
		if err := w.target.pipe(relative, *more.Pipe); err != nil {
			return err
		}
	}
	return nil
}

// targetError gives an error of the target its kind.
func targetError(relative string, err error) error {
	kind := KindTargetUnwritable
	if isNoSpace(err) {
		kind = KindNoSpace
	}
	if errors.Is(err, os.ErrExist) {
		kind = KindTargetNotEmpty
	}
	return &Error{Kind: kind, Doing: fmt.Sprintf("restore %q", relative), Err: err}
}
