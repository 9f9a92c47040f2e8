package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	kopiafs "github.com/kopia/kopia/fs"
	"golang.org/x/sys/unix"
)

// source is a folder on its way into a snapshot. The files may change meanwhile, and whoever changes them may wish us ill:
// no path leads out of the folder, and what a name stands for is asked again when it is opened.
type source struct {
	opener
	escapes   error // what root says of a path that leads out
	filter    *filter
	collector *collector // nil while only counting
	sampler   *sampler   // nil while only counting
	previous  *reuse     // nil while only counting

	seen     atomic.Int64 // files, folders and symbolic links that belong to the snapshot, the source itself not counted
	pipes    atomic.Int64
	changed  atomic.Int64 // files that changed while they were read
	mu       sync.Mutex
	marked   string // the mark of a restore that was seen
	skipped  int64
	examples []string // of what was skipped
}

// maxExamples is how many paths a result names.
const maxExamples = 5

// sourceError is an error of the source, unlike one of the repository. It has no Unwrap for the same reason as storageError.
type sourceError struct {
	path string
	err  error
}

func (e *sourceError) Error() string { return fmt.Sprintf("%q: %v", e.path, e.err) }

// Is makes errors.Is look at the cause.
func (e *sourceError) Is(target error) bool { return errors.Is(e.err, target) }

// errReplaced says that a name stands for something else than it did a moment ago. What was there has vanished.
var errReplaced = errors.New("replaced by something else")

func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errReplaced)
}

func openSource(folder string, filter *filter) (*source, error) {
	const doing = "open the source"
	opener, err := newOpener(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{Kind: KindNotFound, Doing: doing, Err: err}
	case err != nil:
		return nil, &Error{Kind: KindSourceUnreadable, Doing: doing, Err: err}
	}
	for _, p := range filter.paths {
		if _, err := opener.root.Lstat(p); err != nil {
			kind := KindSourceUnreadable
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
				kind, err = KindPathNotFound, fmt.Errorf("%q is not in the source", p)
			}
			return nil, errors.Join(&Error{Kind: kind, Doing: doing, Err: err}, opener.close())
		}
	}
	s := &source{opener: opener, filter: filter}
	var refused *fs.PathError
	if _, err := opener.root.Lstat(".."); errors.As(err, &refused) {
		s.escapes = refused.Err
	}
	if err := s.refuseMarked(); err != nil {
		return nil, errors.Join(err, opener.close())
	}
	return s, nil
}

// opening says what it means that a listed path cannot be opened. None leads out of the source or through something that is
// no folder, unless it was replaced.
func (s *source) opening(err error) error {
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || (s.escapes != nil && errors.Is(err, s.escapes)) {
		return fmt.Errorf("%w: %w", errReplaced, err)
	}
	return err
}

// forget drops a path that turned out not to be in the snapshot.
func (s *source) forget(path string) {
	s.collector.forget(path)
	s.sampler.forget(path)
}

// skip notes something that cannot be kept.
func (s *source) skip(relative string, mode fs.FileMode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skipped++
	if len(s.examples) < maxExamples {
		s.examples = append(s.examples, fmt.Sprintf("%q (%s)", relative, kindOfFile(mode)))
	}
}

func kindOfFile(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	default:
		return "unknown type"
	}
}

// entry is a file, folder or symbolic link of the source, as the library wants it.
type entry struct {
	source   *source
	relative string // path in the source; "." for the source itself
	mu       sync.Mutex
	stat     unix.Stat_t
}

func (e *entry) now() unix.Stat_t {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stat
}

func (e *entry) set(stat unix.Stat_t) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stat = stat
}

func (e *entry) Name() string {
	if e.relative == "." {
		return dataName
	}
	return encodeName(path.Base(e.relative))
}

func (e *entry) Size() int64        { return e.now().Size }
func (e *entry) Mode() fs.FileMode  { return fileMode(e.now().Mode) }
func (e *entry) IsDir() bool        { return e.Mode().IsDir() }
func (e *entry) Sys() any           { return nil }
func (e *entry) ModTime() time.Time { return modTime(e.now()) }
func (e *entry) Close()             {}

func (e *entry) Owner() kopiafs.OwnerInfo {
	stat := e.now()
	return kopiafs.OwnerInfo{UserID: stat.Uid, GroupID: stat.Gid}
}

func (e *entry) Device() kopiafs.DeviceInfo { return kopiafs.DeviceInfo{} }

// LocalFilesystemPath is empty, so that the library goes only through us.
func (e *entry) LocalFilesystemPath() string { return "" }

func modTime(stat unix.Stat_t) time.Time { return time.Unix(stat.Mtim.Unix()) }

func inodeOf(stat unix.Stat_t) inode { return inode{device: uint64(stat.Dev), number: stat.Ino} } //nolint:unconvert // the type of Dev differs between systems

// specialModes are the bits that change what the permissions mean.
var specialModes = [...]struct {
	bit  uint32
	flag fs.FileMode
}{{unix.S_ISUID, fs.ModeSetuid}, {unix.S_ISGID, fs.ModeSetgid}, {unix.S_ISVTX, fs.ModeSticky}}

// fileMode is the mode of stat(2) as Go writes it. The library asks for it several times for each file.
func fileMode(mode uint32) fs.FileMode {
	result := fs.FileMode(mode & 0o777)
	for _, special := range specialModes {
		if mode&special.bit != 0 {
			result |= special.flag
		}
	}
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return result
	case unix.S_IFDIR:
		return result | fs.ModeDir
	case unix.S_IFLNK:
		return result | fs.ModeSymlink
	case unix.S_IFIFO:
		return result | fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return result | fs.ModeSocket
	case unix.S_IFCHR, unix.S_IFBLK:
		return result | fs.ModeDevice
	default:
		return result | fs.ModeIrregular
	}
}

// folder is a folder of the source.
type folder struct {
	*entry
	previous []previousFolder
}

var _ kopiafs.Directory = (*folder)(nil)

// Child is not needed by what the library does with a source.
func (f *folder) Child(ctx context.Context, name string) (kopiafs.Entry, error) {
	return kopiafs.IterateEntriesAndFindChild(ctx, f, name)
}

// SupportsMultipleIterations is false: each reading of a folder notes the attributes of what is in it.
func (f *folder) SupportsMultipleIterations() bool { return false }

// Iterate lists the folder.
func (f *folder) Iterate(ctx context.Context) (kopiafs.DirectoryIterator, error) {
	previous := f.source.previous.load(ctx, f.previous)
	var entries []kopiafs.Entry
	err := f.source.list(f.entry, func(child *entry, target string, err error) {
		entries = append(entries, f.child(child, target, err, previous))
	})
	if err != nil {
		return nil, err
	}
	return kopiafs.StaticIterator(entries, nil), nil
}

// child makes an entry of the library's kind.
func (f *folder) child(e *entry, target string, err error, previous []loadedFolder) kopiafs.Entry {
	switch {
	case err != nil:
		return &unreadable{entry: e, err: err}
	case e.Mode().IsDir():
		f.source.sampler.folder(e)
		return &folder{entry: e, previous: below(previous, e.Name())}
	case e.Mode()&fs.ModeSymlink != 0:
		f.source.sampler.link(e, target)
		return &symlink{entry: e, target: target}
	default:
		return &file{entry: e, previous: previous}
	}
}

// list calls each for what of a folder belongs to the snapshot. The folder's own attributes are brought up to date.
func (s *source) list(e *entry, each func(child *entry, target string, err error)) error {
	opened, err := s.openFolder(e)
	if err != nil {
		return &sourceError{path: e.relative, err: err}
	}
	defer opened.Close()
	names, err := namesIn(opened)
	if err != nil {
		return &sourceError{path: e.relative, err: err}
	}
	if e.relative == "." {
		if err := s.extended(int(opened.Fd()), "", "."); err != nil {
			return &sourceError{path: e.relative, err: err}
		}
	}
	for _, name := range names {
		s.lookAt(int(opened.Fd()), name, path.Join(e.relative, name), each)
	}
	return nil
}

// namesIn returns what a folder holds, in order, each name once. A file system may list a name twice that is removed and made
// again meanwhile (POSIX leaves it open).
func namesIn(folder interface{ Readdirnames(int) ([]string, error) }) ([]string, error) {
	names, err := folder.Readdirnames(-1)
	slices.Sort(names)
	return slices.Compact(names), err
}

// openFolder opens a folder, unless it is another one by now.
func (s *source) openFolder(e *entry) (*os.File, error) {
	opened, err := s.open(e.relative, os.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, s.opening(err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(opened.Fd()), &stat); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	if before := e.now(); before.Ino != 0 && inodeOf(before) != inodeOf(stat) {
		return nil, errors.Join(errReplaced, opened.Close())
	}
	e.set(stat)
	return opened, nil
}

// lookAt finds out what a name in an open folder stands for.
func (s *source) lookAt(folder int, name, relative string, each func(*entry, string, error)) {
	if isMark(relative) {
		s.noteMark(name)
		return
	}
	child := &entry{source: s, relative: relative}
	target, err := lookUp(folder, name, &child.stat)
	mode := child.Mode()
	if child.stat.Mode != 0 && (!s.filter.wants(relative, mode.IsDir()) || ofFilesystem(relative, child.stat)) {
		return
	}
	switch {
	case err != nil:
	case mode&fs.ModeNamedPipe != 0:
		s.pipe(relative, child.stat)
		return
	case mode&(fs.ModeSocket|fs.ModeDevice|fs.ModeIrregular) != 0:
		s.skip(relative, mode)
		return
	case mode&fs.ModeSymlink == 0:
		err = s.extended(folder, name, relative)
	}
	if errors.Is(err, unix.ENOENT) {
		return // it was removed since the folder was read
	}
	if err != nil {
		err = &sourceError{path: relative, err: err}
	} else if s.collector != nil && mode.IsRegular() && child.stat.Nlink > 1 {
		s.collector.link(encodePath(relative), inodeOf(child.stat))
	}
	s.seen.Add(1)
	each(child, target, err)
}

// maxLooks is how often a name is looked at whose symbolic link turns out to be none any more.
const maxLooks = 100

// lookUp finds the attributes of a name in an open folder, and the target of a symbolic link. stat is zero if they cannot be read.
func lookUp(folder int, name string, stat *unix.Stat_t) (target string, err error) {
	for range maxLooks {
		if err := unix.Fstatat(folder, name, stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			*stat = unix.Stat_t{}
			return "", err
		}
		if stat.Mode&unix.S_IFMT != unix.S_IFLNK {
			return "", nil
		}
		target, err = readLink(folder, name, stat.Size)
		if !errors.Is(err, unix.EINVAL) { // it is no link any more: readlink(2)
			return target, err
		}
	}
	return "", err
}

// ofFilesystem reports whether a path is not of the source's user: fsck keeps what it finds in lost+found.
func ofFilesystem(relative string, stat unix.Stat_t) bool {
	return relative == "lost+found" && stat.Mode&unix.S_IFMT == unix.S_IFDIR && stat.Uid == 0
}

func (s *source) pipe(relative string, stat unix.Stat_t) {
	s.pipes.Add(1)
	if s.collector != nil {
		s.collector.pipe(encodePath(relative), pipe{
			Mode: stat.Mode & 0o7777, Owner: stat.Uid, Group: stat.Gid, ModTime: modTime(stat).UnixNano(),
		})
	}
}

// count walks the source, and says from time to time how much it found. What it cannot read it leaves to who reads it later.
func (s *source) count(ctx context.Context, found func(files, bytes int64)) {
	var files, bytes int64
	waiting := []*entry{{source: s, relative: "."}}
	for len(waiting) > 0 && ctx.Err() == nil {
		next := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		err := s.list(next, func(child *entry, _ string, _ error) {
			switch mode := child.Mode(); {
			case mode.IsDir():
				waiting = append(waiting, child)
			case mode.IsRegular():
				files++
				bytes += child.Size()
			}
		})
		if err == nil {
			found(files, bytes)
		}
	}
}
