package engine

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// markPrefix begins the name of a file in a target that is being restored to. The name of the attempts follows. Nothing is
// kept of a folder that has such a file: Snapshot fails.
const markPrefix = ".slipway-restore-"

// unnamed stands for the name of the attempts where there is none.
const unnamed = "unnamed"

// isMark reports whether a path of a source or a target is such a file.
func isMark(relative string) bool {
	return strings.HasPrefix(relative, markPrefix) && !strings.Contains(relative, "/")
}

// claim makes sure that the target is empty, or holds what an earlier attempt has left, or what may be overwritten. Then it
// marks the target: what is there from now on may be half of a snapshot.
func (t *target) claim(attempt string) error {
	const doing = "open the target"
	if strings.Contains(attempt, "/") || len(attempt) > 200 {
		return fail(KindInvalid, doing, "the name of the attempts holds a slash, or is longer than 200 bytes")
	}
	t.mark = markPrefix + cmp.Or(attempt, unnamed)
	if info, err := t.root.Lstat(t.mark); err == nil && info.Mode().IsRegular() && (attempt != "" || t.overwrite) {
		t.overwrite = true
		return nil
	}
	entries, err := os.ReadDir(t.path)
	if err != nil {
		return &Error{Kind: KindTargetUnwritable, Doing: doing, Err: err}
	}
	for _, e := range entries {
		if e.Name() != "lost+found" && !t.overwrite {
			return fail(KindTargetNotEmpty, doing, "there is %q", e.Name())
		}
	}
	mark, err := t.root.OpenFile(t.mark, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = mark.Close()
	}
	if err != nil {
		return markError(t.mark, err)
	}
	t.fresh = true
	return t.sync()
}

// untouched takes the mark away again where the restore ended before it changed anything: what is there is not half of a snapshot.
// A mark that was there before stays. So does one that cannot be taken away.
func (t *target) untouched() {
	if t.fresh && !t.touched.Load() && t.root.Remove(t.mark) == nil {
		_ = t.sync()
	}
}

// markError says what to do where the root folder of a target takes no mark: files in folders below could be written all the same.
func markError(mark string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("the root folder of the target takes no file %q, which marks it until all is restored: set spec.mover.runAs to Root: %w", mark, err)
	}
	return targetError(mark, err)
}

// unmark removes the mark. With all it removes those of other attempts too, which have left nothing by half any more.
func (t *target) unmark(all bool) error {
	err := t.root.Remove(t.mark)
	if errors.Is(err, fs.ErrPermission) { // the folder has its mode by now, and gets it once more
		if err = t.root.Chmod(".", 0o700); err == nil {
			err = t.root.Remove(t.mark)
		}
	}
	if err != nil {
		return targetError(t.mark, err)
	}
	if !all {
		return nil
	}
	entries, err := os.ReadDir(t.path)
	if err != nil {
		return targetError(".", err)
	}
	for _, e := range entries {
		if !isMark(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		if err := t.root.Remove(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return targetError(e.Name(), err)
		}
	}
	return nil
}

// refuseMarked fails when the source is, or was at some time that we looked, the target of a restore that has not ended. What
// is to be kept, and what is not, does not matter: all of it may be half of a snapshot.
func (s *source) refuseMarked() error {
	const doing = "look for a restore into the source"
	if err := s.lookForMark(); err != nil {
		return &Error{Kind: KindSourceUnreadable, Doing: doing, Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.marked == "" {
		return nil
	}
	return fail(KindHalfRestored, doing, "the file %q says that one has not ended, so this may be half of a copy: let it end, or restore "+
		"all of a copy over it; or delete the file, once all is as it should be", s.marked)
}

func (s *source) lookForMark() error {
	top, err := s.open(".", os.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer top.Close()
	for {
		names, err := top.Readdirnames(1000)
		for _, name := range names {
			if isMark(name) {
				s.noteMark(name)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *source) noteMark(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marked = name
}
