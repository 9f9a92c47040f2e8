package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fakeClock is a clock that a test moves.
type fakeClock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (c *fakeClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *fakeClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// inFolder are options for a repository in a folder of the test.
func inFolder(t *testing.T) Options {
	t.Helper()
	return Options{
		Location:   Location{Filesystem: &Filesystem{Path: filepath.Join(t.TempDir(), "destination", "team", "shop")}},
		Password:   "correct horse battery staple",
		WorkFolder: t.TempDir(),
	}
}

// created is a new repository, open.
func created(t *testing.T, options Options) *Repository {
	t.Helper()
	id, err := Create(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	options.ExpectedID = id
	return opened(t, options)
}

func opened(t *testing.T, options Options) *Repository {
	t.Helper()
	r, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// kept makes a snapshot.
func kept(t *testing.T, r *Repository, run, source string) SnapshotResult {
	t.Helper()
	result, err := r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: run})
	if err != nil {
		t.Fatalf("snapshot %s: %v", run, err)
	}
	return result
}

// restored restores a run to a new folder.
func restored(t *testing.T, r *Repository, run string) (string, RestoreResult) {
	t.Helper()
	target := t.TempDir()
	result, err := r.Restore(t.Context(), RestoreOptions{Run: run, Target: target})
	if err != nil {
		t.Fatalf("restore %s: %v", run, err)
	}
	return target, result
}

// write makes a file, and the folders above it.
func write(t *testing.T, folder, name, content string) {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tree makes a folder with a few files.
func tree(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	write(t, folder, "a.txt", "first")
	write(t, folder, "sub/b.txt", "second")
	write(t, folder, "sub/deep/c.bin", strings.Repeat("0123456789abcdef", 100_000))
	return folder
}

// look describes everything that there is to know of a folder, a line for each path.
func look(t *testing.T, folder string) []string {
	t.Helper()
	var lines []string
	first := map[uint64]string{}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		var stat unix.Stat_t
		if err := unix.Lstat(path, &stat); err != nil {
			return err
		}
		line := fmt.Sprintf("%q mode %o owner %d:%d time %d", relative, stat.Mode, stat.Uid, stat.Gid, stat.Mtim.Nano())
		switch {
		case e.Type().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" size %d content %x", stat.Size, sha256.Sum256(content))
			if other, found := first[stat.Ino]; found {
				line += " the same as " + other
			}
			first[stat.Ino] = relative
		case e.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" to %q", target)
		}
		lines = append(lines, line+extendedOf(t, path))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func extendedOf(t *testing.T, path string) string {
	t.Helper()
	names := make([]byte, 4096)
	n, err := unix.Llistxattr(path, names)
	if err != nil {
		return ""
	}
	var text string
	for _, name := range strings.Split(strings.TrimRight(string(names[:n]), "\x00"), "\x00") {
		if !keepsExtended(name) {
			continue
		}
		value := make([]byte, 4096)
		n, err := unix.Lgetxattr(path, name, value)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf(" %s=%x", name, value[:n])
	}
	return text
}

// wantKind fails unless an error has a kind.
func wantKind(t *testing.T, err error, kind Kind) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want %s", kind)
	}
	if got := KindOf(err); got != kind {
		t.Fatalf("got %s (%v), want %s", got, err, kind)
	}
}

// packs returns the files of a repository whose names begin so, the largest first.
func packs(t *testing.T, options Options, prefix string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(options.Location.Filesystem.Path, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		relative, err := filepath.Rel(options.Location.Filesystem.Path, path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(strings.ReplaceAll(relative, "/", ""), prefix) && strings.HasSuffix(path, ".f") {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// together runs cases at once, however few tests may run in parallel: they mostly wait for the library to try again.
func together[C any](t *testing.T, cases map[string]C, run func(t *testing.T, name string, c C)) {
	t.Helper()
	var running sync.WaitGroup
	for name, c := range cases {
		running.Go(func() { t.Run(name, func(t *testing.T) { run(t, name, c) }) })
	}
	running.Wait()
}

// text is a blob.
type text string

func (b text) Length() int                        { return len(b) }
func (b text) WriteTo(w io.Writer) (int64, error) { return strings.NewReader(string(b)).WriteTo(w) }

func (b text) Reader() io.ReadSeekCloser { return textReader{strings.NewReader(string(b))} }

type textReader struct{ *strings.Reader }

func (textReader) Close() error { return nil }
