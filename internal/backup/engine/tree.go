package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	kopiafs "github.com/kopia/kopia/fs"
	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/object"
	"github.com/kopia/kopia/snapshot"
)

// readFolder reads a folder as it is stored. The library's own way to do so changes the times of folders.
func readFolder(ctx context.Context, rep repo.Repository, id object.ID) ([]*snapshot.DirEntry, error) {
	r, err := rep.OpenObject(ctx, id)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var manifest snapshot.DirManifest
	if err := json.NewDecoder(r).Decode(&manifest); err != nil {
		return nil, fmt.Errorf("read the folder %s: %w", id, err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, err
	}
	for _, e := range manifest.Entries {
		if e == nil {
			return nil, fmt.Errorf("the folder %s has an empty entry", id)
		}
	}
	return manifest.Entries, nil
}

// parts are the entries of a snapshot's root.
type parts struct {
	data       *snapshot.DirEntry
	attributes *snapshot.DirEntry
	manifest   *snapshot.DirEntry // nil in an older snapshot
}

// readParts reads the root of a snapshot.
func readParts(ctx context.Context, rep repo.Repository, root *snapshot.DirEntry) (parts, error) {
	var p parts
	if root == nil {
		return p, fmt.Errorf("the snapshot has no root")
	}
	entries, err := readFolder(ctx, rep, root.ObjectID)
	if err != nil {
		return p, err
	}
	for _, e := range entries {
		switch {
		case e.Name == dataName && e.Type == snapshot.EntryTypeDirectory:
			p.data = e
		case e.Name == attributesName && e.Type == snapshot.EntryTypeFile:
			p.attributes = e
		case e.Name == manifestName && e.Type == snapshot.EntryTypeFile:
			p.manifest = e
		}
	}
	if p.data == nil || p.attributes == nil {
		return p, fmt.Errorf("the snapshot does not hold %s and %s", dataName, attributesName)
	}
	return p, nil
}

// readAttributesOf reads the file beside the tree.
func readAttributesOf(ctx context.Context, rep repo.Repository, p parts, each func(attributes) error) (attributesHeader, error) {
	r, err := rep.OpenObject(ctx, p.attributes.ObjectID)
	if err != nil {
		return attributesHeader{}, err
	}
	defer r.Close()
	return readAttributes(r, each)
}

// newEntry is an entry that is not of the source.
func newEntry(name string, kind snapshot.EntryType, id object.ID, modified kopiafs.UTCTimestamp) *snapshot.DirEntry {
	e := &snapshot.DirEntry{Name: name, Type: kind, Permissions: 0o600, ModTime: modified, ObjectID: id}
	if kind == snapshot.EntryTypeDirectory {
		e.Permissions = 0o700
	}
	return e
}

// countingWriter counts bytes.
type countingWriter struct{ n int64 }

func (c *countingWriter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}
