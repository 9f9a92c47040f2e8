package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/object"
	"github.com/kopia/kopia/snapshot"
)

// Beside the tree a snapshot holds a manifest of its source: totals, and a sample of paths with the checksum of the bytes as
// they were read. What is stored is not asked for it, so that a restore can be compared with the source, and not with the
// repository's own idea of it. Compare does that.

const (
	// manifestName is the name of the manifest in the root folder of a snapshot. Older snapshots have none.
	manifestName = "manifest.jsonl"
	// manifestTag holds the digest of the manifest.
	manifestTag = "tag:slipway-manifest"
	// manifestVersion changes when an older program could not make sense of the file.
	manifestVersion = 1
	// maxManifest bounds the size of a manifest that is read, in bytes: so many paths of the greatest length.
	maxManifest = (maxSmall + maxLarge + maxOthers + 1) * (6*4096 + 256)
)

// manifestHeader is the first line.
type manifestHeader struct {
	Version int `json:"version"`
	// Files, Folders, Links, Pipes and Bytes are those of Stats.
	Files   int64 `json:"files"`
	Folders int64 `json:"folders"`
	Links   int64 `json:"links"`
	Pipes   int64 `json:"pipes"`
	Bytes   int64 `json:"bytes"`
	// Bounds tell for each class of the sample which keys are not in it. The next snapshot keeps to them, so that the sample
	// stays the same and files that are unchanged need not be read for it.
	Bounds map[string]sampleBound `json:"bounds,omitempty"`
	// Lines is how many follow.
	Lines int `json:"lines"`
}

// sampleBound is where a class of the sample ends.
type sampleBound struct {
	// Key is the smallest key that is not in it.
	Key string `json:"key"`
	// Count is how many paths were in it when that was decided.
	Count int `json:"count"`
}

// The types of a manifestEntry.
const (
	typeFile   = "file"
	typeFolder = "folder"
	typeLink   = "link"
)

// manifestEntry is one path of the sample.
type manifestEntry struct {
	// Path is relative to the source, each element as encodeName returns it. The source itself is not among them.
	Path string `json:"path"`
	Type string `json:"type"`
	Size int64  `json:"size,omitempty"`
	// Mode has the permission bits as in chmod(2). That of a link means nothing.
	Mode uint32 `json:"mode"`
	// SHA256 is the checksum of the bytes that were read, or of the target of a link. Empty, of a file: it changed while it
	// was read.
	SHA256 string `json:"sha256,omitempty"`
	// Changed reports whether it did.
	Changed bool `json:"changed,omitempty"`
}

// sourceManifest is a manifest that was read.
type sourceManifest struct {
	header  manifestHeader
	entries []manifestEntry
}

// writeManifest writes the manifest, and returns its entry and its digest.
func (k *keeper) writeManifest(ctx context.Context, made *snapshot.Manifest, stats Stats, source *sourceManifest) (*snapshot.DirEntry, string, error) {
	raw, err := encodeManifest(stats, source)
	if err != nil {
		return nil, "", err
	}
	w := k.writer.NewObjectWriter(ctx, object.WriterOptions{
		Description: "FILE:" + manifestName, Compressor: metadataCompression, MetadataCompressor: metadataCompression,
	})
	defer w.Close()
	if _, err := w.Write(raw); err != nil {
		return nil, "", err
	}
	id, err := w.Result()
	if err != nil {
		return nil, "", err
	}
	e := newEntry(manifestName, snapshot.EntryTypeFile, id, made.StartTime)
	e.FileSize = int64(len(raw))
	return e, digestOf(raw), nil
}

// encodeManifest returns the manifest, in the order of the paths, so that an unchanged source gives the same bytes.
// Totals are those of stats, whatever the header of the source says.
func encodeManifest(stats Stats, source *sourceManifest) ([]byte, error) {
	entries := slices.Clone(source.entries)
	slices.SortFunc(entries, func(a, b manifestEntry) int { return cmp.Compare(a.Path, b.Path) })
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	header := manifestHeader{
		Version: manifestVersion, Files: stats.Files, Folders: stats.Folders, Links: stats.Links, Pipes: stats.Pipes, Bytes: stats.Bytes,
		Bounds: source.header.Bounds, Lines: len(entries),
	}
	if err := encoder.Encode(header); err != nil {
		return nil, err
	}
	for i := range entries {
		if err := encoder.Encode(entries[i]); err != nil {
			return nil, err
		}
	}
	return raw.Bytes(), nil
}

func digestOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// errDigest says that a manifest is not the one that it should be.
var errDigest = errors.New("its digest is another one")

// readManifest reads the manifest of a snapshot. Nothing of one that has another digest is looked at.
func readManifest(ctx context.Context, rep repo.Repository, e *snapshot.DirEntry, digest string) (*sourceManifest, error) {
	r, err := rep.OpenObject(ctx, e.ObjectID)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.Length() > maxManifest {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", manifestName, r.Length(), maxManifest)
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if digestOf(raw) != digest {
		return nil, fmt.Errorf("%s: %w", manifestName, errDigest)
	}
	return decodeManifest(raw)
}

func decodeManifest(raw []byte) (*sourceManifest, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	m := &sourceManifest{}
	if err := decoder.Decode(&m.header); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	if m.header.Version != manifestVersion {
		return nil, fmt.Errorf("%s has version %d, this program knows %d", manifestName, m.header.Version, manifestVersion)
	}
	for decoder.More() {
		var e manifestEntry
		if err := decoder.Decode(&e); err != nil {
			return nil, fmt.Errorf("%s: %w", manifestName, err)
		}
		m.entries = append(m.entries, e)
	}
	if len(m.entries) != m.header.Lines {
		return nil, fmt.Errorf("%s has %d lines, it should have %d", manifestName, len(m.entries), m.header.Lines)
	}
	return m, nil
}

// previousManifest is that of a snapshot whose contents are reused, or nil where it has none that can be read: then the files
// of the sample are read again.
func (k *keeper) previousManifest(ctx context.Context, m *snapshot.Manifest, e *snapshot.DirEntry) *sourceManifest {
	if e == nil {
		return nil
	}
	manifest, err := readManifest(ctx, k.writer, e, m.Tags[manifestTag])
	if err != nil {
		return nil
	}
	return manifest
}
