package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/kopia/kopia/repo/manifest"
	"github.com/kopia/kopia/snapshot"
	"golang.org/x/sys/unix"
)

// CompareOptions say what to compare.
type CompareOptions struct {
	// Snapshot is the ID of the snapshot that was restored.
	Snapshot string
	// Manifest is the digest of its manifest, as it was told when the snapshot was made. The one in the repository has to have
	// it, so that an exchanged one is noticed.
	Manifest string
	// Folder is where the snapshot was restored to, all of it. It is only read.
	Folder string
	// AllowEmpty accepts a snapshot of a source without any file. Default: false, because it proves nothing.
	AllowEmpty bool
	// Meter shows the progress. Default: none.
	Meter *Meter
}

// CompareResult is what Compare found in order.
type CompareResult struct {
	// Entries is how many paths of the manifest were compared: type and mode, and what follows.
	Entries int64 `json:"entries"`
	// Files is how many of them were read whole and have the checksum of the source, and Bytes their size.
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
	// Changed is how many files changed while the source was read, so that there is no checksum.
	Changed int64 `json:"changed"`
	// Unreadable is how many paths the source's own mode keeps us from reading.
	Unreadable int64 `json:"unreadable"`
}

// Compare looks at a folder that a snapshot was restored to, and compares it with the manifest that was taken of the source:
// how many files, folders, links, pipes and bytes there are, and of the sample type, mode and content. It ends with the first
// difference. Run it in another process than Restore.
func (r *Repository) Compare(ctx context.Context, options CompareOptions) (CompareResult, error) {
	ctx, done := r.storage.guard(ctx)
	defer done()
	source, err := r.manifestOf(ctx, options)
	if err != nil {
		return CompareResult{}, err
	}
	root, err := os.OpenRoot(options.Folder)
	if err != nil {
		return CompareResult{}, &Error{Kind: KindNothingRestored, Doing: "open the folder to compare", Err: err}
	}
	defer root.Close()
	c := &comparer{root: root, source: source, meter: meterOrNone(options.Meter)}
	for i := range source.entries {
		c.meter.totalBytes.Add(source.entries[i].Size)
	}
	c.meter.totalFiles.Store(int64(len(source.entries)))
	c.meter.known.Store(true)
	err = c.compare(ctx)
	if err == nil {
		err = c.proved(options.AllowEmpty)
	}
	return c.result, classify(ctx, "compare", KindInternal, err)
}

// manifestOf returns the manifest of a snapshot, if it is the one that was written with it.
func (r *Repository) manifestOf(ctx context.Context, options CompareOptions) (*sourceManifest, error) {
	const doing = "read the manifest of the source"
	all, err := r.manifests(ctx)
	if err != nil {
		return nil, err
	}
	var m *snapshot.Manifest
	for _, candidate := range all {
		if isComplete(candidate) && candidate.ID == manifest.ID(options.Snapshot) {
			m = candidate
		}
	}
	if m == nil {
		return nil, fail(KindSnapshotMissing, doing, "there is no snapshot %s", options.Snapshot)
	}
	p, err := readParts(ctx, r.rep, m.RootEntry)
	if err != nil {
		return nil, r.explain(ctx, doing, err)
	}
	if p.manifest == nil || options.Manifest == "" {
		return nil, fail(KindManifestMissing, doing, "the snapshot %s has none that is known: there is nothing to compare with, until there is a newer snapshot", m.ID)
	}
	source, err := readManifest(ctx, r.rep, p.manifest, options.Manifest)
	if errors.Is(err, errDigest) {
		return nil, fail(KindManifestDiffers, doing, "the snapshot %s: it is not the one that was written with the snapshot", m.ID)
	}
	return source, r.explain(ctx, doing, err)
}

// comparer compares a folder with a manifest.
type comparer struct {
	root   *os.Root
	source *sourceManifest
	meter  *Meter
	result CompareResult
}

func (c *comparer) compare(ctx context.Context) error {
	wanted := make(map[string]bool, len(c.source.entries))
	for i := range c.source.entries {
		wanted[c.source.entries[i].Path] = true
	}
	found, err := walkFolder(ctx, c.root, wanted)
	if err != nil {
		return err
	}
	header := c.source.header
	if header.Files+header.Folders+header.Links+header.Pipes > 0 && found.empty() {
		return differs(KindNothingRestored, "the folder is empty")
	}
	for i := range c.source.entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.entry(&c.source.entries[i], found); err != nil {
			return err
		}
		c.meter.files.Add(1)
	}
	// A folder that nobody may list hides what is in it. So it has to be one that the source had closed.
	for _, folder := range found.closed {
		if !wanted[folder] {
			return differs(KindModeDiffers, "the folder %q cannot be listed, and nothing tells that it should be so", folder)
		}
	}
	return c.totals(found)
}

func differs(kind Kind, format string, arguments ...any) error {
	return fail(kind, "compare with the source", format, arguments...)
}

// entry compares one path of the sample.
func (c *comparer) entry(e *manifestEntry, found *walked) error {
	there, exists := found.wanted[e.Path]
	if !exists {
		if found.behindClosed(e.Path) {
			c.result.Unreadable++
			return nil
		}
		return differs(KindFileMissing, "%q is missing", e.Path)
	}
	if kind := typeOf(there.stat.Mode); kind != e.Type {
		if kind == typeLink || e.Type == typeLink {
			return differs(KindLinkDiffers, "%q was a %s and is a %s", e.Path, e.Type, kind)
		}
		return differs(KindContentDiffers, "%q was a %s and is a %s", e.Path, e.Type, kind)
	}
	if mode := there.stat.Mode & 0o7777; e.Type != typeLink && mode != e.Mode {
		return differs(KindModeDiffers, "%q had the mode %04o and has %04o", e.Path, e.Mode, mode)
	}
	c.result.Entries++
	switch e.Type {
	case typeLink:
		if digestOf([]byte(there.target)) != e.SHA256 {
			return differs(KindLinkDiffers, "the link %q points elsewhere", e.Path)
		}
		return nil
	case typeFile:
		return c.file(e, there)
	default:
		return nil
	}
}

// file compares the content of a file.
func (c *comparer) file(e *manifestEntry, there walkedPath) error {
	switch {
	case e.Changed:
		c.result.Changed++
		return nil
	case there.stat.Size != e.Size:
		return differs(KindContentDiffers, "%q had %d bytes and has %d", e.Path, e.Size, there.stat.Size)
	}
	sum, size, err := c.sum(there)
	const readableByOwner = 0o400
	switch {
	case errors.Is(err, fs.ErrPermission) && e.Mode&readableByOwner == 0:
		c.result.Unreadable++
		return nil
	case err != nil:
		return differs(KindContentDiffers, "%q cannot be read: %w", e.Path, err)
	case sum != e.SHA256 || size != e.Size:
		return differs(KindContentDiffers, "%q holds something else than was read from the source", e.Path)
	}
	c.result.Files++
	c.result.Bytes += size
	return nil
}

// sum reads a file, unless it is another one by now.
func (c *comparer) sum(there walkedPath) (string, int64, error) {
	opened, err := c.root.OpenFile(there.relative, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return "", 0, err
	}
	defer opened.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(opened.Fd()), &stat); err != nil {
		return "", 0, err
	}
	if inodeOf(stat) != inodeOf(there.stat) {
		return "", 0, errReplaced
	}
	sum := sha256.New()
	size, err := io.Copy(sum, &meteredReader{reader: opened, meter: c.meter})
	return hex.EncodeToString(sum.Sum(nil)), size, err
}

// totals compares the counts of everything, so that also what is not in the sample is missed.
func (c *comparer) totals(found *walked) error {
	if len(found.closed) > 0 {
		return nil // what is in a folder that its own mode closes cannot be counted
	}
	header := c.source.header
	for _, count := range []struct {
		what      string
		was, have int64
	}{
		{"files", header.Files, found.files},
		{"folders", header.Folders, found.folders},
		{"symbolic links", header.Links, found.links},
		{"named pipes", header.Pipes, found.pipes},
	} {
		if count.have < count.was {
			return differs(KindFileMissing, "there were %d %s and there are %d", count.was, count.what, count.have)
		}
		if count.have > count.was {
			return differs(KindContentDiffers, "there were %d %s and there are %d", count.was, count.what, count.have)
		}
	}
	if found.bytes != header.Bytes {
		return differs(KindContentDiffers, "the files had %d bytes and have %d", header.Bytes, found.bytes)
	}
	return nil
}

// proved refuses a comparison that compared nothing.
func (c *comparer) proved(allowEmpty bool) error {
	header := c.source.header
	switch {
	case c.result.Files > 0:
		return nil
	case header.Files > 0:
		return differs(KindNothingCompared, "of %d files none could be compared: %d changed while they were read, %d cannot be read", header.Files, c.result.Changed, c.result.Unreadable)
	case header.Links > 0 && c.result.Entries > 0, allowEmpty:
		return nil
	default:
		return differs(KindNothingCompared, "the snapshot holds no file")
	}
}

// behindClosed reports whether a path is below a folder that cannot be listed.
func (w *walked) behindClosed(path string) bool {
	for _, folder := range w.closed {
		if folder == "." || strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}

// typeOf is the type of a path as a manifest has it.
func typeOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return typeFile
	case unix.S_IFDIR:
		return typeFolder
	case unix.S_IFLNK:
		return typeLink
	default:
		return fmt.Sprintf("special file of mode %o", mode)
	}
}
