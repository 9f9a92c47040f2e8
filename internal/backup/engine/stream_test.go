package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeStream gives a text, and then ends as it is told to.
type fakeStream struct {
	io.Reader
	end      error // what Read returns after the text; nil: io.EOF
	complete error
	asked    bool // whether Complete was called
}

func (s *fakeStream) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if errors.Is(err, io.EOF) && s.end != nil {
		err = s.end
	}
	return n, err
}

func (s *fakeStream) Complete() error {
	s.asked = true
	return s.complete
}

func ofStream(s Stream) *StreamOptions {
	return &StreamOptions{Open: func(context.Context) (Stream, error) { return s, nil }}
}

// wantNoSnapshot fails when anything is left that looks like a snapshot, finished or not.
func wantNoSnapshot(t *testing.T, r *Repository) {
	t.Helper()
	all, err := r.manifests(t.Context())
	if err != nil || len(all) != 0 {
		t.Fatalf("%d snapshots, %v", len(all), err)
	}
}

func TestAStreamIsKeptAsOneFileAndComesBack(t *testing.T) {
	r := created(t, inFolder(t))
	for name, content := range map[string][]byte{
		"a byte":               []byte("x"),
		"less than a buffer":   []byte(noise(7, streamBuffer-1)),
		"a buffer":             []byte(noise(7, streamBuffer)),
		"several chunks":       []byte(noise(7, 30<<20+17)),
		"many times the same":  bytes.Repeat([]byte("the same line\n"), 1_000_000),
		"nothing, as is asked": nil,
	} {
		t.Run(name, func(t *testing.T) {
			stream := &fakeStream{Reader: bytes.NewReader(content)}
			meter := &Meter{}
			options := SnapshotOptions{Run: name, Volume: "dump", Stream: ofStream(stream), Meter: meter, AllowEmpty: len(content) == 0}
			options.Stream.Name = "shop.sql"
			made, err := r.Snapshot(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Stats{Files: 1, Bytes: int64(len(content)), Stream: true}, made.Stats); diff != "" || made.ID == "" || !stream.asked {
				t.Errorf("asked %v, -want +got:\n%s", stream.asked, diff)
			}
			if got := meter.Progress(); got.Bytes != int64(len(content)) || got.Files != 1 {
				t.Errorf("the meter shows %+v", got)
			}
			verified, err := r.Verify(t.Context(), VerifyOptions{Run: name, ReadPercent: 1})
			if err != nil || verified.Files != 1 || verified.ReadFiles != 1 || verified.ReadBytes != int64(len(content)) {
				t.Errorf("verified %+v, %v", verified, err)
			}
			target, result := restored(t, r, name)
			got, err := os.ReadFile(filepath.Join(target, "shop.sql"))
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("restored %d bytes, %v; want %d", len(got), err, len(content))
			}
			info, err := os.Stat(filepath.Join(target, "shop.sql"))
			if err != nil || info.Mode() != 0o600 || !info.ModTime().Equal(made.End) || result.OwnersNotKept != 0 {
				t.Errorf("restored %+v, %v, %+v", info, err, result)
			}
			same, err := r.Compare(t.Context(), CompareOptions{Snapshot: made.ID, Manifest: made.Manifest, Folder: target, AllowEmpty: true})
			if want := (CompareResult{Entries: 1, Files: 1, Bytes: int64(len(content))}); err != nil || same != want {
				t.Errorf("compared %+v, %v; want %+v", same, err, want)
			}
		})
	}
}

// A drill compares a dump with the bytes as the command wrote them.
func TestARestoredStreamThatDiffersIsFound(t *testing.T) {
	r := created(t, inFolder(t))
	content := noise(7, 3*streamBuffer+5)
	made, err := r.Snapshot(t.Context(), SnapshotOptions{Run: "run", Stream: ofStream(&fakeStream{Reader: strings.NewReader(content)})})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(path string) error
		want   Kind
	}{
		"one byte":         {func(path string) error { return os.WriteFile(path, []byte(content[1:]+"x"), 0o600) }, KindContentDiffers},
		"cut off":          {func(path string) error { return os.Truncate(path, 3*streamBuffer) }, KindContentDiffers},
		"the mode":         {func(path string) error { return os.Chmod(path, 0o644) }, KindModeDiffers},
		"missing":          {os.Remove, KindNothingRestored},
		"another name":     {func(path string) error { return os.Rename(path, path+"x") }, KindFileMissing},
		"a file is beside": {func(path string) error { return os.WriteFile(path+"x", nil, 0o600) }, KindContentDiffers},
	} {
		t.Run(name, func(t *testing.T) {
			target := t.TempDir()
			if _, err := r.Restore(t.Context(), RestoreOptions{Run: "run", Target: target, Attempt: "a"}); err != nil {
				t.Fatal(err)
			}
			if err := tc.change(filepath.Join(target, DefaultStreamName)); err != nil {
				t.Fatal(err)
			}
			if got, err := compared(t, r, made.Snapshot, target); KindOf(err) != tc.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// The folder that a dump is restored to is none of the dump's.
func TestTheRestoreOfAStreamLeavesTheTargetItselfAsItIs(t *testing.T) {
	r := created(t, inFolder(t))
	if _, err := r.Snapshot(t.Context(), SnapshotOptions{Run: "run", Stream: ofStream(&fakeStream{Reader: strings.NewReader("x")})}); err != nil {
		t.Fatal(err)
	}
	target := t.TempDir()
	if err := os.Chmod(target, 0o751); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Restore(t.Context(), RestoreOptions{Run: "run", Target: target, Attempt: "a"}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(target)
	if err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("the target is %v, %v", info, err)
	}
	entries, err := os.ReadDir(target)
	if err != nil || len(entries) != 1 || entries[0].Name() != DefaultStreamName {
		t.Errorf("it holds %v, %v", entries, err)
	}
}

// A stream of which nobody said that it is complete leaves no snapshot, however much of it came.
func TestAStreamThatDoesNotSayThatItIsCompleteLeavesNoSnapshot(t *testing.T) {
	whole := []byte(noise(7, 10<<20))
	failed := fail(KindDumpFailed, "run the command", "the command ended with exit code 1")
	tests := map[string]struct {
		bytes         int
		end, complete error
		kind          Kind
	}{
		"no word, nothing came":          {0, nil, errors.New("no word"), KindSourceUnreadable},
		"no word after 90 %":             {9 << 20, nil, errors.New("no word"), KindSourceUnreadable},
		"no word after all":              {10 << 20, nil, errors.New("no word"), KindSourceUnreadable},
		"failed, nothing came":           {0, nil, failed, KindDumpFailed},
		"failed after 90 %":              {9 << 20, nil, failed, KindDumpFailed},
		"failed after all":               {10 << 20, nil, failed, KindDumpFailed},
		"unreadable at once":             {0, errors.New("broken"), nil, KindSourceUnreadable},
		"unreadable after 90 %":          {9 << 20, failed, nil, KindDumpFailed},
		"unreadable after all":           {10 << 20, errors.New("broken"), nil, KindSourceUnreadable},
		"cut off":                        {9 << 20, io.ErrUnexpectedEOF, nil, KindSourceUnreadable},
		"well ended, and nothing came":   {0, nil, nil, KindSourceEmpty},
		"it gives nothing for ever":      {9 << 20, errIdle, nil, KindSourceUnreadable},
		"a word, and an error before it": {9 << 20, errors.New("broken"), nil, KindSourceUnreadable},
	}
	r := created(t, inFolder(t))
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			stream := &fakeStream{Reader: bytes.NewReader(whole[:tc.bytes]), end: tc.end, complete: tc.complete}
			if errors.Is(tc.end, errIdle) {
				stream.Reader, stream.end = io.MultiReader(stream.Reader, idle{}), nil
			}
			_, err := r.Snapshot(t.Context(), SnapshotOptions{Run: "run", Stream: ofStream(stream)})
			wantKind(t, err, tc.kind)
			wantNoSnapshot(t, r)
			if stream.asked && tc.end != nil {
				t.Error("it was asked whether it is complete, though it had failed")
			}
		})
	}
	// What the failed ones have left is of no harm.
	if _, err := r.Snapshot(t.Context(), SnapshotOptions{Run: "run", Stream: ofStream(&fakeStream{Reader: bytes.NewReader(whole)})}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Verify(t.Context(), VerifyOptions{ReadPercent: 100}); err != nil {
		t.Error(err)
	}
}

var errIdle = errors.New("idle")

// idle gives neither bytes nor an error.
type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// The same run is not kept twice, and its source is not even opened.
func TestAStreamIsNotOpenedForARunThatHasASnapshot(t *testing.T) {
	r := created(t, inFolder(t))
	made, err := r.Snapshot(t.Context(), SnapshotOptions{Run: "run", Stream: ofStream(&fakeStream{Reader: strings.NewReader("x")})})
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.Snapshot(t.Context(), SnapshotOptions{Run: "run", Stream: &StreamOptions{Open: func(context.Context) (Stream, error) {
		t.Error("it was opened")
		return nil, errors.New("opened")
	}}})
	if err != nil || again.ID != made.ID || !again.Adopted {
		t.Errorf("got %+v, %v", again, err)
	}
}

func TestAStreamThatCannotBeOpenedLeavesNoSnapshot(t *testing.T) {
	r := created(t, inFolder(t))
	_, err := r.Snapshot(t.Context(), SnapshotOptions{Run: "run", Stream: &StreamOptions{Open: func(context.Context) (Stream, error) {
		return nil, fail(KindDumpLost, "wait for the command", "nobody came")
	}}})
	wantKind(t, err, KindDumpLost)
	wantNoSnapshot(t, r)
}

// endless gives bytes until the context ends, and then fails as a connection does that was closed.
type endless struct {
	ctx    context.Context
	cancel func()
	given  int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.given += len(p); e.given > 5<<20 {
		e.cancel()
	}
	if e.ctx.Err() != nil {
		return 0, fail(KindDumpLost, "read", "closed")
	}
	return len(p), nil
}

func (e *endless) Complete() error { return nil }

func TestAStreamEndsWithTheContext(t *testing.T) {
	r := created(t, inFolder(t))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := r.Snapshot(ctx, SnapshotOptions{Run: "run", Stream: &StreamOptions{Open: func(ctx context.Context) (Stream, error) {
		return &endless{ctx: ctx, cancel: cancel}, nil
	}}})
	wantKind(t, err, KindCanceled)
	wantNoSnapshot(t, r)
}

func TestAStreamHasTheNameOfAFile(t *testing.T) {
	r := created(t, inFolder(t))
	for _, name := range []string{".", "..", "a/b", "/", "a\x00b", strings.Repeat("n", 256), markPrefix + "x"} {
		options := ofStream(&fakeStream{Reader: strings.NewReader("x")})
		options.Name = name
		_, err := r.Snapshot(t.Context(), SnapshotOptions{Run: "run", Stream: options})
		wantKind(t, err, KindInvalid)
	}
	for run, name := range map[string]string{"1": "with space", "2": "\xff\xfe", "3": strings.Repeat("n", 255)} {
		options := ofStream(&fakeStream{Reader: strings.NewReader("x")})
		options.Name = name
		if _, err := r.Snapshot(t.Context(), SnapshotOptions{Run: run, Stream: options}); err != nil {
			t.Fatal(err)
		}
		target, _ := restored(t, r, run)
		if _, err := os.Stat(filepath.Join(target, name)); err != nil {
			t.Error(err)
		}
	}
}

// A storage that fails meanwhile is what is told, not the stream that was ended because of it.
func TestAStorageThatFailsEndsAStream(t *testing.T) {
	options := inFolder(t)
	r := created(t, options)
	written := 0
	stream := &fakeStream{Reader: readerFunc(func(p []byte) (int, error) {
		if written += len(p); written > 1<<20 {
			// The next pack cannot be written.
			_ = os.RemoveAll(options.Location.Filesystem.Path)
			_ = os.WriteFile(options.Location.Filesystem.Path, nil, 0o600)
		}
		if written > 4<<30 {
			t.Error("nobody noticed")
			return 0, io.EOF
		}
		_, _ = rand.NewChaCha8([32]byte{byte(written), byte(written >> 8), byte(written >> 16), byte(written >> 24)}).Read(p)
		return len(p), nil
	})}
	_, err := r.Snapshot(t.Context(), SnapshotOptions{Run: "run", Stream: ofStream(stream)})
	if kind := KindOf(err); kind != KindNotFound && kind != KindUnreachable {
		t.Fatalf("got %s: %v", kind, err)
	}
	t.Logf("ended after %d MiB: %v", written>>20, err)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
