package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/content"
	"github.com/kopia/kopia/repo/object"
	"github.com/kopia/kopia/snapshot"
	"golang.org/x/sync/errgroup"
)

// VerifyOptions say what to look at, and how closely.
type VerifyOptions struct {
	// Snapshots are the IDs of snapshots that have to be there. One that is missing is damage, as the caller knows that it
	// was made. Default: all that there are.
	Snapshots []string
	// Run, instead of Snapshots, is the run whose snapshot has to be there. KindNotFound when it is not.
	Run string
	// ReadPercent is which share of the files is read, decrypted and checked, at random, 0 to 100, at least one file of
	// each snapshot unless it is 0. All folders are read, and all packs have to be there, whatever it says. 100 finds every
	// damage to what the snapshots hold. Default: 0.
	ReadPercent float64
	// Parallel is how many files are read at a time. Default: the number of processors.
	Parallel int
	// Meter shows the progress. Default: none.
	Meter *Meter
}

// VerifyResult is what Verify found in order.
type VerifyResult struct {
	// Snapshots are those that were looked at.
	Snapshots []Snapshot `json:"snapshots"`
	// Files and Bytes are how many files they hold together, and of what size.
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
	// ReadFiles and ReadBytes are what was read of it. What several files share is read once.
	ReadFiles int64 `json:"readFiles"`
	ReadBytes int64 `json:"readBytes"`
}

// Verify reads snapshots back: the tree of each is walked, its counts compared with those that were taken of the source, each
// content looked for in the packs, a share of the files read. Run it in another process than Snapshot, so that nothing comes
// from a cache. It ends with the first damage that it finds.
func (r *Repository) Verify(ctx context.Context, options VerifyOptions) (VerifyResult, error) {
	ctx, done := r.storage.guard(ctx)
	defer done()
	const doing = "verify"
	var result VerifyResult
	if options.ReadPercent < 0 || options.ReadPercent > 100 || (options.Run != "" && len(options.Snapshots) > 0) {
		return result, fail(KindInvalid, doing, "the share to read has to be 0 to 100, and a run excludes IDs")
	}
	chosen, err := r.choose(ctx, options)
	if err != nil {
		return result, err
	}
	v := &verifier{
		repository: r, options: options, meter: meterOrNone(options.Meter),
		contents: map[content.ID]bool{}, read: map[object.ID]bool{},
	}
	if v.packs, err = r.packs(ctx); err != nil {
		return result, err
	}
	for _, m := range chosen {
		verified, err := v.verify(ctx, m)
		if err != nil {
			return result, r.explain(ctx, fmt.Sprintf("%s the snapshot %s", doing, m.ID), err)
		}
		result.Snapshots = append(result.Snapshots, verified)
		result.Files += verified.Stats.Files
		result.Bytes += verified.Stats.Bytes
	}
	result.ReadFiles, result.ReadBytes = v.readFiles, v.readBytes
	return result, nil
}

// explain does what damaged does. It tells damage from a repository that went away meanwhile, too: then nothing of it can be
// found.
func (r *Repository) explain(ctx context.Context, doing string, err error) error {
	if err = r.damaged(ctx, doing, err); KindOf(err) != KindCorrupt {
		return err
	}
	if _, gone := readID(ctx, r.storage); gone != nil && KindOf(gone) != KindCorrupt {
		return errors.Join(gone, err)
	}
	return err
}

// choose returns the snapshots to look at.
func (r *Repository) choose(ctx context.Context, options VerifyOptions) ([]*snapshot.Manifest, error) {
	const doing = "find the snapshots to verify"
	all, err := r.manifests(ctx)
	if err != nil {
		return nil, err
	}
	everything := len(options.Snapshots) == 0 && options.Run == ""
	wanted := map[string]bool{}
	for _, id := range options.Snapshots {
		wanted[id] = true
	}
	var chosen []*snapshot.Manifest
	for _, m := range all {
		if !isComplete(m) {
			continue
		}
		if everything || wanted[string(m.ID)] || (options.Run != "" && m.Tags[runTag] == options.Run) {
			chosen = append(chosen, m)
			delete(wanted, string(m.ID))
		}
	}
	for id := range wanted {
		return nil, fail(KindCorrupt, doing, "the snapshot %s is missing", id)
	}
	if options.Run != "" && len(chosen) == 0 {
		return nil, fail(KindNotFound, doing, "there is no snapshot of the run %s", options.Run)
	}
	return chosen, nil
}

// verifier remembers what it has seen, because snapshots share most of what they hold.
type verifier struct {
	repository *Repository
	options    VerifyOptions
	meter      *Meter
	packs      map[blob.ID]int64 // sizes
	contents   map[content.ID]bool

	mu                   sync.Mutex
	read                 map[object.ID]bool
	readFiles, readBytes int64
}

// walk is the state of walking one snapshot.
type walk struct {
	stats   Stats
	reading *errgroup.Group
	chosen  bool // a file was read
	spare   *snapshot.DirEntry
}

func (v *verifier) verify(ctx context.Context, m *snapshot.Manifest) (Snapshot, error) {
	described, err := describe(m)
	if err != nil {
		return described, err
	}
	p, err := readParts(ctx, v.repository.rep, m.RootEntry)
	if err != nil {
		return described, err
	}
	if err := v.check(ctx, p.attributes); err != nil {
		return described, err
	}
	if err := v.manifest(ctx, p.manifest, described.Manifest); err != nil {
		return described, err
	}
	w := &walk{}
	header, err := readAttributesOf(ctx, v.repository.rep, p, func(line attributes) error {
		if line.Pipe != nil {
			w.stats.Pipes++
		}
		return nil
	})
	if err != nil {
		return described, err
	}
	reading, limited := errgroup.WithContext(ctx)
	w.reading = reading
	w.reading.SetLimit(parallel(v.options.Parallel))
	err = v.folder(limited, w, p.data)
	if err == nil && v.options.ReadPercent > 0 && !w.chosen && w.spare != nil {
		v.readLater(limited, w, w.spare)
	}
	if failed := w.reading.Wait(); failed != nil {
		err = failed // the walk was only ended by that
	}
	if err != nil {
		return described, err
	}
	return described, sameCounts(described.Stats, header.Stats, w.stats)
}

// manifest reads the manifest of the source, where there should be one.
func (v *verifier) manifest(ctx context.Context, e *snapshot.DirEntry, digest string) error {
	if e == nil && digest == "" {
		return nil // of an older program
	}
	if e == nil {
		return fmt.Errorf("the snapshot does not hold %s", manifestName)
	}
	if err := v.check(ctx, e); err != nil {
		return err
	}
	_, err := readManifest(ctx, v.repository.rep, e, digest)
	return err
}

// sameCounts compares what the source held with what is in the repository.
func sameCounts(described, header, walked Stats) error {
	type counts struct{ files, folders, links, pipes, bytes int64 }
	of := func(s Stats) counts { return counts{s.Files, s.Folders, s.Links, s.Pipes, s.Bytes} }
	if of(described) != of(walked) || of(header) != of(walked) {
		return fmt.Errorf("the source held %+v, the tree holds %+v", of(described), of(walked))
	}
	return nil
}

// folder walks a folder and all below.
func (v *verifier) folder(ctx context.Context, w *walk, e *snapshot.DirEntry) error {
	if err := v.check(ctx, e); err != nil {
		return err
	}
	entries, err := readFolder(ctx, v.repository.rep, e.ObjectID)
	if err != nil {
		return err
	}
	for _, child := range entries {
		if _, err := decodeName(child.Name); err != nil {
			return fmt.Errorf("%w: %q", err, child.Name)
		}
		switch child.Type {
		case snapshot.EntryTypeDirectory:
			w.stats.Folders++
			if err := v.folder(ctx, w, child); err != nil {
				return err
			}
			continue
		case snapshot.EntryTypeSymlink:
			w.stats.Links++
		case snapshot.EntryTypeFile:
			w.stats.Files++
			w.stats.Bytes += child.FileSize
			v.meter.files.Add(1)
		default:
			return fmt.Errorf("%q has the unknown type %q", child.Name, child.Type)
		}
		if err := v.check(ctx, child); err != nil {
			return err
		}
		if rand.Float64()*100 < v.options.ReadPercent {
			v.readLater(ctx, w, child)
		} else if w.spare == nil {
			w.spare = child
		}
	}
	return nil
}

// check looks for all contents of an entry in the packs.
func (v *verifier) check(ctx context.Context, e *snapshot.DirEntry) error {
	ids, err := v.repository.rep.VerifyObject(ctx, e.ObjectID)
	if err != nil {
		return fmt.Errorf("%q: %w", e.Name, err)
	}
	for _, id := range ids {
		if v.contents[id] {
			continue
		}
		info, err := v.repository.rep.ContentInfo(ctx, id)
		if err != nil {
			return fmt.Errorf("%q: %w", e.Name, err)
		}
		if !fits(v.packs, info) {
			return fmt.Errorf("%q: the pack %s is missing, or too short: the next snapshot reads again what the source still holds of it", e.Name, info.PackBlobID)
		}
		v.contents[id] = true
	}
	return nil
}

// readLater reads a file beside the walk, unless that was done for another one of the same content.
func (v *verifier) readLater(ctx context.Context, w *walk, e *snapshot.DirEntry) {
	w.chosen = true
	v.mu.Lock()
	known := v.read[e.ObjectID]
	v.read[e.ObjectID] = true
	v.mu.Unlock()
	if known {
		return
	}
	w.reading.Go(func() error {
		r, err := v.repository.rep.OpenObject(ctx, e.ObjectID)
		if err != nil {
			return fmt.Errorf("%q: %w", e.Name, err)
		}
		defer r.Close()
		n, err := io.Copy(io.Discard, &meteredReader{reader: r, meter: v.meter})
		if err != nil {
			return fmt.Errorf("%q: %w", e.Name, err)
		}
		if n != e.FileSize {
			return fmt.Errorf("%q has %d bytes, it should have %d", e.Name, n, e.FileSize)
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		v.readFiles++
		v.readBytes += n
		return nil
	})
}

// meteredReader shows on the meter what is read.
type meteredReader struct {
	reader io.Reader
	meter  *Meter
}

func (m *meteredReader) Read(p []byte) (int, error) {
	n, err := m.reader.Read(p)
	m.meter.bytes.Add(int64(n))
	return n, err
}

func parallel(chosen int) int {
	if chosen > 0 {
		return chosen
	}
	return runtime.NumCPU()
}
