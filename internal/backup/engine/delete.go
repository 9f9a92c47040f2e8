package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/format"
	"golang.org/x/sys/unix"
)

// DeleteResult is what came of Delete.
type DeleteResult struct {
	// Deleted is how many objects or files were deleted.
	Deleted int64 `json:"deleted"`
	// Foreign is how many files in the folder, or folders in the prefix, are not of the repository. They stay.
	Foreign int64 `json:"foreign"`
}

// Delete deletes a repository with all its snapshots, for ever. ExpectedID has to be the ID of what is there; a password is
// not needed. What tells that it is a repository goes last, so a Delete that was interrupted can be repeated.
func Delete(ctx context.Context, options Options) (DeleteResult, error) {
	const doing = "delete the repository"
	var result DeleteResult
	if options.ExpectedID == "" {
		return result, fail(KindInvalid, doing, "the ID of the repository is missing")
	}
	options.Password = "not needed"
	options, err := options.withDefaults()
	if err != nil {
		return result, err
	}
	st, err := openStorage(ctx, options, false)
	if err != nil {
		return result, err
	}
	defer st.Close(ctx)
	id, err := readID(ctx, st)
	if err == nil {
		err = expect(id, options.ExpectedID)
	}
	if err != nil {
		return result, err
	}
	var all []blob.ID
	err = st.ListBlobs(ctx, "", func(m blob.Metadata) error {
		switch {
		case strings.Contains(string(m.BlobID), "/"): // a folder of somebody else
			result.Foreign++
		case m.BlobID != format.KopiaRepositoryBlobID:
			all = append(all, m.BlobID)
		}
		return nil
	})
	if err != nil {
		return result, classify(ctx, doing, KindUnreachable, err)
	}
	for _, id := range append(all, format.KopiaRepositoryBlobID) {
		if err := st.DeleteBlob(ctx, id); err != nil {
			return result, classify(ctx, doing, KindUnreachable, err)
		}
	}
	result.Deleted = st.deleted.Load()
	if st.folder != "" {
		result.Foreign, err = removeFolders(st.folder)
	}
	return result, classify(ctx, doing, KindUnreachable, err)
}

// RefuseOlder fails with KindWrongRepository where the repository was made before a moment, or holds a snapshot, or a part of one,
// from before. It goes by the time that the storage has of what tells that it is a repository: a copy of a repository is younger
// than its snapshots. The zero time refuses nothing.
func (r *Repository) RefuseOlder(ctx context.Context, moment time.Time) error {
	if moment.IsZero() {
		return nil
	}
	const doing = "make sure that the repository is not an older one"
	ctx, done := r.storage.guard(ctx)
	defer done()
	made, err := r.storage.GetMetadata(ctx, format.KopiaRepositoryBlobID)
	if err != nil {
		return classify(ctx, doing, KindUnreachable, err)
	}
	if made.Timestamp.Before(moment) {
		return fail(KindWrongRepository, doing, "it was made at %s, before %s", timeTag(made.Timestamp), timeTag(moment))
	}
	all, err := r.manifests(ctx)
	if err != nil {
		return err
	}
	for _, m := range all {
		if begun(m).Before(moment) {
			return fail(KindWrongRepository, doing, "it holds a snapshot of %s, from before %s", timeTag(begun(m)), timeTag(moment))
		}
	}
	return nil
}

// removeFolders removes what the library left in a folder, and the folders that are empty then. It counts what stays.
func removeFolders(root string) (foreign int64, err error) {
	var folders []string
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return ignoreMissing(err)
		case e.IsDir():
			folders = append(folders, path)
			return nil
		case e.Name() == ".shards" || temporaryFile.MatchString(e.Name()):
			return ignoreMissing(os.Remove(path))
		default:
			foreign++
			return nil
		}
	})
	for i := len(folders) - 1; i >= 0 && err == nil; i-- {
		err = ignoreNotEmpty(os.Remove(folders[i]))
	}
	return foreign, err
}

// ignoreNotEmpty accepts a folder that something else lives in, or that is the mount point of a volume.
func ignoreNotEmpty(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, unix.EBUSY) {
		return nil
	}
	return err
}
