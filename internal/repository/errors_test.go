package repository

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	options := inFolder(t)
	r := created(t, options)
	kept(t, r, "one", tree(t))
	folder := options.Location.Filesystem.Path
	for name, c := range map[string]struct {
		change func(*Options)
		damage func()
		want   Kind
	}{
		"another password":            {change: func(o *Options) { o.Password = "another" }, want: KindWrongPassword},
		"no password":                 {change: func(o *Options) { o.Password = "" }, want: KindInvalid},
		"another ID":                  {change: func(o *Options) { o.ExpectedID = strings.Repeat("0", 64) }, want: KindWrongRepository},
		"a folder that is missing":    {change: func(o *Options) { o.Location.Filesystem = &Filesystem{Path: folder + "-missing"} }, want: KindNotFound},
		"an empty folder":             {change: func(o *Options) { o.Location.Filesystem = &Filesystem{Path: t.TempDir()} }, want: KindNotFound},
		"a file instead of a folder":  {change: func(o *Options) { o.Location.Filesystem = &Filesystem{Path: "/proc/version"} }, want: KindNotFound},
		"a path that is not absolute": {change: func(o *Options) { o.Location.Filesystem = &Filesystem{Path: "here"} }, want: KindInvalid},
		"no location":                 {change: func(o *Options) { o.Location = Location{} }, want: KindInvalid},
		"no such cache folder":        {change: func(o *Options) { o.WorkFolder = "/nowhere" }, want: KindInternal},
		"the beginning is damaged":    {damage: func() { write(t, folder, "kopia.repository.f", "{") }, want: KindCorrupt},
		"the beginning is missing":    {damage: func() { _ = os.Remove(filepath.Join(folder, "kopia.repository.f")) }, want: KindCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			changed := options
			if c.change != nil {
				c.change(&changed)
			}
			if c.damage != nil {
				keepFiles(t, folder)
				c.damage()
			}
			_, err := Open(t.Context(), changed)
			wantKind(t, err, c.want)
		})
	}
}

// keepFiles puts the files of a repository back when the test ends.
func keepFiles(t *testing.T, folder string) {
	t.Helper()
	backup := t.TempDir()
	if err := os.CopyFS(backup, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
		if err := os.CopyFS(folder, os.DirFS(backup)); err != nil {
			t.Error(err)
		}
	})
}

func TestCreateNeverReplaces(t *testing.T) {
	options := inFolder(t)
	r := created(t, options)
	_, err := Create(t.Context(), options)
	wantKind(t, err, KindAlreadyExists)

	known := inFolder(t)
	known.ExpectedID = r.ID()
	_, err = Create(t.Context(), known)
	wantKind(t, err, KindInvalid)

	headless := inFolder(t)
	write(t, headless.Location.Filesystem.Path, "p12/345/6789.f", "a pack")
	_, err = Create(t.Context(), headless)
	wantKind(t, err, KindAlreadyExists)
}

func TestCreateGoesOnWhereAnotherWasInterrupted(t *testing.T) {
	options := inFolder(t)
	write(t, options.Location.Filesystem.Path, "kopia.blobcfg.f", "the first of two files")
	kept(t, created(t, options), "one", tree(t))
}

func TestVerifyFindsDamage(t *testing.T) {
	flip := func(path string, at int64) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b := make([]byte, 1)
		if _, err := f.ReadAt(b, at); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 1
		if _, err := f.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
	}
	size := func(path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	type damage struct {
		prefix string
		do     func(path string)
	}
	cases := map[string]damage{}
	for _, prefix := range []string{"p", "q", "xn"} {
		// A pack begins with 32 bytes of noise, and ends with a copy of its index, which only a repair needs.
		cases[prefix+" a bit"] = damage{prefix, func(path string) { flip(path, 64) }}
		cases[prefix+" cut short"] = damage{prefix, func(path string) { _ = os.Truncate(path, 64) }}
		cases[prefix+" empty"] = damage{prefix, func(path string) { _ = os.Truncate(path, 0) }}
		cases[prefix+" missing"] = damage{prefix, func(path string) { _ = os.Remove(path) }}
	}
	together(t, cases, func(t *testing.T, _ string, c damage) {
		options := inFolder(t)
		r := created(t, options)
		source := tree(t)
		write(t, source, "large", noise(1, 1<<20))
		made := kept(t, r, "one", source)
		files := packs(t, options, c.prefix)
		if len(files) == 0 {
			t.Fatal("no such file")
		}
		slices.SortFunc(files, func(a, b string) int { return int(size(b) - size(a)) })
		if c.prefix == "p" {
			files = files[:1] // of the others each snapshot depends on some
		}
		for _, path := range files {
			c.do(path)
		}
		other, err := Open(t.Context(), options)
		if err != nil {
			wantKind(t, err, KindCorrupt)
			return
		}
		defer other.Close(t.Context())
		_, err = other.Verify(t.Context(), VerifyOptions{Snapshots: []string{made.ID}, ReadPercent: 100})
		wantKind(t, err, KindCorrupt)
		_, err = other.Restore(t.Context(), RestoreOptions{Snapshot: made.ID, Target: t.TempDir()})
		if kind := KindOf(err); err == nil || (kind != KindCorrupt && kind != KindNotFound) {
			t.Errorf("restore: %v", err)
		}
	})
}

func TestDamageThatNoSnapshotNeedsIsNone(t *testing.T) {
	options := inFolder(t)
	r := created(t, options)
	source := tree(t)
	made := kept(t, r, "one", source)
	write(t, options.Location.Filesystem.Path, "p00/000/left-by-a-killed-process.f", "nothing")
	if _, err := opened(t, options).Verify(t.Context(), VerifyOptions{Snapshots: []string{made.ID}, ReadPercent: 100}); err != nil {
		t.Error(err)
	}
}

func TestWhatIsMissingIsNotFound(t *testing.T) {
	r := created(t, inFolder(t))
	kept(t, r, "one", tree(t))
	_, err := r.Verify(t.Context(), VerifyOptions{Run: "two"})
	wantKind(t, err, KindNotFound)
	_, err = r.Restore(t.Context(), RestoreOptions{Run: "two", Target: t.TempDir()})
	wantKind(t, err, KindNotFound)
	_, err = r.Restore(t.Context(), RestoreOptions{Run: "one", Target: t.TempDir(), Paths: []string{"sub/none"}})
	wantKind(t, err, KindNotFound)
	_, err = r.Restore(t.Context(), RestoreOptions{Run: "one", Target: t.TempDir(), Paths: []string{"a.txt/below"}})
	wantKind(t, err, KindNotFound)
	_, err = r.Snapshot(t.Context(), SnapshotOptions{Run: "two", Source: "/nowhere"})
	wantKind(t, err, KindNotFound)
	_, err = r.Snapshot(t.Context(), SnapshotOptions{Run: "two", Source: tree(t), Paths: []string{"none"}})
	wantKind(t, err, KindNotFound)
	_, err = r.Verify(t.Context(), VerifyOptions{Snapshots: []string{strings.Repeat("0", 32)}})
	wantKind(t, err, KindCorrupt) // the caller knows that it was made
}

func TestAFullDiskIsNoSpace(t *testing.T) {
	if !becameRoot(t) {
		return
	}
	t.Parallel()
	options := inFolder(t)
	disk := smallDisk(t, 8<<20)
	options.Location.Filesystem.Path = filepath.Join(disk, "repository")
	r := created(t, options)
	small := tree(t)
	kept(t, r, "fits", small)
	large := t.TempDir()
	write(t, large, "large", noise(1, 16<<20))
	_, err := r.Snapshot(t.Context(), SnapshotOptions{Source: large, Run: "does not fit"})
	wantKind(t, err, KindNoSpace)

	listed, err := opened(t, options).List(t.Context(), ListOptions{})
	if err != nil || len(listed) != 1 {
		t.Errorf("listed %+v, %v", listed, err)
	}
	if _, err := opened(t, options).Verify(t.Context(), VerifyOptions{ReadPercent: 100}); err != nil {
		t.Error(err)
	}
}

func TestAFullTargetIsNoSpace(t *testing.T) {
	if !becameRoot(t) {
		return
	}
	t.Parallel()
	r := created(t, inFolder(t))
	large := t.TempDir()
	write(t, large, "large", noise(1, 4<<20))
	kept(t, r, "one", large)
	_, err := r.Restore(t.Context(), RestoreOptions{Run: "one", Target: smallDisk(t, 1<<20)})
	wantKind(t, err, KindNoSpace)
}

// smallDisk mounts a file system in memory. Call it from a test that becameRoot.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}

func TestAnEndedContextEndsTheWork(t *testing.T) {
	options := inFolder(t)
	r := created(t, options)
	source := t.TempDir()
	for i := range 40 {
		write(t, source, fmt.Sprintf("%d", i), noise(uint64(i), 1<<20))
	}
	ctx, cancel := context.WithCancel(t.Context())
	meter := &Meter{}
	go func() {
		for meter.Progress().Bytes < 4<<20 && ctx.Err() == nil {
			<-time.After(time.Millisecond)
		}
		cancel()
	}()
	_, err := r.Snapshot(ctx, SnapshotOptions{Source: source, Run: "one", Meter: meter, Parallel: 1})
	wantKind(t, err, KindCanceled)
	kept(t, opened(t, options), "one", source)
	_, err = r.Verify(ctx, VerifyOptions{})
	wantKind(t, err, KindCanceled)
}

func TestEveryErrorHasAKind(t *testing.T) {
	if kind := KindOf(errors.New("any")); kind != KindInternal {
		t.Errorf("got %s", kind)
	}
	wrapped := fmt.Errorf("outside: %w", &Error{Kind: KindNoSpace, Doing: "x", Err: unix.ENOSPC})
	if kind := KindOf(wrapped); kind != KindNoSpace || !errors.Is(wrapped, unix.ENOSPC) {
		t.Errorf("got %s", kind)
	}
}
