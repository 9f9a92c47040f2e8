package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"syscall"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/manifest"
	"github.com/kopia/kopia/snapshot"
	"github.com/minio/minio-go/v7"
	"golang.org/x/sys/unix"
)

// Kind says what is wrong, so that a caller can decide what to do about it.
type Kind string

const (
	// KindInvalid means that an option is wrong: asking again changes nothing.
	KindInvalid Kind = "Invalid"
	// KindWrongPassword means that the password does not open the repository.
	KindWrongPassword Kind = "WrongPassword"
	// KindWrongRepository means that there is a repository, but not the expected one.
	KindWrongRepository Kind = "WrongRepository"
	// KindNotFound means that the repository, its folder or the snapshot does not exist.
	KindNotFound Kind = "NotFound"
	// KindBucketNotFound means that the bucket does not exist.
	KindBucketNotFound Kind = "BucketNotFound"
	// KindPathNotFound means that a path that is to be kept or restored is not in the source or the snapshot.
	KindPathNotFound Kind = "PathNotFound"
	// KindAlreadyExists means that Create found something where the repository should be made.
	KindAlreadyExists Kind = "AlreadyExists"
	// KindUnreachable means that the storage did not answer, or not in time. It may do so later.
	KindUnreachable Kind = "Unreachable"
	// KindAccessDenied means that the storage refuses these credentials.
	KindAccessDenied Kind = "AccessDenied"
	// KindNoSpace means that the storage, the target or the cache is full.
	KindNoSpace Kind = "NoSpace"
	// KindSourceUnreadable means that something of the source could not be read, so there is no snapshot.
	KindSourceUnreadable Kind = "SourceUnreadable"
	// KindSourceEmpty means that the source holds nothing to keep, so there is no snapshot.
	KindSourceEmpty Kind = "SourceEmpty"
	// KindHalfRestored means that a restore into the source has not ended, so that it may hold half of a snapshot.
	KindHalfRestored Kind = "HalfRestored"
	// KindTargetNotEmpty means that the target of a restore holds something.
	KindTargetNotEmpty Kind = "TargetNotEmpty"
	// KindTargetUnwritable means that the target of a restore does not take what should be written.
	KindTargetUnwritable Kind = "TargetUnwritable"
	// KindCorrupt means that data in the repository is damaged or missing.
	KindCorrupt Kind = "Corrupt"
	// KindCanceled means that the caller ended the work.
	KindCanceled Kind = "Canceled"
	// KindMassDeletion means that more snapshots would expire at once than the caller allows.
	KindMassDeletion Kind = "MassDeletion"
	// KindDumpFailed means that a command whose output is the source failed, or did not say that it ended well.
	KindDumpFailed Kind = "DumpFailed"
	// KindDumpLost means that such a command was cut off before it said how it ended.
	KindDumpLost Kind = "DumpLost"
	// KindSnapshotMissing means that the snapshot that a drill is about is not there, or was never verified.
	KindSnapshotMissing Kind = "SnapshotMissing"
	// KindSnapshotStale means that the snapshot that a drill is about is older than the newest one should be.
	KindSnapshotStale Kind = "SnapshotStale"
	// KindSnapshotDiffers means that the snapshot that a drill is about is of another run, volume or time than is known of it.
	KindSnapshotDiffers Kind = "SnapshotDiffers"
	// KindManifestMissing means that a snapshot has no manifest of its source to compare with.
	KindManifestMissing Kind = "ManifestMissing"
	// KindManifestDiffers means that the manifest of a snapshot is not the one that was written with it.
	KindManifestDiffers Kind = "ManifestDiffers"
	// KindNothingRestored means that a folder holds nothing, although its snapshot does.
	KindNothingRestored Kind = "NothingRestored"
	// KindNothingCompared means that there was no file to compare, so that nothing is proved.
	KindNothingCompared Kind = "NothingCompared"
	// KindFileMissing means that a file of the source is missing in a folder that was restored.
	KindFileMissing Kind = "FileMissing"
	// KindContentDiffers means that a file in such a folder holds something else than the source did, or is one too many.
	KindContentDiffers Kind = "ContentDiffers"
	// KindModeDiffers means that its mode is another one.
	KindModeDiffers Kind = "ModeDiffers"
	// KindLinkDiffers means that a symbolic link points elsewhere, or that there is one instead of something else.
	KindLinkDiffers Kind = "LinkDiffers"
	// KindInternal is everything else: a mistake in this program or in the library.
	KindInternal Kind = "Internal"
)

// Error is what every function of this package returns.
type Error struct {
	// Kind says what is wrong.
	Kind Kind
	// Doing says what was being done, such as "open the repository".
	Doing string
	// Err is the cause. Its text names no secret.
	Err error
}

func (e *Error) Error() string { return e.Doing + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of an error, and KindInternal for one that is not of this package.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return KindInternal
}

// fail makes an error of a kind.
func fail(kind Kind, doing, format string, arguments ...any) error {
	return &Error{Kind: kind, Doing: doing, Err: fmt.Errorf(format, arguments...)}
}

// storageError is an error of the storage itself. The library wraps it, and what comes out without one was an error in the
// data. It has no Unwrap: the library would look for an *os.PathError in it and hand out just that.
type storageError struct {
	kind Kind
	err  error
}

func (e *storageError) Error() string { return e.err.Error() }

// Is makes errors.Is look at the cause.
func (e *storageError) Is(target error) bool { return errors.Is(e.err, target) }

// storageKind says what an error of a storage is about.
func storageKind(err error) Kind {
	var response minio.ErrorResponse
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return KindCanceled
	case isNoSpace(err):
		return KindNoSpace
	case errors.As(err, &response):
		return responseKind(response)
	case errors.Is(err, blob.ErrInvalidCredentials), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EROFS):
		return KindAccessDenied
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR):
		return KindNotFound
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return KindUnreachable
	default:
		return KindUnreachable // a storage that answers nonsense, or a disk that cannot be read
	}
}

// responseKind says what an answer of an S3 server is about.
func responseKind(response minio.ErrorResponse) Kind {
	switch response.Code {
	case minio.NoSuchBucket, minio.InvalidBucketName:
		return KindBucketNotFound
	case "XMinioStorageFull", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded", "InsufficientStorage":
		return KindNoSpace
	}
	if refusesCredentials(response.Code) {
		return KindAccessDenied
	}
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return KindAccessDenied
	case http.StatusInsufficientStorage:
		return KindNoSpace
	default:
		return KindUnreachable
	}
}

// refusesCredentials tells which codes say that another attempt with the same credentials is refused too, with whatever status:
// versitygw has the last of them for a key that nobody has, and says 404.
func refusesCredentials(code string) bool {
	switch code {
	case minio.InvalidAccessKeyID, minio.SignatureDoesNotMatch, "InvalidToken", "ExpiredToken", minio.AccessDenied, "XAdminUserNotFound":
		return true
	default:
		return false
	}
}

// finalError is an answer of a server that no other attempt changes. The library goes on trying after anything that it does not
// know, and of what it knows this is the only error that means so.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }

func (e *finalError) Unwrap() error { return e.err }

// Is keeps the library from trying again.
func (e *finalError) Is(target error) bool { return target == blob.ErrInvalidCredentials }

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// classify gives an error of the library its kind, and otherwise when nothing is known about it. While data are read,
// otherwise is KindCorrupt: errors of the storage are known, so what remains are the data.
func classify(ctx context.Context, doing string, otherwise Kind, err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	// A context that ended because of the storage says more than what that led to.
	var ofStorage *storageError
	if errors.As(context.Cause(ctx), &ofStorage) {
		return &Error{Kind: ofStorage.kind, Doing: doing, Err: ofStorage}
	}
	return &Error{Kind: kindOfCause(ctx, otherwise, err), Doing: doing, Err: err}
}

// leastRoom is the room that the disk of the cache needs, in bytes: the library writes whole packs to it, of 20 MiB and a bit
// more.
const leastRoom = 32 << 20

// damaged gives an error of reading the repository its kind. What is not known to be of the storage is damage, unless the
// cache has no room: the library then takes for damaged what it could not write there.
func (r *Repository) damaged(ctx context.Context, doing string, err error) error {
	return withRoom(classify(ctx, doing, KindCorrupt, err), r.room())
}

// withRoom makes damage that a cache without room explains a lack of space. Room is in bytes.
func withRoom(err error, room uint64) error {
	var e *Error
	if !errors.As(err, &e) || e.Kind != KindCorrupt || room >= leastRoom {
		return err
	}
	return &Error{Kind: KindNoSpace, Doing: e.Doing, Err: fmt.Errorf("the disk of the cache is full, or nearly so: %w", e.Err)}
}

// room is how many bytes the cache can still get. A repository in a folder has no cache.
func (r *Repository) room() uint64 {
	var disk unix.Statfs_t
	if r.storage.folder != "" || unix.Statfs(r.work, &disk) != nil {
		return math.MaxUint64
	}
	return disk.Bavail * uint64(disk.Bsize)
}

func kindOfCause(ctx context.Context, otherwise Kind, err error) Kind {
	var ofStorage *storageError
	var ofSource *sourceError
	switch {
	case ctx.Err() != nil, errors.Is(err, context.Canceled):
		return KindCanceled
	case errors.Is(err, repo.ErrInvalidPassword):
		return KindWrongPassword
	case errors.Is(err, snapshot.ErrSnapshotNotFound), errors.Is(err, manifest.ErrNotFound):
		return KindNotFound
	case errors.As(err, &ofStorage):
		return ofStorage.kind
	case errors.As(err, &ofSource):
		return KindSourceUnreadable
	case isNoSpace(err): // of the cache
		return KindNoSpace
	default:
		return otherwise
	}
}
