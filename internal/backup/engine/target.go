package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	kopiafs "github.com/kopia/kopia/fs"
	"github.com/kopia/kopia/snapshot"
	"golang.org/x/sys/unix"
)

// target is the folder that a snapshot is restored to. No path leads out of it.
type target struct {
	path      string
	root      *os.Root
	overwrite bool
	mark      string // the name of the file that marks the target
	fresh     bool   // the mark was made just now

	// touched reports whether something else than the mark was changed, or may have been. It is set before a change that can be half
	// of one.
	touched atomic.Bool

	mu     sync.Mutex
	result RestoreResult
}

func openTarget(options RestoreOptions) (*target, error) {
	const doing = "open the target"
	root, err := os.OpenRoot(options.Target)
	if err != nil {
		return nil, &Error{Kind: KindTargetUnwritable, Doing: doing, Err: err}
	}
	t := &target{path: options.Target, root: root, overwrite: options.Overwrite}
	if err := t.claim(options.Attempt); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return t, nil
}

func (t *target) close() error { return t.root.Close() }

// sync brings the file system of the target to disk.
func (t *target) sync() error {
	if err := syncFilesystem(t.path); err != nil {
		return targetError(".", err)
	}
	return nil
}

// count changes the result, which several goroutines do.
func (t *target) count(change func(*RestoreResult)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.result)
}

func (t *target) notKept(relative string, err error, counter func(*RestoreResult) *int64) {
	t.count(func(r *RestoreResult) {
		*counter(r)++
		if len(r.Examples) < maxExamples {
			r.Examples = append(r.Examples, fmt.Sprintf("%q: %v", relative, err))
		}
	})
}

// makeFolder makes a folder, which only we may enter until it is finished.
func (t *target) makeFolder(relative string) error {
	err := t.root.Mkdir(relative, 0o700)
	if err == nil {
		t.touched.Store(true)
	}
	if errors.Is(err, fs.ErrExist) && (t.overwrite || relative == "lost+found") {
		var info fs.FileInfo
		if info, err = t.root.Lstat(relative); err == nil && !info.IsDir() {
			err = fmt.Errorf("something that is no folder is in the way: %w", fs.ErrExist)
		}
		if err == nil && info.Mode().Perm()&0o700 != 0o700 {
			t.touched.Store(true)
			err = t.root.Chmod(relative, 0o700)
		}
	}
	if err != nil {
		return targetError(relative, err)
	}
	t.count(func(r *RestoreResult) { r.Folders++ })
	return nil
}

// finishFolder gives a folder its attributes. Of the target itself an owner or mode that cannot be set is only counted.
func (t *target) finishFolder(relative string, e *snapshot.DirEntry, extended map[string][]byte) error {
	opened, err := t.root.OpenFile(relative, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return targetError(relative, err)
	}
	defer opened.Close()
	t.touched.Store(true)
	return t.finish(opened, relative, e, extended)
}

// clear removes a file that is in the way. What it is linked to otherwise stays as it is.
func (t *target) clear(relative string) error {
	if !t.overwrite {
		return nil
	}
	info, err := t.root.Lstat(relative)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("a folder is in the way: %w", fs.ErrExist)
	default:
		t.touched.Store(true)
		return t.root.Remove(relative)
	}
}

// file writes a file.
func (t *target) file(relative string, content io.Reader, e *snapshot.DirEntry, extended map[string][]byte) error {
	if err := t.clear(relative); err != nil {
		return targetError(relative, err)
	}
	opened, err := t.root.OpenFile(relative, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return targetError(relative, err)
	}
	t.touched.Store(true)
	size, err := writeSparse(opened, relative, content, e.FileSize)
	if err == nil && size != e.FileSize {
		err = fmt.Errorf("%q has %d bytes, it should have %d", relative, size, e.FileSize)
	}
	if err == nil {
		err = t.finish(opened, relative, e, extended)
	}
	if closed := opened.Close(); err == nil && closed != nil {
		err = targetError(relative, closed)
	}
	if err == nil {
		t.count(func(r *RestoreResult) { r.Files++; r.Bytes += size })
	}
	return err
}

// holeSize is the length of zeros that become a hole.
const holeSize = 64 << 10

var zeros [holeSize]byte // never written to

// writeSparse copies content, and leaves holes where it is zero: a sparse file stays one.
func writeSparse(f *os.File, relative string, content io.Reader, expected int64) (int64, error) {
	block := make([]byte, min(holeSize, max(expected, 512)))
	var size int64
	for {
		n, err := io.ReadFull(content, block)
		if n > 0 && !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := f.WriteAt(block[:n], size); err != nil {
				return size, targetError(relative, err)
			}
		}
		size += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return size, fmt.Errorf("%q: %w", relative, err)
		}
	}
	if err := f.Truncate(size); err != nil {
		return size, targetError(relative, err)
	}
	return size, nil
}

// finish gives an open file or folder its owner, mode, extended attributes and time, in this order: each takes something of
// the one before away.
func (t *target) finish(f *os.File, relative string, e *snapshot.DirEntry, extended map[string][]byte) error {
	if err := t.ownAndMode(f, relative, e); err != nil {
		return err
	}
	for name, value := range extended {
		if !keepsExtended(name) {
			continue
		}
		if err := unix.Fsetxattr(int(f.Fd()), name, value, 0); err != nil {
			t.notKept(relative, fmt.Errorf("%s: %w", name, err), func(r *RestoreResult) *int64 { return &r.AttributesNotKept })
		}
	}
	modified := e.ModTime.ToTime()
	if err := t.root.Chtimes(relative, modified, modified); err != nil && relative != "." {
		return targetError(relative, err)
	}
	return nil
}

// ownAndMode gives an open file or folder its owner and mode. The target itself is often root's, and already as it should be:
// then nothing is to be reported of what may not be set.
func (t *target) ownAndMode(f *os.File, relative string, e *snapshot.DirEntry) error {
	mode := fs.FileMode(e.Permissions) & kopiafs.ModBits
	owned := f.Chown(int(e.UserID), int(e.GroupID))
	moded := f.Chmod(mode)
	if moded != nil && (relative != "." || !errors.Is(moded, fs.ErrPermission)) {
		return targetError(relative, moded)
	}
	if relative == "." && isOf(f, e.UserID, mode) {
		return nil
	}
	for _, err := range []error{owned, moded} {
		if err != nil {
			t.notKept(relative, err, func(r *RestoreResult) *int64 { return &r.OwnersNotKept })
		}
	}
	return nil
}

// isOf reports whether a file has this owner and mode. The group, and what it may do, is not looked at: of the folder of a
// volume the kubelet changes both, when a pod has an fsGroup.
func isOf(f *os.File, user uint32, mode fs.FileMode) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	const ofGroup = fs.ModeSetgid | 0o070
	return ok && stat.Uid == user && (info.Mode()&kopiafs.ModBits)&^ofGroup == mode&^ofGroup
}

// own sets an owner, which may not be ours to set.
func (t *target) own(relative string, user, group uint32, chown func(uid, gid int) error) {
	if err := chown(int(user), int(group)); err != nil {
		t.notKept(relative, err, func(r *RestoreResult) *int64 { return &r.OwnersNotKept })
	}
}

// symlink makes a symbolic link, which may point anywhere: nothing here follows it.
func (t *target) symlink(relative, pointsTo string, e *snapshot.DirEntry) error {
	err := t.clear(relative)
	if err == nil {
		err = t.root.Symlink(pointsTo, relative)
	}
	if err != nil {
		return targetError(relative, err)
	}
	t.touched.Store(true)
	t.own(relative, e.UserID, e.GroupID, func(uid, gid int) error { return t.root.Lchown(relative, uid, gid) })
	if err := t.setTime(relative, e.ModTime.ToTime()); err != nil {
		return targetError(relative, err)
	}
	t.count(func(r *RestoreResult) { r.Links++ })
	return nil
}

// setTime sets the time of a symbolic link or pipe itself.
func (t *target) setTime(relative string, modified time.Time) error {
	folder, err := t.root.Open(path.Dir(relative))
	if err != nil {
		return err
	}
	defer folder.Close()
	times, err := unix.TimeToTimespec(modified)
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(int(folder.Fd()), path.Base(relative), []unix.Timespec{times, times}, unix.AT_SYMLINK_NOFOLLOW)
}

// link makes another name of a file that is written.
func (t *target) link(l hardLink) error {
	err := t.clear(l.relative)
	if err == nil {
		t.touched.Store(true)
		err = t.root.Link(l.first, l.relative)
	}
	if err != nil {
		return targetError(l.relative, err)
	}
	t.count(func(r *RestoreResult) { r.Files++; r.Bytes += l.size })
	return nil
}

// pipe makes a named pipe.
func (t *target) pipe(relative string, p pipe) error {
	if err := t.makePipe(relative, p); err != nil {
		return targetError(relative, err)
	}
	t.count(func(r *RestoreResult) { r.Pipes++ })
	return nil
}

func (t *target) makePipe(relative string, p pipe) error {
	if err := t.clear(relative); err != nil {
		return err
	}
	folder, err := t.root.Open(path.Dir(relative))
	if err != nil {
		return err
	}
	defer folder.Close()
	at, name := int(folder.Fd()), path.Base(relative)
	if err := unix.Mkfifoat(at, name, 0o600); err != nil {
		return err
	}
	t.touched.Store(true)
	t.own(relative, p.Owner, p.Group, func(uid, gid int) error { return unix.Fchownat(at, name, uid, gid, unix.AT_SYMLINK_NOFOLLOW) })
	if err := unix.Fchmodat(at, name, p.Mode&0o7777, 0); err != nil {
		return err
	}
	return t.setTime(relative, time.Unix(0, p.ModTime))
}
