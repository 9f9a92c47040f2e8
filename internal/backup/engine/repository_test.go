package engine

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// everything makes a folder with all that a file system can hold.
func everything(t *testing.T) string {
	t.Helper()
	folder := tree(t)
	at := func(name string) string { return filepath.Join(folder, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write(t, folder, "empty", "")
	write(t, folder, "line\nfeed", "odd")
	write(t, folder, "bytes \xff\xfe \uEF80 end", "no UTF-8")
	write(t, folder, "\xff folder/inside", "no UTF-8 either")
	write(t, folder, strings.Repeat("n", 255), "long")
	write(t, folder, strings.Repeat("\xf0", 255), "long, and 765 bytes as it is stored")
	write(t, folder, `quote"back\slash<&>`, "for JSON")
	write(t, folder, "placeholder.kopia-entry", "{}")
	write(t, folder, "..data/x", "begins with two dots")
	must(os.MkdirAll(at("empty folder"), 0o755))
	must(os.Symlink("a.txt", at("link")))
	must(os.Symlink("/nowhere/\xff", at("dangling")))
	must(os.Symlink("..", at("out")))
	must(unix.Mkfifo(at("pipe"), 0o640))
	must(os.Link(at("a.txt"), at("sub/same")))
	must(os.Link(at("a.txt"), at("sub/deep/same")))
	sparse, err := os.Create(at("sparse"))
	must(err)
	_, err = sparse.WriteAt([]byte("end"), 40<<20)
	must(err)
	must(sparse.Close())
	must(unix.Setxattr(at("a.txt"), "user.note", []byte{0, 1, 255}, 0))
	must(unix.Setxattr(at("sub"), "user.folder", []byte("x"), 0))
	must(unix.Setxattr(folder, "user.root", []byte("y"), 0))
	if os.Getuid() == 0 {
		must(os.Chown(at("sub/b.txt"), 1234, 5678))
		must(os.Lchown(at("link"), 1234, 5678))
		must(os.Chown(at("sub/deep"), 1234, 5678))
	}
	must(os.Chmod(at("sub/b.txt"), 0o4750|os.ModeSetuid))
	must(os.Chmod(at("empty"), 0))
	must(os.Chmod(at("empty folder"), 0o755|os.ModeSticky|os.ModeSetgid))
	must(os.Chmod(at("sub/deep"), 0o555))
	t.Cleanup(func() { _ = os.Chmod(at("sub/deep"), 0o755) })
	// A time with nanoseconds, before 1970, and far in the future.
	must(os.Chtimes(at("empty"), time.Time{}, time.Unix(1700000000, 123456789)))
	must(os.Chtimes(at("sub/b.txt"), time.Time{}, time.Unix(-1000, 5)))
	must(os.Chtimes(at("sub"), time.Time{}, time.Unix(1000000000, 1)))
	must(os.Chtimes(folder, time.Time{}, time.Unix(1000000001, 2)))
	return folder
}

func TestWhatIsKeptIsRestored(t *testing.T) {
	options := inFolder(t)
	r := created(t, options)
	source := everything(t)
	want := look(t, source)

	made := kept(t, r, "one", source)
	other := opened(t, options)
	verified, err := other.Verify(t.Context(), VerifyOptions{Run: "one", ReadPercent: 100})
	if err != nil {
		t.Fatal(err)
	}
	if verified.Files != made.Stats.Files || verified.Bytes != made.Stats.Bytes {
		t.Errorf("verified %+v, the snapshot has %+v", verified, made.Stats)
	}
	target, result := restored(t, other, "one")
	if diff := cmp.Diff(want, look(t, target)); diff != "" {
		t.Errorf("the restored folder differs (-source +target):\n%s", diff)
	}
	if result.OwnersNotKept+result.AttributesNotKept != 0 {
		t.Errorf("not kept: %v", result.Examples)
	}
	var stat unix.Stat_t
	if err := unix.Stat(filepath.Join(target, "sparse"), &stat); err != nil || stat.Blocks*512 > 1<<20 {
		t.Errorf("the sparse file has %d blocks of 512 bytes (%v)", stat.Blocks, err)
	}
	wantStats := Stats{Files: 15, Folders: 5, Links: 3, Pipes: 1, Bytes: made.Stats.Bytes}
	if diff := cmp.Diff(wantStats, made.Stats); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestARunHasOneSnapshot(t *testing.T) {
	r := created(t, inFolder(t))
	source := tree(t)
	first := kept(t, r, "one", source)
	write(t, source, "more", "not any more")
	again := kept(t, r, "one", source)
	if first.Adopted || !again.Adopted || again.ID != first.ID {
		t.Errorf("got %+v, want the first one %+v adopted", again, first)
	}
	if diff := cmp.Diff(first.Snapshot, again.Snapshot); diff != "" {
		t.Errorf("the adopted snapshot says otherwise (-first +again):\n%s", diff)
	}
}

func TestAnUnchangedSourceAddsNextToNothing(t *testing.T) {
	r := created(t, inFolder(t))
	source := t.TempDir()
	write(t, source, "big", noise(1, 8<<20))
	first := kept(t, r, "one", source)
	second := kept(t, r, "two", source)
	if first.AddedBytes < 8<<20 || second.AddedBytes > 100<<10 {
		t.Errorf("added %d, then %d bytes", first.AddedBytes, second.AddedBytes)
	}
}

func TestAChangeIsSeenThoughTimeAndSizeAreTheSame(t *testing.T) {
	r := created(t, inFolder(t))
	source := t.TempDir()
	write(t, source, "file", "before")
	modified := time.Now().Add(-time.Hour)
	path := filepath.Join(source, "file")
	if err := os.Chtimes(path, modified, modified); err != nil {
		t.Fatal(err)
	}
	kept(t, r, "one", source)
	write(t, source, "file", "after!")
	if err := os.Chtimes(path, modified, modified); err != nil {
		t.Fatal(err)
	}
	kept(t, r, "two", source)
	target, _ := restored(t, r, "two")
	content, err := os.ReadFile(filepath.Join(target, "file"))
	if err != nil || string(content) != "after!" {
		t.Errorf("got %q (%v)", content, err)
	}
}

func TestListIsComplete(t *testing.T) {
	r := created(t, inFolder(t))
	source := tree(t)
	var want []Snapshot
	for _, run := range []string{"one", "two", "three"} {
		want = append(want, kept(t, r, run, source).Snapshot)
	}
	got, err := r.List(t.Context(), ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	got, err = r.List(t.Context(), ListOptions{Run: "two"})
	if err != nil || len(got) != 1 || got[0].ID != want[1].ID {
		t.Errorf("the run two: got %+v, %v", got, err)
	}
}

func TestExpireRemovesWhatItIsTold(t *testing.T) {
	options := inFolder(t)
	r := created(t, options)
	source := tree(t)
	var ids []string
	for _, run := range []string{"one", "two", "three", "four"} {
		ids = append(ids, kept(t, r, run, source).ID)
	}
	reported := []string{ids[2], "0123456789abcdef0123456789abcdef", ids[0], ids[2]}
	result, err := r.Expire(t.Context(), ExpireOptions{Snapshots: reported})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(result.Removed)
	want := []string{ids[0], ids[2]}
	slices.Sort(want)
	if diff := cmp.Diff(want, result.Removed); diff != "" || len(result.Missing) != 1 || result.Kept != 2 {
		t.Errorf("got %+v, want %v removed", result, want)
	}
	left, err := opened(t, options).List(t.Context(), ListOptions{})
	if err != nil || len(left) != 2 || left[0].ID != ids[1] || left[1].ID != ids[3] {
		t.Errorf("left: %+v, %v", left, err)
	}
}

func TestMaintainFreesWhatExpiredAndNothingElse(t *testing.T) {
	t.Parallel()
	options := inFolder(t)
	clock := &fakeClock{}
	options.Clock = clock
	keep, drop := t.TempDir(), t.TempDir()
	write(t, keep, "keep", noise(1, 3<<20))
	write(t, drop, "drop", noise(2, 64<<20))
	r := created(t, options)
	kept(t, r, "keep", keep)
	dropped := kept(t, r, "drop", drop)
	if _, err := r.Expire(t.Context(), ExpireOptions{Snapshots: []string{dropped.ID}}); err != nil {
		t.Fatal(err)
	}
	first, err := r.Maintain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if first.BytesAfter < 67<<20 {
		t.Errorf("the first maintenance freed what a writer may still want: %+v", first)
	}
	sizes := []int64{first.BytesAfter}
	for range 6 {
		clock.step(24 * time.Hour)
		next, err := opened(t, options).Maintain(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, next.BytesAfter)
	}
	// One pack of 20 MiB may hold both, and stay as it is.
	if sizes[6] > 3<<20+20<<20 {
		t.Errorf("the sizes were %d: the last is too large", sizes)
	}
	other := opened(t, options)
	if _, err := other.Verify(t.Context(), VerifyOptions{ReadPercent: 100}); err != nil {
		t.Error(err)
	}
	target, _ := restored(t, other, "keep")
	if diff := cmp.Diff(look(t, keep), look(t, target)); diff != "" {
		t.Errorf("what was kept differs:\n%s", diff)
	}
}

func TestMaintainRemovesUnfinishedFiles(t *testing.T) {
	options := inFolder(t)
	r := created(t, options)
	kept(t, r, "one", tree(t))
	folder := options.Location.Filesystem.Path
	for name, age := range map[string]time.Duration{"p1/old.f.tmp.00ff": 25 * time.Hour, "p1/new.f.tmp.00ff": time.Hour, "mine.txt": 99 * time.Hour} {
		write(t, folder, name, "x")
		at := time.Now().Add(-age)
		if err := os.Chtimes(filepath.Join(folder, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"p1/old.f.tmp.00ff": false, "p1/new.f.tmp.00ff": true, "mine.txt": true} {
		if _, err := os.Stat(filepath.Join(folder, name)); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %t", name, err, want)
		}
	}
}

func TestDelete(t *testing.T) {
	options := inFolder(t)
	r := created(t, options)
	kept(t, r, "one", tree(t))
	folder := options.Location.Filesystem.Path

	for _, id := range []string{"", strings.Repeat("0", 64)} {
		wrong := options
		wrong.ExpectedID = id
		if _, err := Delete(t.Context(), wrong); err == nil {
			t.Fatalf("deleted with the ID %q", id)
		}
	}
	write(t, filepath.Dir(folder), "neighbour/file", "x")
	options.ExpectedID = r.ID()
	result, err := Delete(t.Context(), options)
	if err != nil || result.Deleted < 4 || result.Foreign != 0 {
		t.Fatalf("got %+v, %v", result, err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(folder), "neighbour/file")); err != nil {
		t.Errorf("the neighbour: %v", err)
	}
	if _, err := Delete(t.Context(), options); KindOf(err) != KindNotFound {
		t.Errorf("again: %v", err)
	}
}

func TestDeleteLeavesWhatIsNotARepository(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "photo.jpg", "x")
	options := Options{Location: Location{Filesystem: &Filesystem{Path: folder}}, ExpectedID: strings.Repeat("0", 64)}
	_, err := Delete(t.Context(), options)
	wantKind(t, err, KindNotFound)
	if _, err := os.Stat(filepath.Join(folder, "photo.jpg")); err != nil {
		t.Error(err)
	}
}

// noise is a content that cannot be compressed, the same each time.
func noise(seed uint64, n int) string {
	content := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(content)
	return string(content)
}
