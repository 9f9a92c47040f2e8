package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// walked is what a folder holds. No symbolic link is followed, and paths come from the folder alone: what a manifest says is
// only looked up in them.
type walked struct {
	files, folders, links, pipes, bytes int64
	// wanted are the paths that were asked for, by their stored form.
	wanted map[string]walkedPath
	// closed are the folders that their own mode keeps us from listing, by their stored form.
	closed []string
}

type walkedPath struct {
	relative string
	stat     unix.Stat_t
	target   string // of a link
}

func (w *walked) empty() bool { return w.files+w.folders+w.links+w.pipes == 0 && len(w.closed) == 0 }

// walkFolder lists a folder and all below.
func walkFolder(ctx context.Context, root *os.Root, wanted map[string]bool) (*walked, error) {
	w := &walked{wanted: make(map[string]walkedPath, len(wanted))}
	waiting := []string{"."}
	for len(waiting) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		next := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		below, err := w.list(root, next, wanted)
		if err != nil {
			return nil, err
		}
		waiting = append(waiting, below...)
	}
	return w, nil
}

// list looks at what is in one folder, and returns the folders in it.
func (w *walked) list(root *os.Root, relative string, wanted map[string]bool) ([]string, error) {
	opened, err := root.OpenFile(relative, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrPermission) && relative != "." {
		w.closed = append(w.closed, encodePath(relative))
		return nil, nil
	}
	if err != nil {
		return nil, differs(KindNothingRestored, "the folder %q cannot be read: %w", relative, err)
	}
	defer opened.Close()
	names, err := opened.Readdirnames(-1)
	if err != nil {
		return nil, differs(KindNothingRestored, "the folder %q cannot be read: %w", relative, err)
	}
	var below []string
	for _, name := range names {
		child := walkedPath{relative: path.Join(relative, name)}
		if err := unix.Fstatat(int(opened.Fd()), name, &child.stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			if errors.Is(err, fs.ErrPermission) { // it may be listed, and not entered
				w.closed = append(w.closed, encodePath(relative))
				return nil, nil
			}
			return nil, differs(KindFileMissing, "%q: %w", child.relative, err)
		}
		if child.stat.Mode&unix.S_IFMT == unix.S_IFLNK {
			if child.target, err = readLink(int(opened.Fd()), name, child.stat.Size); err != nil {
				return nil, differs(KindLinkDiffers, "%q: %w", child.relative, err)
			}
		}
		if w.count(child.stat) {
			below = append(below, child.relative)
		}
		if stored := encodePath(child.relative); wanted[stored] {
			w.wanted[stored] = child
		}
	}
	return below, nil
}

// count counts a path, and reports whether it is a folder. A socket or a device counts as a file: a snapshot holds none, so that
// it is one too many.
func (w *walked) count(stat unix.Stat_t) (folder bool) {
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		w.folders++
		return true
	case unix.S_IFLNK:
		w.links++
	case unix.S_IFIFO:
		w.pipes++
	case unix.S_IFREG:
		w.files++
		w.bytes += stat.Size
	default:
		w.files++
	}
	return false
}
