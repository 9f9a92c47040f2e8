package engine

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/manifest"
	"github.com/kopia/kopia/snapshot"
	"github.com/kopia/kopia/snapshot/snapshotfs"
	"golang.org/x/sys/unix"
)

// compared compares a folder with a snapshot.
func compared(t *testing.T, r *Repository, made Snapshot, folder string) (CompareResult, error) {
	t.Helper()
	return r.Compare(t.Context(), CompareOptions{Snapshot: made.ID, Manifest: made.Manifest, Folder: folder})
}

func TestARestoreIsAsTheSourceWas(t *testing.T) {
	options := inFolder(t)
	r := created(t, options)
	made := kept(t, r, "one", everything(t))
	if len(made.Manifest) != 64 {
		t.Fatalf("the digest of the manifest is %q", made.Manifest)
	}
	target, _ := restored(t, r, "one")
	before := look(t, target)
	got, err := compared(t, opened(t, options), made.Snapshot, target)
	if err != nil {
		t.Fatal(err)
	}
	// The sample holds all of so few.
	want := CompareResult{Entries: made.Stats.Files + made.Stats.Folders + made.Stats.Links, Files: made.Stats.Files, Bytes: made.Stats.Bytes}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if after := look(t, target); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Error("the folder was changed")
	}
	listed, err := r.List(t.Context(), ListOptions{})
	if err != nil || len(listed) != 1 || listed[0].Manifest != made.Manifest {
		t.Errorf("listed %+v, %v", listed, err)
	}
	if again := kept(t, r, "one", t.TempDir()); !again.Adopted || again.Manifest != made.Manifest {
		t.Errorf("the snapshot that was there already is told as %+v", again)
	}
}

// Whatever is other than it was turns a drill red, with a kind of its own.
func TestWhateverDiffersIsFound(t *testing.T) {
	at := func(change func(path string) error, path string) func(*testing.T, string) {
		return func(t *testing.T, folder string) {
			if err := change(filepath.Join(folder, path)); err != nil {
				t.Fatal(err)
			}
		}
	}
	relink := func(to string) func(string) error {
		return func(path string) error {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			return os.Symlink(to, path)
		}
	}
	cases := map[string]struct {
		change func(*testing.T, string)
		want   Kind
	}{
		"an empty folder": {func(t *testing.T, folder string) {
			entries, err := os.ReadDir(folder)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if err := os.RemoveAll(filepath.Join(folder, e.Name())); err != nil {
					t.Fatal(err)
				}
			}
		}, KindNothingRestored},
		"no folder":      {at(os.RemoveAll, ""), KindNothingRestored},
		"a file missing": {at(os.Remove, "sub/b.txt"), KindFileMissing},
		"one byte changed": {at(func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte("X"), 1_000_000)
			return errorOf(err, f.Close())
		}, "sub/deep/c.bin"), KindContentDiffers},
		"a file cut off":        {at(func(path string) error { return os.Truncate(path, 3) }, "a.txt"), KindContentDiffers},
		"a file too many":       {at(func(path string) error { return os.WriteFile(path, nil, 0o644) }, "sub/more"), KindContentDiffers},
		"a mode":                {at(func(path string) error { return os.Chmod(path, 0o600) }, "a.txt"), KindModeDiffers},
		"a bit of setuid":       {at(func(path string) error { return unix.Chmod(path, 0o4644) }, "a.txt"), KindModeDiffers},
		"the mode of a folder":  {at(func(path string) error { return os.Chmod(path, 0o711) }, "sub"), KindModeDiffers},
		"a link elsewhere":      {at(relink("/etc/shadow"), "link"), KindLinkDiffers},
		"a link for a file":     {at(relink("sub/b.txt"), "a.txt"), KindLinkDiffers},
		"a link for a folder":   {at(relink("/"), "sub"), KindLinkDiffers},
		"a file for a link":     {at(func(path string) error { return errorOf(os.Remove(path), os.WriteFile(path, []byte("a.txt"), 0o644)) }, "link"), KindLinkDiffers},
		"a folder for a file":   {at(func(path string) error { return errorOf(os.Remove(path), os.Mkdir(path, 0o644)) }, "a.txt"), KindContentDiffers},
		"a socket beside them":  {at(func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o644, 0) }, "socket"), KindContentDiffers},
		"a folder of ours gone": {at(os.RemoveAll, "sub/deep"), KindFileMissing},
	}
	r := created(t, inFolder(t))
	source := tree(t)
	if err := os.Symlink("a.txt", filepath.Join(source, "link")); err != nil {
		t.Fatal(err)
	}
	made := kept(t, r, "one", source)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			target, _ := restored(t, r, "one")
			if _, err := compared(t, r, made.Snapshot, target); err != nil {
				t.Fatalf("before anything differs: %v", err)
			}
			c.change(t, target)
			_, err := compared(t, r, made.Snapshot, target)
			wantKind(t, err, c.want)
		})
	}
}

func errorOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// The sample holds a part of many files. The counts are of all.
func TestWhatIsNotInTheSampleIsCounted(t *testing.T) {
	r := created(t, inFolder(t))
	source := t.TempDir()
	for i := range maxSmall + 200 {
		write(t, source, fmt.Sprintf("%d/%d", i%10, i), fmt.Sprint(i))
	}
	made := kept(t, r, "one", source)
	target, _ := restored(t, r, "one")
	got, err := compared(t, r, made.Snapshot, target)
	if err != nil || got.Files != maxSmall {
		t.Fatalf("compared %+v, %v, want %d files", got, err, maxSmall)
	}
	m := manifestIn(t, r, made.Snapshot)
	inSample := map[string]bool{}
	for _, e := range m.entries {
		inSample[e.Path] = true
	}
	for i := range maxSmall + 200 {
		if path := fmt.Sprintf("%d/%d", i%10, i); !inSample[path] {
			if err := os.Remove(filepath.Join(target, path)); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	_, err = compared(t, r, made.Snapshot, target)
	wantKind(t, err, KindFileMissing)
}

// manifestIn reads the manifest of a snapshot.
func manifestIn(t *testing.T, r *Repository, made Snapshot) *sourceManifest {
	t.Helper()
	m, err := r.manifestOf(t.Context(), CompareOptions{Snapshot: made.ID, Manifest: made.Manifest})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A manifest that somebody exchanged in the repository has another digest than status tells.
func TestAnExchangedManifestIsNoticed(t *testing.T) {
	r := created(t, inFolder(t))
	made := kept(t, r, "one", tree(t))
	other := t.TempDir()
	write(t, other, "x", "something else")
	second := kept(t, r, "two", other)
	target, _ := restored(t, r, "two")
	_, err := r.Compare(t.Context(), CompareOptions{Snapshot: second.ID, Manifest: made.Manifest, Folder: target})
	wantKind(t, err, KindManifestDiffers)

	// The tree of one snapshot with the manifest of another, told or not: verification finds it too.
	for run, digest := range map[string]string{"as it was": made.Manifest, "told": second.Manifest} {
		forged := changed(t, r, made.Snapshot, run, func(m *snapshot.Manifest, root *snapshotfs.DirManifestBuilder, p parts) {
			root.AddEntry(p.data)
			root.AddEntry(p.attributes)
			root.AddEntry(partsOf(t, r, second.Snapshot).manifest)
			m.Tags[manifestTag] = digest
		})
		_, err := r.Compare(t.Context(), CompareOptions{Snapshot: forged, Manifest: made.Manifest, Folder: target})
		wantKind(t, err, KindManifestDiffers)
		if run == "told" {
			continue // then it is in order, as far as the repository knows: only status knows better
		}
		_, err = r.Verify(t.Context(), VerifyOptions{Run: run})
		wantKind(t, err, KindCorrupt)
	}
}

// A snapshot of an older program has no manifest. There is nothing to compare with, and a drill does not pass.
func TestASnapshotWithoutAManifest(t *testing.T) {
	r := created(t, inFolder(t))
	source := tree(t)
	made := kept(t, r, "one", source)
	old := changed(t, r, made.Snapshot, "old", func(m *snapshot.Manifest, root *snapshotfs.DirManifestBuilder, p parts) {
		root.AddEntry(p.data)
		root.AddEntry(p.attributes)
		delete(m.Tags, manifestTag)
	})
	target, _ := restored(t, r, "old")
	for _, digest := range []string{"", made.Manifest} {
		_, err := r.Compare(t.Context(), CompareOptions{Snapshot: old, Manifest: digest, Folder: target})
		wantKind(t, err, KindManifestMissing)
	}
	if _, err := r.Verify(t.Context(), VerifyOptions{Run: "old", ReadPercent: 100}); err != nil {
		t.Errorf("it is verified as before: %v", err)
	}
	if _, err := r.Expire(t.Context(), ExpireOptions{Snapshots: []string{made.ID}}); err != nil {
		t.Fatal(err)
	}
	// The next snapshot reads the sample once more, so that it has all checksums.
	next, err := r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: "next", IgnoreChangeTime: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := compared(t, r, next.Snapshot, target); err != nil || got.Files != made.Stats.Files {
		t.Errorf("compared %+v, %v", got, err)
	}
	_, err = r.Compare(t.Context(), CompareOptions{Snapshot: made.ID, Manifest: made.Manifest, Folder: target})
	wantKind(t, err, KindSnapshotMissing)
}

// changed makes another snapshot of the tree of one.
func changed(t *testing.T, r *Repository, of Snapshot, run string, build func(*snapshot.Manifest, *snapshotfs.DirManifestBuilder, parts)) string {
	t.Helper()
	var id manifest.ID
	err := r.write(t.Context(), "forge", func(ctx context.Context, w repo.DirectRepositoryWriter) error {
		m, err := snapshot.LoadSnapshot(ctx, w, manifest.ID(of.ID))
		if err != nil {
			return err
		}
		p, err := readParts(ctx, w, m.RootEntry)
		if err != nil {
			return err
		}
		m.Tags = maps.Clone(m.Tags)
		m.Tags[runTag] = run
		var root snapshotfs.DirManifestBuilder
		build(m, &root, p)
		folder := root.Build(m.StartTime, "")
		object, err := snapshotfs.WriteDirManifest(ctx, w, ".", folder, metadataCompression)
		if err != nil {
			return err
		}
		m.ID, m.RootEntry = "", newEntry("", snapshot.EntryTypeDirectory, object, m.StartTime)
		id, err = snapshot.SaveSnapshot(ctx, w, m)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(id)
}

func partsOf(t *testing.T, r *Repository, of Snapshot) parts {
	t.Helper()
	m, err := snapshot.LoadSnapshot(t.Context(), r.rep, manifest.ID(of.ID))
	if err != nil {
		t.Fatal(err)
	}
	p, err := readParts(t.Context(), r.rep, m.RootEntry)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Nothing compared proves nothing.
func TestNothingComparedProvesNothing(t *testing.T) {
	r := created(t, inFolder(t))
	source := t.TempDir()
	if err := os.Mkdir(filepath.Join(source, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	made, err := r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: "empty", AllowEmpty: true})
	if err != nil {
		t.Fatal(err)
	}
	target, _ := restored(t, r, "empty")
	_, err = compared(t, r, made.Snapshot, target)
	wantKind(t, err, KindNothingCompared)
	if _, err := r.Compare(t.Context(), CompareOptions{Snapshot: made.ID, Manifest: made.Manifest, Folder: target, AllowEmpty: true}); err != nil {
		t.Errorf("an empty source is allowed: %v", err)
	}

	changing := &comparer{source: &sourceManifest{header: manifestHeader{Files: 3}}, result: CompareResult{Changed: 3, Entries: 3}}
	wantKind(t, changing.proved(true), KindNothingCompared)
	links := &comparer{source: &sourceManifest{header: manifestHeader{Links: 2}}, result: CompareResult{Entries: 2}}
	if err := links.proved(false); err != nil {
		t.Errorf("links alone are something: %v", err)
	}
}

// What a manifest says leads nowhere: its paths are only looked up among those of the folder.
func TestAHostileManifestReadsNothingElse(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, "secret", "x")
	folder := filepath.Join(outside, "folder")
	write(t, folder, "a", "x")
	if err := os.Symlink("..", filepath.Join(folder, "up")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	sum := digestOf([]byte("x"))
	for _, path := range []string{"../secret", "up/secret", "/" + outside + "/secret", "a/../../secret", "./a", ""} {
		c := &comparer{root: root, meter: &Meter{}, source: &sourceManifest{
			header:  manifestHeader{Files: 1, Links: 1, Bytes: 1},
			entries: []manifestEntry{{Path: path, Type: typeFile, Size: 1, Mode: 0o644, SHA256: sum}},
		}}
		wantKind(t, c.compare(t.Context()), KindFileMissing)
	}
}

// A folder that may not be listed hides what is in it. Only one that the source had closed may do so.
func TestAClosedFolder(t *testing.T) {
	w := &walked{closed: []string{"a/closed"}}
	for path, want := range map[string]bool{"a/closed/x": true, "a/closed": false, "a/closedx": false, "a": false, "b/a/closed/x": false} {
		if w.behindClosed(path) != want {
			t.Errorf("%q is behind it: %v, want %v", path, !want, want)
		}
	}
}

// A file that changes while it is read is marked, and not compared.
func TestAChangedFileIsMarked(t *testing.T) {
	source := &source{sampler: newSampler()}
	read := func(name string, size int64, changed bool, parts ...string) manifestEntry {
		e := &entry{source: source, relative: name}
		e.stat.Size = size
		d := source.sampler.digest(e)
		for _, p := range parts {
			d.write([]byte(p))
		}
		d.end(changed)
		for _, found := range source.sampler.entries() {
			if found.Path == name {
				return found
			}
		}
		t.Fatalf("%q is not in the sample", name)
		return manifestEntry{}
	}
	if got := read("quiet", 3, false, "a", "bc"); got.Changed || got.SHA256 != digestOf([]byte("abc")) {
		t.Errorf("quiet: %+v", got)
	}
	if got := read("written to", 3, true, "abc"); !got.Changed || got.SHA256 != "" {
		t.Errorf("written to: %+v", got)
	}
	if got := read("cut off", 3, false, "ab"); !got.Changed || got.SHA256 != "" {
		t.Errorf("cut off: %+v", got)
	}
	c := &comparer{meter: &Meter{}}
	there := walkedPath{}
	there.stat.Size = 2
	if err := c.file(&manifestEntry{Path: "x", Changed: true, Size: 3}, there); err != nil || c.result.Changed != 1 || c.result.Files != 0 {
		t.Errorf("got %v, %+v", err, c.result)
	}
}
