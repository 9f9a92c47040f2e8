package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"

	kopiafs "github.com/kopia/kopia/fs"
	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/object"
	"github.com/kopia/kopia/snapshot"
	"github.com/kopia/kopia/snapshot/snapshotfs"
)

// StreamOptions say what to keep instead of a folder: what a stream gives, as one file.
type StreamOptions struct {
	// Name is the name of the file, which has mode 0600 and belongs to the user of this process. Default: dump.
	Name string
	// Open opens the stream. It is called once, and not at all when there is a snapshot of the run already. The stream has
	// to fail when the context ends: nothing else wakes up who reads it.
	Open func(context.Context) (Stream, error)
}

// Stream is a source that is read once, from its beginning to its end, of any size.
type Stream interface {
	io.Reader
	// Complete is called after the last byte. It returns nil only when the source has said itself that it gave everything
	// and that all is well. That no more bytes come says nothing: whoever gave them may have been killed.
	Complete() error
}

// DefaultStreamName is the name of the file that a stream is kept as.
const DefaultStreamName = "dump"

// streamBuffer is how much of a stream is read at a time.
const streamBuffer = 256 << 10

// maxIdleReads is how many reads in a row may give neither a byte nor an error.
const maxIdleReads = 100

// streamName returns the name of the file, and refuses one that no file can have, or that a restore has a use of its own for.
func (o StreamOptions) streamName() (string, error) {
	name := o.Name
	if name == "" {
		name = DefaultStreamName
	}
	encoded := encodeName(name)
	if _, err := decodeName(encoded); err != nil || len(name) > 255 || isMark(name) {
		return "", fail(KindInvalid, "open the source", "%q cannot be the name of a file", name)
	}
	return encoded, nil
}

// snapshotStream makes a snapshot of a stream.
func (r *Repository) snapshotStream(ctx context.Context, options SnapshotOptions) (SnapshotResult, error) {
	const doing = "make the snapshot"
	name, err := options.Stream.streamName()
	if err != nil {
		return SnapshotResult{}, err
	}
	if _, err := r.lost(ctx); err != nil {
		return SnapshotResult{}, err
	}
	stream, err := options.Stream.Open(ctx)
	if err != nil {
		return SnapshotResult{}, classify(ctx, doing, KindInternal, streamError(ctx, name, err))
	}
	before := r.storage.written.Load()
	var made *snapshot.Manifest
	var stats Stats
	err = r.write(ctx, doing, func(ctx context.Context, w repo.DirectRepositoryWriter) error {
		k := keeper{options: options, writer: w}
		var read manifestEntry
		var err error
		if made, stats, read, err = k.uploadStream(ctx, name, stream); err != nil {
			return err
		}
		return k.save(ctx, made, stats, nil, &sourceManifest{entries: []manifestEntry{read}})
	})
	if err != nil {
		return SnapshotResult{}, classify(ctx, doing, KindInternal, err)
	}
	return SnapshotResult{Snapshot: toSnapshot(made, stats), AddedBytes: r.storage.written.Load() - before}, nil
}

// uploadStream writes the file, and the folder that holds it. The library's own upload is not used: it knows files of a size,
// and what it keeps of interrupted work is of no use here, as nobody can read a stream from its middle. The
// entry is for the manifest of the source, with the checksum of the bytes as the stream gave them.
func (k *keeper) uploadStream(ctx context.Context, name string, stream Stream) (*snapshot.Manifest, Stats, manifestEntry, error) {
	const doing = "make the snapshot"
	begun := kopiafs.UTCTimestampFromTime(k.writer.Time())
	sum := sha256.New()
	id, size, err := k.copyStream(ctx, name, stream, sum)
	if err != nil {
		return nil, Stats{}, manifestEntry{}, err
	}
	if size == 0 && !k.options.AllowEmpty {
		return nil, Stats{}, manifestEntry{}, fail(KindSourceEmpty, doing, "the source gave nothing")
	}
	ended := kopiafs.UTCTimestampFromTime(k.writer.Time())
	file := newEntry(name, snapshot.EntryTypeFile, id, ended)
	file.FileSize = size
	file.UserID, file.GroupID = uint32(os.Geteuid()), uint32(os.Getegid())
	var data snapshotfs.DirManifestBuilder
	data.AddEntry(file)
	folder := data.Build(begun, "")
	folderID, err := snapshotfs.WriteDirManifest(ctx, k.writer, dataName, folder, metadataCompression)
	if err != nil {
		return nil, Stats{}, manifestEntry{}, err
	}
	read := manifestEntry{
		Path: name, Type: typeFile, Size: size, Mode: uint32(file.Permissions), SHA256: hex.EncodeToString(sum.Sum(nil)),
	}
	root := newEntry(dataName, snapshot.EntryTypeDirectory, folderID, begun)
	root.DirSummary = folder.Summary
	return &snapshot.Manifest{
		Source: sourceOf(k.options.Volume), StartTime: begun, EndTime: ended, RootEntry: root,
		Stats: snapshot.Stats{TotalFileCount: 1, TotalFileSize: size, TotalDirectoryCount: 1},
	}, Stats{Files: 1, Bytes: size, Stream: true}, read, nil
}

// copyStream writes all that a stream gives, which the stream has to say was all. sum gets the bytes as they were read.
func (k *keeper) copyStream(ctx context.Context, name string, stream Stream, sum hash.Hash) (object.ID, int64, error) {
	w := k.writer.NewObjectWriter(ctx, object.WriterOptions{
		Description: "STREAM:" + name, Compressor: contentCompression, MetadataCompressor: metadataCompression, AsyncWrites: 1,
	})
	defer w.Close()
	meter := meterOrNone(k.options.Meter)
	buffer := make([]byte, streamBuffer)
	var size int64
	for idle := 0; ; {
		if err := ctx.Err(); err != nil {
			return object.EmptyID, size, err
		}
		n, err := stream.Read(buffer)
		if n > 0 {
			_, _ = sum.Write(buffer[:n]) // a hash never fails
			if _, err := w.Write(buffer[:n]); err != nil {
				return object.EmptyID, size, err
			}
			size += int64(n)
			meter.bytes.Add(int64(n))
			idle = -1
		}
		if idle++; err == nil && idle > maxIdleReads {
			err = io.ErrNoProgress
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return object.EmptyID, size, streamError(ctx, name, err)
		}
	}
	if err := stream.Complete(); err != nil {
		return object.EmptyID, size, streamError(ctx, name, err)
	}
	if err := ctx.Err(); err != nil {
		return object.EmptyID, size, err
	}
	id, err := w.Result()
	if err == nil {
		meter.files.Add(1)
	}
	return id, size, err
}

// streamError tells an error of the source from one of the repository. A stream that fails because the context has ended is
// not to blame for it.
func streamError(ctx context.Context, name string, err error) error {
	var known *Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &known):
		return err
	default:
		return &sourceError{path: name, err: err}
	}
}
