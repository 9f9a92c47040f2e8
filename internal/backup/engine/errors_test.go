package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kopia/kopia/repo/blob"
	"github.com/minio/minio-go/v7"
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
	wantKind(t, err, KindPathNotFound)
	_, err = r.Restore(t.Context(), RestoreOptions{Run: "one", Target: t.TempDir(), Paths: []string{"a.txt/below"}})
	wantKind(t, err, KindPathNotFound)
	_, err = r.Snapshot(t.Context(), SnapshotOptions{Run: "two", Source: "/nowhere"})
	wantKind(t, err, KindNotFound)
	_, err = r.Snapshot(t.Context(), SnapshotOptions{Run: "two", Source: tree(t), Paths: []string{"none"}})
	wantKind(t, err, KindPathNotFound)
	_, err = r.Verify(t.Context(), VerifyOptions{Snapshots: []string{strings.Repeat("0", 32)}})
	wantKind(t, err, KindCorrupt) // the caller knows that it was made
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

// Servers differ in what they say of keys that nobody has: versitygw has a code of its own, and the status 404.
func TestWhatAServerRefusesIsDenied(t *testing.T) {
	for code, want := range map[string]Kind{
		"InvalidAccessKeyId": KindAccessDenied, "SignatureDoesNotMatch": KindAccessDenied, "ExpiredToken": KindAccessDenied,
		"XAdminUserNotFound": KindAccessDenied,
		"NoSuchBucket":       KindBucketNotFound, "InvalidBucketName": KindBucketNotFound, "NoSuchKey": KindUnreachable,
	} {
		if got := responseKind(minio.ErrorResponse{Code: code, StatusCode: 404}); got != want {
			t.Errorf("%s is %s, want %s", code, got, want)
		}
	}
}

// The library tries again after whatever it does not know. With these codes that only takes time.
func TestAnAnswerThatNothingChangesIsFinal(t *testing.T) {
	for code, final := range map[string]bool{
		"InvalidAccessKeyId": true, "SignatureDoesNotMatch": true, "ExpiredToken": true, "InvalidToken": true, "AccessDenied": true,
		"XAdminUserNotFound": true, "NoSuchBucket": true, "InvalidBucketName": true,
		"SlowDown": false, "InternalError": false, "QuotaExceeded": false, "RequestTimeout": false, "": false,
	} {
		response := minio.ErrorResponse{Code: code, StatusCode: 403}
		err := refusedCredentials(response)
		if got := errors.Is(err, blob.ErrInvalidCredentials); got != final {
			t.Errorf("%q: final %t, want %t", code, got, final)
		}
		if got, want := storageKind(err), responseKind(response); got != want {
			t.Errorf("%q is %s, want %s", code, got, want)
		}
	}
}

func TestDamageThatAFullCacheExplainsIsNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind Kind
		room uint64
		want Kind
	}{
		"damage":                       {KindCorrupt, leastRoom, KindCorrupt},
		"damage, and a full disk":      {KindCorrupt, leastRoom - 1, KindNoSpace},
		"no such thing, on a full one": {KindNotFound, 0, KindNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			wantKind(t, withRoom(fail(c.kind, "read", "what was found"), c.room), c.want)
		})
	}
	if err := withRoom(nil, 0); err != nil {
		t.Errorf("without an error there is %v", err)
	}
}

// The words of an answer are a server's, and may be anything: a busy one is asked again, whatever it says.
func TestOnlyTheCodeOfAnAnswerRefusesCredentials(t *testing.T) {
	for _, c := range []struct {
		answer minio.ErrorResponse
		final  bool
	}{
		{minio.ErrorResponse{Code: "ExpiredToken", StatusCode: 400, Message: "x"}, true},
		{minio.ErrorResponse{Code: "SlowDown", StatusCode: 503, Message: "The provided token has expired"}, false},
		{minio.ErrorResponse{Code: "InternalError", StatusCode: 500, Message: "AccessDenied: forbidden, not found"}, false},
		{minio.ErrorResponse{Code: "SlowDown", StatusCode: 503, BucketName: "The provided token has expired", Key: "denied"}, false},
	} {
		for _, translate := range []func(error) error{translated, refusedCredentials} {
			if err := translate(fmt.Errorf("read: %w", c.answer)); errors.Is(err, blob.ErrInvalidCredentials) != c.final {
				t.Errorf("%+v: %v", c.answer, err)
			}
		}
	}
}
