package engine

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/blob/filesystem"
	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"
)

// storage is what is between the library and the files or objects of a repository.
type storage struct {
	blob.Storage

	timeout time.Duration
	// folder is synced to disk; empty for what is durable when it is acknowledged.
	folder string
	// clock gives files their time when it is not the machine's. Nil otherwise.
	clock clock.PassiveClock

	written atomic.Int64 // bytes in files or objects that were written
	deleted atomic.Int64 // bytes are not known; files or objects

	mu     sync.Mutex
	dirty  bool // something was written and not synced
	failed int  // how many calls have failed since the last that has not
	giveUp context.CancelCauseFunc
}

// maxFailed is after how many failed calls in a row, each with retries of its own, the work ends. The library would try
// some of them for ever.
const maxFailed = 3

// guard returns a context that ends when the storage keeps failing, with its error as the cause.
func (s *storage) guard(ctx context.Context) (guarded context.Context, done func()) {
	guarded, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed, s.giveUp = 0, cancel
	return guarded, func() { cancel(nil) }
}

// note counts failed calls.
func (s *storage) note(err error) {
	var failure *storageError
	s.mu.Lock()
	defer s.mu.Unlock()
	if !errors.As(err, &failure) {
		s.failed = 0
		return
	}
	s.failed++
	lasting := failure.kind != KindUnreachable // no waiting helps
	if (lasting || s.failed >= maxFailed) && s.giveUp != nil {
		s.giveUp(failure)
	}
}

// openStorage connects to where a repository is or shall be. Only with create are folders made.
func openStorage(ctx context.Context, options Options, create bool) (*storage, error) {
	const doing = "open the storage"
	if err := options.Location.check(); err != nil {
		return nil, err
	}
	s := &storage{timeout: options.OperationTimeout}
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()

	var err error
	if options.Location.S3 != nil {
		s.Storage, err = openBucket(options.Location.S3)
	} else {
		s.folder = options.Location.Filesystem.Path
		s.clock = options.Clock
		s.Storage, err = openFolder(limited, *options.Location.Filesystem, create)
	}
	if err != nil {
		return nil, classify(ctx, doing, KindUnreachable, s.typed(err))
	}
	return s, nil
}

func openFolder(ctx context.Context, folder Filesystem, create bool) (blob.Storage, error) {
	options := &filesystem.Options{Path: folder.Path, DirectoryMode: 0o700, FileMode: 0o600}
	if folder.Shared {
		options.DirectoryMode, options.FileMode = 0o777, 0o666
	}
	if create {
		if err := os.MkdirAll(folder.Path, options.DirectoryMode); err != nil {
			return nil, err
		}
	}
	return filesystem.New(ctx, options, create)
}

// typed marks an error as one of the storage. What the library decides by stays what it is, and so does an error of a folder
// that is not one of the system: then a file is not as it should be.
func (s *storage) typed(err error) error {
	var already *storageError
	var ofSystem syscall.Errno
	switch {
	case err == nil, errors.As(err, &already),
		errors.Is(err, blob.ErrBlobNotFound), errors.Is(err, blob.ErrInvalidRange),
		errors.Is(err, blob.ErrSetTimeUnsupported), errors.Is(err, blob.ErrUnsupportedPutBlobOption):
		return err
	case s.folder != "" && !errors.As(err, &ofSystem) && !errors.Is(err, context.DeadlineExceeded):
		return err
	default:
		return &storageError{kind: storageKind(err), err: err}
	}
}

// limited runs a call of the storage and ends it when it takes too long.
func (s *storage) limited(ctx context.Context, call func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := call(limited)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	err = s.typed(err)
	s.note(err)
	return err
}

func (s *storage) GetBlob(ctx context.Context, id blob.ID, offset, length int64, output blob.OutputBuffer) error {
	return s.limited(ctx, func(ctx context.Context) error { return s.Storage.GetBlob(ctx, id, offset, length, output) })
}

func (s *storage) GetMetadata(ctx context.Context, id blob.ID) (blob.Metadata, error) {
	var metadata blob.Metadata
	err := s.limited(ctx, func(ctx context.Context) (err error) {
		metadata, err = s.Storage.GetMetadata(ctx, id)
		return err
	})
	return metadata, err
}

func (s *storage) PutBlob(ctx context.Context, id blob.ID, data blob.Bytes, options blob.PutOptions) error {
	if s.clock != nil {
		options.SetModTime = s.clock.Now()
	}
	s.mu.Lock()
	s.dirty = true
	s.mu.Unlock()
	// The library asks for the time of an object even when writing it failed, and then says that it is not found.
	modified := options.GetModTime
	options.GetModTime = nil
	if err := s.limited(ctx, func(ctx context.Context) error { return s.Storage.PutBlob(ctx, id, data, options) }); err != nil {
		return err
	}
	s.written.Add(int64(data.Length()))
	if modified == nil {
		return nil
	}
	metadata, err := s.GetMetadata(ctx, id)
	*modified = metadata.Timestamp
	return err
}

// DeleteBlob first brings to disk what replaces the deleted.
func (s *storage) DeleteBlob(ctx context.Context, id blob.ID) error {
	if err := s.sync(); err != nil {
		return err
	}
	if err := s.limited(ctx, func(ctx context.Context) error { return s.Storage.DeleteBlob(ctx, id) }); err != nil {
		return err
	}
	s.deleted.Add(1)
	return nil
}

func (s *storage) ListBlobs(ctx context.Context, prefix blob.ID, callback func(blob.Metadata) error) error {
	var refused error
	err := s.limited(ctx, func(ctx context.Context) error {
		return s.Storage.ListBlobs(ctx, prefix, func(metadata blob.Metadata) error {
			refused = callback(metadata)
			return refused
		})
	})
	if refused != nil {
		return refused
	}
	return err
}

// sync brings all that was written to disk. The library writes files without it: a machine that loses power would lose what
// was reported as kept.
func (s *storage) sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.folder == "" || !s.dirty {
		return nil
	}
	if err := syncFilesystem(s.folder); err != nil {
		return s.typed(err)
	}
	s.dirty = false
	return nil
}

// syncFilesystem writes the whole file system of a folder to disk, and says when that failed.
func syncFilesystem(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// The library opens a storage by the type in a configuration file. This type stands for the storage in the context: so no
// credential is written to a file, and the library uses the storage above.
const storageType = "slipway"

type storageKey struct{}

type noConfiguration struct{}

// registerStorage tells the library of the type, whose table is the library's and global.
var registerStorage = sync.OnceFunc(func() {
	blob.AddSupportedStorage(storageType, noConfiguration{}, func(ctx context.Context, _ *noConfiguration, _ bool) (blob.Storage, error) {
		s, ok := ctx.Value(storageKey{}).(*storage)
		if !ok {
			return nil, errors.New("the context has no storage")
		}
		return s, nil
	})
})
