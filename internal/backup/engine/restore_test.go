package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/object"
	"github.com/kopia/kopia/snapshot"
	"github.com/kopia/kopia/snapshot/snapshotfs"
)

func files(t *testing.T, folder string) []string {
	t.Helper()
	var found []string
	for _, line := range look(t, folder) {
		name, _, _ := strings.Cut(line, " ")
		found = append(found, strings.Trim(name, `"`))
	}
	return found
}

func TestRestoreOnePath(t *testing.T) {
	r := created(t, inFolder(t))
	source := tree(t)
	if err := os.Link(filepath.Join(source, "a.txt"), filepath.Join(source, "sub/same")); err != nil {
		t.Fatal(err)
	}
	kept(t, r, "one", source)
	for _, c := range []struct {
		paths, want []string
	}{
		{[]string{"sub/b.txt"}, []string{".", "sub", "sub/b.txt"}},
		{[]string{"sub/deep"}, []string{".", "sub", "sub/deep", "sub/deep/c.bin"}},
		{[]string{"sub/same", "a.txt"}, []string{".", "a.txt", "sub", "sub/same"}},
		{[]string{"sub/same"}, []string{".", "sub", "sub/same"}},
	} {
		target := t.TempDir()
		if _, err := r.Restore(t.Context(), RestoreOptions{Run: "one", Target: target, Paths: c.paths}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, files(t, target)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.paths, diff)
		}
		for _, line := range look(t, target) {
			if path, _, _ := strings.Cut(line, " "); path != `"."` && path != `"sub/same"` && path != `"a.txt"` && !slices.Contains(look(t, source), line) {
				t.Errorf("%q: not as it was: %s", c.paths, line)
			}
		}
	}
}

func TestATargetThatHoldsSomethingIsLeftAlone(t *testing.T) {
	r := created(t, inFolder(t))
	source := tree(t)
	kept(t, r, "one", source)
	target := t.TempDir()
	write(t, target, "a.txt", "mine")
	write(t, target, "other", "mine too")
	before := look(t, target)
	_, err := r.Restore(t.Context(), RestoreOptions{Run: "one", Target: target})
	wantKind(t, err, KindTargetNotEmpty)
	if diff := cmp.Diff(before, look(t, target)); diff != "" {
		t.Errorf("the target changed:\n%s", diff)
	}
	linked := filepath.Join(t.TempDir(), "linked")
	if err := os.Link(filepath.Join(target, "a.txt"), linked); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Restore(t.Context(), RestoreOptions{Run: "one", Target: target, Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(target, "other")); err != nil {
		t.Errorf("what is not in the snapshot: %v", err)
	}
	if diff := cmp.Diff(look(t, source)[1:], look(t, target)[1:]); diff != "" {
		t.Errorf("restored (-source +target):\n%s", diff)
	}
	if content, err := os.ReadFile(linked); err != nil || string(content) != "mine" {
		t.Errorf("another name of a file that was in the way has %q, %v", content, err)
	}
}

func TestOverwriteRemovesNoFolderAndFollowsNoLink(t *testing.T) {
	r := created(t, inFolder(t))
	kept(t, r, "one", tree(t))
	outside := t.TempDir()
	for name, prepare := range map[string]func(target string) error{
		"a folder where a file was": func(target string) error { return os.MkdirAll(filepath.Join(target, "a.txt"), 0o755) },
		"a file where a folder was": func(target string) error { return os.WriteFile(filepath.Join(target, "sub"), nil, 0o644) },
		"a link where a folder was": func(target string) error { return os.Symlink(outside, filepath.Join(target, "sub")) },
	} {
		t.Run(name, func(t *testing.T) {
			target := t.TempDir()
			if err := prepare(target); err != nil {
				t.Fatal(err)
			}
			_, err := r.Restore(t.Context(), RestoreOptions{Run: "one", Target: target, Overwrite: true})
			wantKind(t, err, KindTargetNotEmpty)
		})
	}
	target := t.TempDir()
	if err := os.Symlink(filepath.Join(outside, "victim"), filepath.Join(target, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Restore(t.Context(), RestoreOptions{Run: "one", Target: target, Overwrite: true}); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("outside there is %v, %v", left, err)
	}
}

// forged makes a snapshot as somebody could who has the password: with any names and attributes.
func forged(t *testing.T, r *Repository, run string, lines []attributes, entries func(put func(content string) object.ID) []*snapshot.DirEntry) {
	t.Helper()
	err := r.write(t.Context(), "forge", func(ctx context.Context, w repo.DirectRepositoryWriter) error {
		put := func(content string) object.ID {
			o := w.NewObjectWriter(ctx, object.WriterOptions{})
			defer o.Close()
			if _, err := o.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
			id, err := o.Result()
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		data, err := snapshotfs.WriteDirManifest(ctx, w, "", &snapshot.DirManifest{Entries: entries(put)}, "")
		if err != nil {
			return err
		}
		var beside strings.Builder
		if err := writeAttributes(&beside, Stats{}, lines); err != nil {
			return err
		}
		root, err := snapshotfs.WriteDirManifest(ctx, w, "", &snapshot.DirManifest{Entries: []*snapshot.DirEntry{
			newEntry(dataName, snapshot.EntryTypeDirectory, data, 0),
			newEntry(attributesName, snapshot.EntryTypeFile, put(beside.String()), 0),
		}}, "")
		if err != nil {
			return err
		}
		_, err = snapshot.SaveSnapshot(ctx, w, &snapshot.Manifest{
			Source: sourceOf(""), Description: "{}", RootEntry: newEntry("", snapshot.EntryTypeDirectory, root, 0), Tags: map[string]string{runTag: run},
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAHostileSnapshotStaysInTheTarget(t *testing.T) {
	file := func(name string, id object.ID) *snapshot.DirEntry {
		return newEntry(name, snapshot.EntryTypeFile, id, 0)
	}
	link := func(name string, id object.ID) *snapshot.DirEntry {
		return newEntry(name, snapshot.EntryTypeSymlink, id, 0)
	}
	outside := t.TempDir()
	for name, c := range map[string]struct {
		lines   []attributes
		entries func(put func(string) object.ID) []*snapshot.DirEntry
	}{
		"a name that leads up": {entries: func(put func(string) object.ID) []*snapshot.DirEntry {
			return []*snapshot.DirEntry{file("../up", put("x"))}
		}},
		"a name with a slash": {entries: func(put func(string) object.ID) []*snapshot.DirEntry {
			return []*snapshot.DirEntry{file("/tmp/x", put("x"))}
		}},
		"a link and a file": {entries: func(put func(string) object.ID) []*snapshot.DirEntry {
			return []*snapshot.DirEntry{link("l", put(outside+"/x")), file("l", put("x"))}
		}},
		"a folder of another kind": {entries: func(put func(string) object.ID) []*snapshot.DirEntry {
			return []*snapshot.DirEntry{{Name: "x", Type: "z"}}
		}},
		"a pipe behind a link": {
			lines: []attributes{{Path: "l/pipe", Pipe: &pipe{}}},
			entries: func(put func(string) object.ID) []*snapshot.DirEntry {
				return []*snapshot.DirEntry{link("l", put(outside))}
			},
		},
		"a pipe that leads up": {lines: []attributes{{Path: "../pipe", Pipe: &pipe{}}}, entries: func(func(string) object.ID) []*snapshot.DirEntry { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			r := created(t, inFolder(t))
			forged(t, r, "evil", c.lines, c.entries)
			parent := t.TempDir()
			target := filepath.Join(parent, "target")
			if err := os.Mkdir(target, 0o755); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Restore(t.Context(), RestoreOptions{Run: "evil", Target: target}); err == nil {
				t.Error("it was restored")
			}
			for _, folder := range []string{outside, parent} {
				left, err := os.ReadDir(folder)
				if err != nil || (folder == outside && len(left) != 0) || (folder == parent && len(left) != 1) {
					t.Errorf("%s holds %v, %v", folder, left, err)
				}
			}
			if _, err := r.Verify(t.Context(), VerifyOptions{Run: "evil"}); err == nil {
				t.Error("it was verified")
			}
		})
	}
}

func TestCheckpointsRemoveNoSnapshot(t *testing.T) {
	r := created(t, inFolder(t))
	source := tree(t)
	const earlier = 14 // the library keeps ten
	for i := range earlier {
		kept(t, r, fmt.Sprint(i), source)
	}
	for i := range 30 {
		write(t, source, fmt.Sprintf("new/%d", i), noise(uint64(i), 1<<20))
	}
	before := r.storage.written.Load()
	if _, err := r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: "long", checkpointEvery: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if listed, err := r.List(t.Context(), ListOptions{}); err != nil || len(listed) != earlier+1 {
		t.Errorf("there are %d, %v", len(listed), err)
	}
	all, err := r.manifests(t.Context())
	if err != nil || slices.ContainsFunc(all, func(m *snapshot.Manifest) bool { return !isComplete(m) }) {
		for _, m := range all {
			if !isComplete(m) {
				t.Errorf("left: %s %v %q %v", m.ID, m.Source, m.IncompleteReason, m.Tags)
			}
		}
	}
	t.Logf("%d bytes written", r.storage.written.Load()-before)
}

func TestAnInterruptedRunIsGoneOnFromItsCheckpoint(t *testing.T) {
	options := inFolder(t)
	r := created(t, options)
	source := t.TempDir()
	for i := range 40 {
		write(t, source, fmt.Sprintf("%02d", i), noise(uint64(i), 1<<20))
	}
	ctx, cancel := context.WithCancel(t.Context())
	meter := &Meter{}
	go func() {
		for meter.Progress().Bytes < 30<<20 && ctx.Err() == nil {
			<-time.After(time.Millisecond)
		}
		cancel()
	}()
	_, err := r.Snapshot(ctx, SnapshotOptions{Source: source, Run: "one", Meter: meter, Parallel: 1, checkpointEvery: 20 * time.Millisecond})
	wantKind(t, err, KindCanceled)
	other := opened(t, options)
	made, err := other.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: "one", IgnoreChangeTime: true})
	if err != nil {
		t.Fatal(err)
	}
	if made.AddedBytes > 39<<20 {
		t.Errorf("%d bytes were written anew", made.AddedBytes)
	}
	if _, err := other.Verify(t.Context(), VerifyOptions{ReadPercent: 100}); err != nil {
		t.Error(err)
	}
}

func TestAnotherAttemptGoesOnWithWhatTheLastHasWritten(t *testing.T) {
	r := created(t, inFolder(t))
	source := t.TempDir()
	for i := range 40 {
		write(t, source, fmt.Sprintf("%02d", i), noise(uint64(i), 1<<20))
	}
	kept(t, r, "one", source)
	target := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	meter := &Meter{}
	go func() {
		for meter.Progress().Files < 5 && ctx.Err() == nil {
			<-time.After(time.Millisecond)
		}
		cancel()
	}()
	options := RestoreOptions{Run: "one", Target: target, Attempt: "a", Parallel: 1}
	interrupted := options
	interrupted.Meter = meter
	_, err := r.Restore(ctx, interrupted)
	wantKind(t, err, KindCanceled)

	for name, other := range map[string]string{"of another restore": "b", "of none": ""} {
		options := options
		options.Attempt = other
		if _, err := r.Restore(t.Context(), options); KindOf(err) != KindTargetNotEmpty {
			t.Errorf("an attempt %s: %v", name, err)
		}
	}
	_, err = r.Snapshot(t.Context(), SnapshotOptions{Run: "half", Source: target})
	wantKind(t, err, KindHalfRestored)
	if _, err := r.Restore(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(look(t, source), look(t, target)); diff != "" {
		t.Errorf("(-source +target):\n%s", diff)
	}
	if _, err := r.Restore(t.Context(), options); KindOf(err) != KindTargetNotEmpty {
		t.Errorf("another restore to a target that is done: %v", err)
	}
	if _, err := r.Restore(t.Context(), RestoreOptions{Run: "one", Target: t.TempDir(), Attempt: "../a"}); KindOf(err) != KindInvalid {
		t.Errorf("a name with a slash: %v", err)
	}
}
