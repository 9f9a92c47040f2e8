package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// kinds are the kinds of errors that package engine declares.
func kinds(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../internal/backup/engine/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Kind") || len(spec.Values) != 1 {
			return true
		}
		if value, ok := spec.Values[0].(*ast.BasicLit); ok {
			text, err := strconv.Unquote(value.Value)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, text)
		}
		return true
	})
	if len(found) < 15 {
		t.Fatalf("only %q were found", found)
	}
	return found
}

// A kind that the operator does not know would be told as a failure of the program.
func TestTheOperatorKnowsEveryKindOfError(t *testing.T) {
	for _, kind := range kinds(t) {
		if reason := mover.Reason(kind); (reason == slipwayv1alpha1.ReasonMoverFailed) != (kind == string(engine.KindInternal)) {
			t.Errorf("%s is told as %s", kind, reason)
		}
		if _, found := exitCodes[engine.Kind(kind)]; !found {
			t.Errorf("%s has no exit code", kind)
		}
	}
}

// read returns what the operator understands of a command, which has to go well.
func (b *bench) read(t *testing.T, command string) (*mover.Result, result) {
	t.Helper()
	o := b.run(t, command)
	understood, err := mover.ParseResult(string(o.raw))
	if err != nil || !understood.OK || o.code != 0 {
		t.Fatalf("%s: exit code %d, %v\n%s", command, o.code, err, o.raw)
	}
	if understood.Command != command || understood.RepositoryID != o.result.RepositoryID || understood.RepositoryID == "" {
		t.Errorf("%s: got %+v of %s", command, understood, o.raw)
	}
	return understood, o.result
}

func TestTheOperatorReadsWhatTheProgramWrites(t *testing.T) {
	b := newBench(t)
	b.write(t, "source/a", strings.Repeat("some text ", 100_000))
	b.config.Snapshot.Run, b.config.Repository.Create = "run-uid/shop-data", true
	b.config.Verify = mover.Verify{Run: "run-uid/shop-data", ReadPercent: 100}
	b.config.Restore = mover.Restore{Latest: true, Target: t.TempDir(), Overwrite: true}
	b.config.Expire.Retention = &mover.Retention{Last: 1, Limit: 10}

	got, wrote := b.read(t, "snapshot")
	made := mover.SnapshotResult{
		ID: wrote.Snapshot.ID, Run: "run-uid/shop-data", SourceTime: wrote.Snapshot.SourceTime, Start: wrote.Snapshot.Start, Stats: mover.Stats{Files: 1, Bytes: 1_000_000}, AddedBytes: wrote.Snapshot.AddedBytes,
		Manifest: wrote.Snapshot.Manifest,
	}
	if diff := cmp.Diff(&made, got.Snapshot); diff != "" || made.AddedBytes == 0 || made.Start.IsZero() || made.SourceTime.IsZero() || len(made.Manifest) != 64 {
		t.Errorf("snapshot, -want +got:\n%s", diff)
	}
	got, _ = b.read(t, "verify")
	if diff := cmp.Diff(&mover.VerifyResult{Files: 1, Bytes: 1_000_000, ReadFiles: 1, ReadBytes: 1_000_000}, got.Verify); diff != "" {
		t.Errorf("verify, -want +got:\n%s", diff)
	}
	line := []mover.SnapshotLine{{ID: made.ID, Run: made.Run, Manifest: made.Manifest}}
	if diff := cmp.Diff(line, got.Snapshots); diff != "" {
		t.Errorf("verify, -want +got:\n%s", diff)
	}
	got, wrote = b.read(t, "restore")
	restored := mover.RestoreResult{Snapshot: made, Files: 1, Bytes: 1_000_000, OwnersNotKept: wrote.Restore.OwnersNotKept, AttributesNotKept: wrote.Restore.AttributesNotKept}
	restored.Snapshot.AddedBytes = 0
	if diff := cmp.Diff(&restored, got.Restore); diff != "" {
		t.Errorf("restore, -want +got:\n%s", diff)
	}
	got, _ = b.read(t, "expire")
	if diff := cmp.Diff(&mover.ExpireResult{Kept: 1}, got.Expire); diff != "" {
		t.Errorf("expire, -want +got:\n%s", diff)
	}
	got, wrote = b.read(t, "maintain")
	if got.Maintain == nil || got.Maintain.BytesAfter == 0 || got.Maintain.BytesAfter != wrote.Maintain.BytesAfter {
		t.Errorf("maintain: got %+v, want %+v", got.Maintain, wrote.Maintain)
	}
}

// What went wrong is read by its kind.
func TestTheOperatorReadsWhatWentWrong(t *testing.T) {
	b := newBench(t)
	b.config.Snapshot.Run = "run-1"
	b.write(t, "source/a", "x")
	o := b.run(t, "snapshot")
	got, err := mover.ParseResult(string(o.raw))
	if err != nil || got.OK || mover.Reason(got.Kind) != slipwayv1alpha1.ReasonRepositoryNotFound || got.Message == "" {
		t.Errorf("got %+v, %v of %s", got, err, o.raw)
	}
}

// The progress is read from the log.
func TestTheOperatorReadsTheProgress(t *testing.T) {
	var output bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&output, nil))
	log.Info("progress", "progress", engine.Progress{Bytes: 3, TotalBytes: 4, TotalKnown: true})
	got, ok := mover.ParseProgress(output.Bytes())
	if want := (mover.Progress{Bytes: 3, TotalBytes: 4, TotalKnown: true}); !ok || got != want {
		t.Errorf("got %+v of %s", got, output.String())
	}
}

// The pods that use a repository on a volume run as several users.
func TestASharedRepositoryIsForAllUsers(t *testing.T) {
	before := syscall.Umask(0o022)
	defer syscall.Umask(before)
	for _, shared := range []bool{false, true} {
		b := newBench(t)
		b.write(t, "source/a", "x")
		b.config.Repository.Filesystem.Shared, b.config.Repository.Create = shared, true
		b.config.Snapshot.Run = "run-1"
		b.must(t, "snapshot")
		err := filepath.WalkDir(b.path("repository"), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			want := map[bool]fs.FileMode{false: 0o600, true: 0o666}[shared]
			if e.IsDir() {
				want |= want >> 2 & 0o111
			}
			if err == nil && info.Mode().Perm() != want {
				t.Errorf("shared %v: %s has mode %o, want %o", shared, path, info.Mode().Perm(), want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		syscall.Umask(0o022)
	}
}
