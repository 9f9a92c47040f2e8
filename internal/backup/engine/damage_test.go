//go:build backuptest

package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

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
