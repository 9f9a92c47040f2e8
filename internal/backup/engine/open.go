package engine

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// opener opens paths below a folder. No path leads out of it, or through a symbolic link that somebody has put there.
type opener struct {
	root *os.Root
	top  *os.File // the folder itself
}

func newOpener(folder string) (opener, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return opener{}, err
	}
	top, err := root.Open(".")
	if err != nil {
		return opener{}, errors.Join(err, root.Close())
	}
	return opener{root: root, top: top}, nil
}

// open opens a path with one system call, where os.Root takes two for each folder on the way. Where the kernel or a sandbox
// does not know the call, and where the path is longer than a call takes, os.Root decides.
func (o opener) open(relative string, flags int) (*os.File, error) {
	how := &unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(int(o.top.Fd()), relative, how)
	switch {
	case err == nil:
		return os.NewFile(uintptr(fd), relative), nil
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM), errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR),
		errors.Is(err, unix.ENAMETOOLONG):
		return o.root.OpenFile(relative, flags, 0)
	default:
		return nil, &fs.PathError{Op: "openat2", Path: relative, Err: err}
	}
}

func (o opener) close() error { return errors.Join(o.top.Close(), o.root.Close()) }
