package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	kopiafs "github.com/kopia/kopia/fs"
	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/content"
	"github.com/kopia/kopia/repo/object"
	"github.com/kopia/kopia/snapshot"
	"golang.org/x/sys/unix"
)

// unreadable is an entry of which not even the attributes could be read.
type unreadable struct {
	*entry
	err error
}

// ErrorInfo says why.
func (u *unreadable) ErrorInfo() error { return u.err }

// symlink is a symbolic link of the source.
type symlink struct {
	*entry
	target string
}

// Readlink returns where the link points, byte by byte.
func (l *symlink) Readlink(context.Context) (string, error) { return l.target, nil }

// Resolve is not needed: a link is kept, not what it points to.
func (l *symlink) Resolve(context.Context) (kopiafs.Entry, error) {
	return nil, errors.New("a symbolic link is not followed")
}

func readLink(folder int, name string, size int64) (string, error) {
	for length := max(size, 255) + 1; ; length *= 2 {
		target := make([]byte, length)
		n, err := unix.Readlinkat(folder, name, target)
		if err != nil {
			return "", err
		}
		if int64(n) < length {
			return string(target[:n]), nil
		}
	}
}

// file is a regular file of the source.
type file struct {
	*entry
	previous []loadedFolder
}

var (
	_ kopiafs.File              = (*file)(nil)
	_ snapshot.HasDirEntryOrNil = (*file)(nil)
)

// DirEntryOrNil is how the library asks whether the content is in the repository already.
func (f *file) DirEntryOrNil(ctx context.Context) (*snapshot.DirEntry, error) {
	return f.source.previous.find(ctx, f), nil
}

// Open opens the file. What is read ends where the file ended at this moment, so that one that grows has an end.
func (f *file) Open(context.Context) (kopiafs.Reader, error) {
	opened, err := f.source.open(f.relative, os.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, &sourceError{path: f.relative, err: f.source.opening(err)}
	}
	if err := f.opened(opened); err != nil {
		return nil, errors.Join(&sourceError{path: f.relative, err: err}, opened.Close())
	}
	return &reader{file: f, opened: opened, SectionReader: io.NewSectionReader(opened, 0, f.Size()), digest: f.source.sampler.digest(f.entry)}, nil
}

// opened brings the attributes up to date with the open file. A program that writes a new file and renames it leaves another
// file under the name, which is what we read then.
func (f *file) opened(opened *os.File) error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(opened.Fd()), &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return errReplaced
	}
	if inodeOf(stat) != inodeOf(f.now()) {
		info, err := f.source.root.Lstat(f.relative)
		if err != nil {
			return f.source.opening(err)
		}
		if !info.Mode().IsRegular() {
			return errReplaced
		}
	}
	f.set(stat)
	return nil
}

// reader reads a file of the source.
type reader struct {
	*io.SectionReader
	file   *file
	opened *os.File
	digest *digester
}

// Entry returns the file.
func (r *reader) Entry() (kopiafs.Entry, error) { return r.file, nil }

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.SectionReader.Read(p)
	r.digest.write(p[:n])
	if err != nil && !errors.Is(err, io.EOF) {
		err = &sourceError{path: r.file.relative, err: err}
	}
	return n, err
}

// Seek makes the checksum worthless, which is of the whole file. The library does not use it for what we ask of it.
func (r *reader) Seek(offset int64, whence int) (int64, error) {
	r.digest.seek()
	return r.SectionReader.Seek(offset, whence)
}

// Close notes whether the file changed while it was read.
func (r *reader) Close() error {
	var stat unix.Stat_t
	before := r.file.now()
	err := unix.Fstat(int(r.opened.Fd()), &stat)
	changed := err == nil && (stat.Mtim != before.Mtim || stat.Size != before.Size)
	if changed {
		r.file.source.changed.Add(1)
	}
	r.digest.end(changed || err != nil)
	return r.opened.Close()
}

// extended notes the extended attributes of a name in an open folder, or with an empty name of the folder itself.
func (s *source) extended(folder int, name, relative string) error {
	if s.collector == nil {
		return nil
	}
	// There is no system call for a name in an open folder. /proc leads to the folder without looking at its path again.
	at := fmt.Sprintf("/proc/self/fd/%d/%s", folder, name)
	names, err := readWhole(func(buffer []byte) (int, error) { return unix.Llistxattr(at, buffer) })
	if noAttributes(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list extended attributes: %w", err)
	}
	values := map[string][]byte{}
	for attribute := range strings.SplitSeq(string(names), "\x00") {
		if !keepsExtended(attribute) {
			continue
		}
		value, err := readWhole(func(buffer []byte) (int, error) { return unix.Lgetxattr(at, attribute, buffer) })
		if noAttributes(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the extended attribute %s: %w", attribute, err)
		}
		values[attribute] = value
	}
	s.collector.extended(encodePath(relative), values)
	return nil
}

// noAttributes reports whether there are none, or none that we may read: then the file cannot be read either, which is reported.
func noAttributes(err error) bool {
	return errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)
}

// keepsExtended reports whether an extended attribute belongs to the data. Labels of SELinux and the like belong to the
// machine, which sets them anew.
func keepsExtended(name string) bool {
	switch name {
	case "system.posix_acl_access", "system.posix_acl_default", "security.capability":
		return true
	default:
		return strings.HasPrefix(name, "user.")
	}
}

// readWhole calls for a value whose length may change between two calls.
func readWhole(call func([]byte) (int, error)) ([]byte, error) {
	for size := 256; ; size *= 4 {
		buffer := make([]byte, size)
		n, err := call(buffer)
		if errors.Is(err, unix.ERANGE) && size < 1<<20 {
			continue
		}
		if err != nil {
			return nil, err
		}
		return buffer[:n], nil
	}
}

// reuse finds contents that earlier snapshots hold, so that an unchanged file is not read again.
type reuse struct {
	rep              repo.Repository
	lost             map[content.ID]bool
	ignoreChangeTime bool
	reused           func(bytes int64)
}

func (r *reuse) isLost(id content.ID) bool { return r.lost[id] }

// previousFolder is a folder in an earlier snapshot.
type previousFolder struct {
	object object.ID
	of     time.Time // what moment that snapshot is of: later writes are not in it
}

type loadedFolder struct {
	of      time.Time
	entries map[string]*snapshot.DirEntry
}

// clockSlack is by how much the clocks of two machines may differ: the one that wrote a file, and the one that made the
// earlier snapshot.
const clockSlack = 15 * time.Minute

// load reads folders of earlier snapshots. One that cannot be read is of no use; Verify will tell.
func (r *reuse) load(ctx context.Context, folders []previousFolder) []loadedFolder {
	var loaded []loadedFolder
	for _, f := range folders {
		entries, err := readFolder(ctx, r.rep, f.object)
		if err != nil {
			continue
		}
		byName := make(map[string]*snapshot.DirEntry, len(entries))
		for _, e := range entries {
			byName[e.Name] = e
		}
		loaded = append(loaded, loadedFolder{of: f.of, entries: byName})
	}
	return loaded
}

// below returns the folders of a name.
func below(folders []loadedFolder, name string) []previousFolder {
	var found []previousFolder
	for _, f := range folders {
		if e := f.entries[name]; e != nil && e.Type == snapshot.EntryTypeDirectory {
			found = append(found, previousFolder{object: e.ObjectID, of: f.of})
		}
	}
	return found
}

// find returns the entry of a file whose content an earlier snapshot holds, or nil when it has to be read.
func (r *reuse) find(ctx context.Context, f *file) *snapshot.DirEntry {
	stat := f.now()
	for _, folder := range f.previous {
		e := folder.entries[f.Name()]
		if e == nil || e.Type != snapshot.EntryTypeFile || e.FileSize != stat.Size || !e.ModTime.ToTime().Equal(modTime(stat)) {
			continue
		}
		changed := time.Unix(stat.Ctim.Unix())
		if !r.ignoreChangeTime && changed.After(folder.of.Add(-clockSlack)) {
			continue
		}
		if ids, err := r.rep.VerifyObject(ctx, e.ObjectID); err != nil || slices.ContainsFunc(ids, r.isLost) {
			continue // keep it anew
		}
		if !f.source.sampler.reuse(f, folder.of) {
			continue
		}
		r.reused(stat.Size)
		return &snapshot.DirEntry{
			Name:        f.Name(),
			Type:        snapshot.EntryTypeFile,
			Permissions: snapshot.Permissions(f.Mode() & kopiafs.ModBits),
			FileSize:    stat.Size,
			ModTime:     kopiafs.UTCTimestampFromTime(modTime(stat)),
			UserID:      stat.Uid,
			GroupID:     stat.Gid,
			ObjectID:    e.ObjectID,
		}
	}
	return nil
}
