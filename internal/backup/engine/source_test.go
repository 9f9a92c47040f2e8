package engine

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestNamesThereAndBack(t *testing.T) {
	names := []string{"a", "ä", "\xff", "a\xffb", "\uEF80", "\uEFFF", "\xee\xbe", "\uFFFD", "\xf0\x9f", "..."}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		name := make([]byte, 1+random.IntN(12))
		for i := range name {
			name[i] = byte(1 + random.IntN(255))
		}
		names = append(names, strings.ReplaceAll(string(name), "/", "_"))
	}
	seen := map[string]string{}
	for _, name := range names {
		encoded := encodeName(name)
		if !utf8.ValidString(encoded) {
			t.Fatalf("%q becomes %q, which is no UTF-8", name, encoded)
		}
		if other, found := seen[encoded]; found && other != name {
			t.Fatalf("%q and %q both become %q", name, other, encoded)
		}
		seen[encoded] = name
		if name == "." || name == ".." {
			continue
		}
		if back, err := decodeName(encoded); err != nil || back != name {
			t.Fatalf("%q becomes %q, becomes %q, %v", name, encoded, back, err)
		}
	}
}

func TestNamesThatLeadSomewhereAreRefused(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "/", "a\x00", "\uEFC3\uEFA4", "../x"} {
		if decoded, err := decodeName(name); err == nil {
			t.Errorf("%q is taken for %q", name, decoded)
		}
	}
}

func TestFilter(t *testing.T) {
	for _, c := range []struct {
		paths, exclude []string
		path           string
		want           bool
	}{
		{path: "a/b", want: true},
		{exclude: []string{"*.tmp"}, path: "x.tmp"},
		{exclude: []string{"*.tmp"}, path: "a/b/x.tmp"},
		{exclude: []string{"*.tmp"}, path: "a/b/x.tmp.gz", want: true},
		{exclude: []string{"/x.tmp"}, path: "a/x.tmp", want: true},
		{exclude: []string{"/x.tmp"}, path: "x.tmp"},
		{exclude: []string{"a/*/c"}, path: "a/b/c"},
		{exclude: []string{"a/*/c"}, path: "a/b/d/c", want: true},
		{exclude: []string{"a/**/c"}, path: "a/b/d/c"},
		{exclude: []string{"a/**/c"}, path: "a/c"},
		{exclude: []string{"cache/"}, path: "a/cache/"},
		{exclude: []string{"cache/"}, path: "a/cache", want: true},
		{exclude: []string{"[ab]x"}, path: "bx"},
		{paths: []string{"a/b"}, path: "a/", want: true},
		{paths: []string{"a/b"}, path: "a", want: false},
		{paths: []string{"a/b"}, path: "a/b", want: true},
		{paths: []string{"a/b"}, path: "a/b/c", want: true},
		{paths: []string{"a/b"}, path: "a/bc"},
		{paths: []string{"/a/../b/"}, path: "b/x", want: true},
		{paths: []string{"a"}, exclude: []string{"x"}, path: "a/x"},
	} {
		f, err := newFilter(c.paths, c.exclude)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.wants(strings.TrimSuffix(c.path, "/"), strings.HasSuffix(c.path, "/")); got != c.want {
			t.Errorf("paths %q without %q: %q is wanted: %t", c.paths, c.exclude, c.path, got)
		}
	}
	for _, bad := range []string{"", "/", "a//b", "["} {
		if _, err := newFilter(nil, []string{bad}); KindOf(err) != KindInvalid || err == nil {
			t.Errorf("the pattern %q: %v", bad, err)
		}
	}
	if _, err := newFilter([]string{".."}, nil); err == nil {
		t.Error("the path .. is taken")
	}
}

func TestWhatIsExcludedIsNotKept(t *testing.T) {
	r := created(t, inFolder(t))
	source := tree(t)
	write(t, source, "sub/deep/cache/x", "x")
	result, err := r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: "one", Exclude: []string{"cache/", "a.txt"}})
	if err != nil || result.Stats.Files != 2 || result.Stats.Folders != 2 {
		t.Errorf("got %+v, %v", result.Stats, err)
	}
	result, err = r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: "two", Paths: []string{"sub/deep/cache", "a.txt"}})
	if err != nil || result.Stats.Files != 2 || result.Stats.Folders != 3 {
		t.Errorf("got %+v, %v", result.Stats, err)
	}
	if _, err := r.Verify(t.Context(), VerifyOptions{ReadPercent: 1}); err != nil {
		t.Error(err)
	}
}

func TestAnEmptySourceIsToldApart(t *testing.T) {
	r := created(t, inFolder(t))
	source := t.TempDir()
	if err := os.MkdirAll(filepath.Join(source, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(source, "a/b"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: "one"})
	wantKind(t, err, KindSourceEmpty)
	made, err := r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: "one", AllowEmpty: true})
	if err != nil || made.Stats.Files != 0 || made.Stats.Folders < 2 {
		t.Errorf("got %+v, %v", made.Stats, err)
	}
	restored(t, r, "one")
}

func TestSocketsAndDevicesAreSkippedAndCounted(t *testing.T) {
	if !becameRoot(t) {
		return
	}
	r := created(t, inFolder(t))
	source := tree(t)
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(socket)
	want := int64(1)
	if err := unix.Bind(socket, &unix.SockaddrUnix{Name: filepath.Join(source, "s")}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(filepath.Join(source, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err == nil {
		want++
	} else if !errors.Is(err, unix.EPERM) { // not even the root user of a namespace may
		t.Fatal(err)
	}
	made := kept(t, r, "one", source)
	if made.Stats.Skipped != want || made.Stats.Files != 3 || len(made.Stats.SkippedExamples) != int(want) {
		t.Errorf("got %+v", made.Stats)
	}
}

// TestASourceThatChanges makes snapshots while files grow, vanish and are replaced, by folders and by links that lead out.
func TestASourceThatChanges(t *testing.T) {
	t.Parallel()
	const snapshots = 4
	r := created(t, inFolder(t))
	source, outside := t.TempDir(), t.TempDir()
	write(t, outside, "secret", "the password of the repository")
	write(t, outside, "folder/secret", "the password of the repository")
	for i := range 200 {
		write(t, source, fmt.Sprintf("folder%d/file%d", i%20, i), noise(uint64(i), 20<<10))
	}
	write(t, source, "stays", "here")
	stop := make(chan struct{})
	var changing sync.WaitGroup
	for worker := range 2 {
		changing.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(worker)))
			for {
				select {
				case <-stop:
					return
				default:
					disturb(random, source, outside)
				}
			}
		})
	}
	for i := range snapshots {
		made, err := r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: fmt.Sprint(i), Parallel: 4})
		if err != nil {
			t.Errorf("snapshot %d: %v", i, err)
			continue
		}
		if made.Stats.Unreadable != 0 {
			t.Errorf("unreadable: %v", made.Stats.UnreadableExamples)
		}
	}
	close(stop)
	changing.Wait()
	verified, err := r.Verify(t.Context(), VerifyOptions{ReadPercent: 100})
	if err != nil || len(verified.Snapshots) != snapshots {
		t.Fatalf("verified %d, %v", len(verified.Snapshots), err)
	}
	for i := range snapshots {
		target, result := restored(t, r, fmt.Sprint(i))
		if got, err := compared(t, r, result.Snapshot, target); err != nil || got.Files == 0 {
			t.Errorf("snapshot %d is other than what was read: %+v, %v", i, got, err)
		}
		for _, line := range look(t, target) {
			if strings.Contains(line, contentOf("the password of the repository")) {
				t.Fatalf("a file of another folder was kept: %s", line)
			}
		}
	}
}

// A rename can replace a symbolic link by a file at any moment. There is always something there, so it must never be told as
// unreadable, which would end a backup, and never be left out.
func TestALinkThatIsReplacedByAFileIsKept(t *testing.T) {
	folder := t.TempDir()
	s, err := openSource(folder, &filter{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.close() }()
	replace := func(make func(path string) error) {
		path := filepath.Join(folder, "current")
		if err := errors.Join(make(path+".new"), os.Rename(path+".new", path)); err != nil {
			t.Error(err)
		}
	}
	link := func(path string) error { return os.Symlink("elsewhere", path) }
	file := func(path string) error { return os.WriteFile(path, nil, 0o600) }
	replace(link)
	stop := make(chan struct{})
	var replacing sync.WaitGroup
	replacing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				replace(file)
				replace(link)
			}
		}
	})
	defer replacing.Wait()
	defer close(stop)
	opened, err := os.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	for range 20_000 {
		found := 0
		s.lookAt(int(opened.Fd()), "current", "current", func(_ *entry, _ string, err error) {
			found++
			if err != nil {
				t.Error(err)
			}
		})
		if found != 1 || t.Failed() {
			t.Fatalf("found %d times", found)
		}
	}
}

// listing is what a file system lists.
type listing []string

func (l listing) Readdirnames(int) ([]string, error) { return slices.Clone(l), nil }

func TestANameThatIsListedTwiceIsKeptOnce(t *testing.T) {
	names, err := namesIn(listing{"b", "c", "a", "b"})
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); err != nil || diff != "" {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
}

// disturb changes something. What fails because the other worker was there first does not matter.
func disturb(random *rand.Rand, source, outside string) {
	folder := filepath.Join(source, fmt.Sprintf("folder%d", random.IntN(20)))
	file := filepath.Join(folder, fmt.Sprintf("file%d", random.IntN(200)))
	switch random.IntN(7) {
	case 0:
		_ = os.Remove(file)
	case 1:
		inPlace(file, os.O_CREATE|os.O_TRUNC, func(f *os.File) { _, _ = f.WriteString(noise(random.Uint64(), random.IntN(40<<10))) })
	case 2:
		inPlace(file, os.O_APPEND, func(f *os.File) { _, _ = f.WriteString(noise(random.Uint64(), 10<<10)) })
	case 3:
		inPlace(file, 0, func(f *os.File) { _ = f.Truncate(int64(random.IntN(1000))) })
	case 4:
		_ = os.WriteFile(file+".new", []byte("replaced"), 0o644)
		_ = os.Rename(file+".new", file)
	case 5:
		_ = os.Remove(file)
		_ = os.Symlink(filepath.Join(outside, "secret"), file)
	default:
		_ = os.Rename(folder, folder+".moved")
		_ = os.Symlink(filepath.Join(outside, "folder"), folder)
		_ = os.Remove(folder)
		_ = os.Rename(folder+".moved", folder)
	}
}

// inPlace changes a file, and through a symbolic link none: what is outside stays as it is.
func inPlace(path string, flags int, change func(*os.File)) {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW|flags, 0o644)
	if err != nil {
		return
	}
	change(f)
	_ = f.Close()
}

func contentOf(text string) string { return fmt.Sprintf("content %x", sha256.Sum256([]byte(text))) }

func TestMeterCountsWhatIsThere(t *testing.T) {
	r := created(t, inFolder(t))
	meter := &Meter{}
	made, err := r.Snapshot(t.Context(), SnapshotOptions{Source: tree(t), Run: "one", Meter: meter})
	if err != nil {
		t.Fatal(err)
	}
	got := meter.Progress()
	if diff := cmp.Diff(made.Stats.Bytes, got.Bytes); diff != "" || got.Files != made.Stats.Files {
		t.Errorf("got %+v, the snapshot has %+v", got, made.Stats)
	}
}
