package engine

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// interrupted leaves a target as a restore does that is killed when it has written one file.
func interrupted(t *testing.T, options RestoreOptions) {
	t.Helper()
	target, err := openTarget(options)
	if err != nil {
		t.Fatal(err)
	}
	defer target.close()
	write(t, options.Target, "sub/deep/c.bin", "as far as it came")
}

// What a restore has left by half is not taken for what an application wrote: there is no snapshot of it.
func TestAHalfRestoredVolumeIsNotKept(t *testing.T) {
	r := created(t, inFolder(t))
	kept(t, r, "one", tree(t))
	for name, c := range map[string]struct {
		source  SnapshotOptions
		restore RestoreOptions
	}{
		"all of it":             {restore: RestoreOptions{Attempt: "a"}},
		"without a name":        {},
		"over what was there":   {restore: RestoreOptions{Attempt: "a", Overwrite: true}},
		"over it, without name": {restore: RestoreOptions{Overwrite: true}},
		"one path":              {restore: RestoreOptions{Attempt: "a", Overwrite: true, Paths: []string{"sub"}}},
		"a backup of one path":  {source: SnapshotOptions{Paths: []string{"mine"}}, restore: RestoreOptions{Attempt: "a", Overwrite: true}},
		"a backup without it":   {source: SnapshotOptions{Exclude: []string{markPrefix + "*"}}, restore: RestoreOptions{Attempt: "a"}},
		"a backup that may be":  {source: SnapshotOptions{AllowEmpty: true, AllowPartial: true, ReadAll: true}, restore: RestoreOptions{Attempt: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			target := t.TempDir()
			if c.restore.Overwrite {
				write(t, target, "mine", "of the application")
			}
			c.restore.Run, c.restore.Target = "one", target
			interrupted(t, c.restore)
			write(t, target, "new", "written since")

			c.source.Run, c.source.Source = "half", target
			_, err := r.Snapshot(t.Context(), c.source)
			wantKind(t, err, KindHalfRestored)
			if !strings.Contains(err.Error(), markPrefix) || !strings.Contains(err.Error(), "delete the file") {
				t.Errorf("it is not said what to do: %v", err)
			}
			if listed, err := r.List(t.Context(), ListOptions{Run: "half"}); err != nil || len(listed) > 0 {
				t.Errorf("listed %+v, %v", listed, err)
			}
		})
	}
}

// After each of the ways out that the message tells of, there are snapshots again.
func TestAfterAHalfRestoreThereAreWaysOut(t *testing.T) {
	r := created(t, inFolder(t))
	source := tree(t)
	kept(t, r, "one", source)
	for name, out := range map[string]func(t *testing.T, r *Repository, target string){
		"the same restore again": func(t *testing.T, r *Repository, target string) {
			if _, err := r.Restore(t.Context(), RestoreOptions{Run: "one", Target: target, Attempt: "a"}); err != nil {
				t.Fatal(err)
			}
		},
		"another restore over it": func(t *testing.T, r *Repository, target string) {
			if _, err := r.Restore(t.Context(), RestoreOptions{Run: "one", Target: target, Attempt: "b", Overwrite: true}); err != nil {
				t.Fatal(err)
			}
		},
		"one without a name": func(t *testing.T, r *Repository, target string) {
			if _, err := r.Restore(t.Context(), RestoreOptions{Run: "one", Target: target, Overwrite: true}); err != nil {
				t.Fatal(err)
			}
		},
		"the file is deleted": func(t *testing.T, _ *Repository, target string) {
			if err := os.Remove(filepath.Join(target, markPrefix+"a")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			target := t.TempDir()
			interrupted(t, RestoreOptions{Run: "one", Target: target, Attempt: "a"})
			out(t, r, target)
			write(t, target, "new", "written since")
			kept(t, r, name, target)
			if err := os.Remove(filepath.Join(target, "new")); err != nil {
				t.Fatal(err)
			}
			if name == "the file is deleted" {
				return
			}
			if diff := cmp.Diff(look(t, source)[1:], look(t, target)[1:]); diff != "" {
				t.Errorf("restored (-source +target):\n%s", diff)
			}
		})
	}

	// A restore of some paths makes no volume whole that another one has left by half.
	target := t.TempDir()
	interrupted(t, RestoreOptions{Run: "one", Target: target, Attempt: "a"})
	if _, err := r.Restore(t.Context(), RestoreOptions{Run: "one", Target: target, Attempt: "b", Overwrite: true, Paths: []string{"sub"}}); err != nil {
		t.Fatal(err)
	}
	_, err := r.Snapshot(t.Context(), SnapshotOptions{Run: "half", Source: target})
	wantKind(t, err, KindHalfRestored)
}

// A restore that begins while the source is read is noticed too.
func TestARestoreThatBeginsMeanwhileIsNoticed(t *testing.T) {
	source := tree(t)
	filter, err := newFilter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openSource(source, filter)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	write(t, source, markPrefix+"late", "")
	wantKind(t, s.refuseMarked(), KindHalfRestored)

	// It may also have come and gone, but for its name in the listing.
	found := 0
	if err := s.list(&entry{source: s, relative: "."}, func(*entry, string, error) { found++ }); err != nil || found != 2 {
		t.Errorf("listed %d, %v", found, err)
	}
	if err := os.Remove(filepath.Join(source, markPrefix+"late")); err != nil {
		t.Fatal(err)
	}
	wantKind(t, s.refuseMarked(), KindHalfRestored)
}

// Such a name below the root is one like any other.
func TestAMarkInAFolderIsAFile(t *testing.T) {
	r := created(t, inFolder(t))
	source := tree(t)
	write(t, source, "sub/"+markPrefix+"x", "of the application")
	kept(t, r, "one", source)
	target, _ := restored(t, r, "one")
	if diff := cmp.Diff(look(t, source), look(t, target)); diff != "" {
		t.Errorf("(-source +target):\n%s", diff)
	}
}

// The mark goes although the folder has got its mode by then, which lets nobody change it.
func TestAMarkGoesFromAFolderThatIsOnlyRead(t *testing.T) {
	folder := t.TempDir()
	target, err := openTarget(RestoreOptions{Target: folder, Attempt: "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer target.close()
	if err := os.Chmod(folder, 0o500); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // for whom no mode counts: become somebody else, as far as files go, on this thread
		const user = 4242
		if err := os.Chown(folder, user, user); err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.Setfsuid(user); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := unix.Setfsuid(0); err != nil {
				t.Error(err)
			}
		}()
	}
	if err := target.unmark(false); err != nil {
		t.Error(err)
	}
	if _, err := target.root.Lstat(target.mark); !os.IsNotExist(err) {
		t.Errorf("the mark: %v", err)
	}
}

// What is in the way under the name of a mark is left as it is.
func TestAMarkIsNoLink(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "mine", "of the application")
	if err := os.Symlink("mine", filepath.Join(folder, markPrefix+"a")); err != nil {
		t.Fatal(err)
	}
	_, err := openTarget(RestoreOptions{Target: folder, Attempt: "a", Overwrite: true})
	wantKind(t, err, KindTargetNotEmpty)
	if content, err := os.ReadFile(filepath.Join(folder, "mine")); err != nil || string(content) != "of the application" {
		t.Errorf("it holds %q, %v", content, err)
	}
}

// A restore that is refused before it has changed anything leaves no volume that nobody backs up any more.
func TestARestoreThatChangedNothingLeavesNoMark(t *testing.T) {
	r := created(t, inFolder(t))
	source := tree(t)
	kept(t, r, "one", source)
	for name, tc := range map[string]struct {
		before func(target string)
		half   bool
	}{
		"a folder is in the way of the only file":    {func(target string) { write(t, target, "a.txt/of", "the application") }, false},
		"another restore has left half of a copy":    {func(target string) { interrupted(t, RestoreOptions{Target: target, Overwrite: true, Attempt: "b"}) }, true},
		"an earlier attempt has left half of a copy": {func(target string) { interrupted(t, RestoreOptions{Target: target, Overwrite: true, Attempt: "a"}) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			target := t.TempDir()
			write(t, target, "a.txt/of", "the application")
			tc.before(target)
			_, err := r.Restore(t.Context(), RestoreOptions{Run: "one", Target: target, Attempt: "a", Overwrite: true, Paths: []string{"a.txt"}})
			wantKind(t, err, KindTargetNotEmpty)
			_, err = r.Snapshot(t.Context(), SnapshotOptions{Run: name, Source: target})
			if tc.half {
				wantKind(t, err, KindHalfRestored)
			} else if err != nil {
				t.Error(err)
			}
		})
	}

	// One that has changed something keeps its mark.
	target := t.TempDir()
	write(t, target, "a.txt/of", "the application")
	_, err := r.Restore(t.Context(), RestoreOptions{Run: "one", Target: target, Attempt: "a", Overwrite: true})
	wantKind(t, err, KindTargetNotEmpty)
	_, err = r.Snapshot(t.Context(), SnapshotOptions{Run: "half", Source: target})
	wantKind(t, err, KindHalfRestored)
}

// A named pipe is beside the tree of a copy, and in the copy all the same.
func TestANamedPipeAloneIsRestored(t *testing.T) {
	r := created(t, inFolder(t))
	source := t.TempDir()
	write(t, source, "only/file", "x")
	if err := unix.Mkfifo(source+"/only/p2", 0o600); err != nil {
		t.Fatal(err)
	}
	// As long a name as a run of a claim can have.
	run := strings.Repeat("u", 36) + "/" + strings.Repeat("c", 253)
	kept(t, r, run, source)
	target := t.TempDir()
	restored, err := r.Restore(t.Context(), RestoreOptions{Run: run, Target: target, Paths: []string{"only/p2"}})
	if err != nil || restored.Pipes != 1 || restored.Files != 0 {
		t.Errorf("restored %+v, %v", restored, err)
	}
}
