package engine

import (
	"context"
	"errors"
	"path"
	"strings"
	"sync"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/manifest"
	"github.com/kopia/kopia/snapshot"
)

// sourcePath is the path under which the library and its program know a source. That of a volume follows it.
const sourcePath = "/" + dataName

func sourceOf(volume string) snapshot.SourceInfo {
	return snapshot.SourceInfo{Host: hostName, UserName: userName, Path: path.Join(sourcePath, volume)}
}

// volumeOf returns the name of a volume from its source, and whether the source is one of ours.
func volumeOf(source snapshot.SourceInfo) (volume string, ours bool) {
	volume = strings.TrimPrefix(strings.TrimPrefix(source.Path, sourcePath), "/")
	return volume, source == sourceOf(volume)
}

// uploadWriter is what the library writes to while it uploads. It keeps the library from removing snapshots, which it would
// do at a checkpoint by rules of its own. And it keeps it from writing when the upload is over: a checkpoint that has begun
// by then goes on in a goroutine of its own, which nobody waits for.
type uploadWriter struct {
	repo.DirectRepositoryWriter

	mu   sync.Mutex
	over bool
}

var errOver = errors.New("the upload is over")

// end waits for the manifest that is being written, and refuses every other one.
func (w *uploadWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}

// DeleteManifest removes nothing.
func (w *uploadWriter) DeleteManifest(context.Context, manifest.ID) error { return nil }

// PutManifest writes a manifest unless the upload is over.
func (w *uploadWriter) PutManifest(ctx context.Context, labels map[string]string, payload any) (manifest.ID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return "", errOver
	}
	return w.DirectRepositoryWriter.PutManifest(ctx, labels, payload)
}

// Flush makes durable what was written unless the upload is over.
func (w *uploadWriter) Flush(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return errOver
	}
	return w.DirectRepositoryWriter.Flush(ctx)
}
