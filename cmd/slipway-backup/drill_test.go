package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// drilled is a bench whose repository holds the verified copy of a volume, and is configured for a drill of it.
func drilled(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.write(t, "source/a", "first")
	b.write(t, "source/sub/b", strings.Repeat("second", 100_000))
	b.write(t, "source/sub/c", "third")
	if err := os.Symlink("sub/b", b.path("source/link")); err != nil {
		t.Fatal(err)
	}
	b.config.Repository.Create = true
	b.config.Snapshot.Run, b.config.Snapshot.Volume = "run-uid/shop-data", "shop-data"
	b.config.Verify = mover.Verify{Run: "run-uid/shop-data", ReadPercent: 100}
	made := b.must(t, "snapshot")
	b.config.Repository.Create, b.config.Repository.ID = false, made.RepositoryID
	verified := b.must(t, "verify")
	if verified.Snapshots[0].Manifest != made.Snapshot.Manifest || made.Snapshot.Manifest == "" {
		t.Fatalf("the manifest %q was written, and %q verified", made.Snapshot.Manifest, verified.Snapshots[0].Manifest)
	}
	if err := os.Mkdir(b.path("scratch"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.config.Drill = mover.Drill{Folder: b.path("scratch"), NotBefore: made.Snapshot.Start, Volumes: []mover.DrillVolume{{
		Volume: "shop-data", Snapshot: made.Snapshot.ID, Run: "run-uid/shop-data", SourceTime: made.Snapshot.Start.Truncate(time.Second), Manifest: made.Snapshot.Manifest,
	}}}
	return b
}

// process runs a command in a process of its own, as each step of a Job is.
func (b *bench) process(t *testing.T, command string) outcome {
	t.Helper()
	var output bytes.Buffer
	process := exec.CommandContext(t.Context(), os.Args[0], command, b.configFile(t), b.path("result.json"))
	process.Env = append(os.Environ(), helperVariable+"=yes", aheadVariable+"=0s")
	process.Stdout, process.Stderr = &output, &output
	err := process.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	o := outcome{code: process.ProcessState.ExitCode(), output: output.String()}
	o.read(t, b.path("result.json"))
	if o.result.OK != (o.code == 0) || o.result.Command != command {
		t.Fatalf("%s: exit code %d, and it says %s\n%s", command, o.code, o.raw, o.output)
	}
	return o
}

func TestADrillThatPasses(t *testing.T) {
	b := drilled(t)
	if o := b.process(t, "restore"); o.code != 0 {
		t.Fatal(o.output)
	}
	before := contents(t, b.path("scratch"))
	o := b.process(t, "compare")
	understood, err := mover.ParseResult(string(o.raw))
	if err != nil || o.code != 0 {
		t.Fatalf("%v\n%s", err, o.output)
	}
	want := &mover.DrillResult{Volumes: 1, Files: 3, Bytes: 600_010, Entries: 5}
	if diff := cmp.Diff(want, understood.Drill); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(contents(t, b.path("source")), contents(t, b.path("scratch/shop-data"))); diff != "" {
		t.Errorf("-source +scratch:\n%s", diff)
	}
	if diff := cmp.Diff(before, contents(t, b.path("scratch"))); diff != "" {
		t.Errorf("to compare changed the scratch:\n%s", diff)
	}
}

// Each of these turns the drill red, with a reason of its own. The real program runs each step in another process.
func TestADrillThatFails(t *testing.T) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	type mutation struct {
		// before happens before the restore, between after it.
		before, between func(*testing.T, *bench)
		step            string
		want            engine.Kind
	}
	volume := func(change func(*mover.DrillVolume)) func(*testing.T, *bench) {
		return func(_ *testing.T, b *bench) { change(&b.config.Drill.Volumes[0]) }
	}
	scratch := func(change func(path string) error, path string) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) { must(t, change(filepath.Join(b.path("scratch/shop-data"), path))) }
	}
	another := func(t *testing.T, b *bench, run string) result {
		b.write(t, "source/a", "another "+run)
		b.config.Snapshot.Run = run
		return b.must(t, "snapshot")
	}
	mutations := map[string]mutation{
		"a pack flipped": {before: func(t *testing.T, b *bench) {
			must(t, spoil(b.path("repository"), "p", func(path string, raw []byte) error {
				raw[64] ^= 1
				return os.WriteFile(path, raw, 0o644)
			}))
		}, step: "restore", want: engine.KindCorrupt},
		"a pack deleted": {before: func(t *testing.T, b *bench) {
			must(t, spoil(b.path("repository"), "p", func(path string, _ []byte) error { return os.Remove(path) }))
		}, step: "restore", want: engine.KindCorrupt},
		"the repository deleted": {before: func(t *testing.T, b *bench) {
			must(t, os.RemoveAll(b.path("repository/team/shop")))
			must(t, os.MkdirAll(b.path("repository/team/shop"), 0o755))
		}, step: "restore", want: engine.KindNotFound},
		"a snapshot that is not there": {before: volume(func(v *mover.DrillVolume) { v.Snapshot = strings.Repeat("0", 32) }), step: "restore", want: engine.KindSnapshotMissing},
		"a snapshot that expired": {before: func(t *testing.T, b *bench) {
			b.config.Expire.Snapshots = []string{b.config.Drill.Volumes[0].Snapshot}
			b.must(t, "expire")
		}, step: "restore", want: engine.KindSnapshotMissing},
		"no snapshot": {before: volume(func(v *mover.DrillVolume) { v.Snapshot = "" }), step: "restore", want: engine.KindSnapshotMissing},
		"a snapshot that nobody verified": {before: func(t *testing.T, b *bench) {
			made := another(t, b, "run-2/shop-data")
			b.config.Drill.Volumes[0].Snapshot, b.config.Drill.Volumes[0].Run = made.Snapshot.ID, "run-2/shop-data"
		}, step: "restore", want: engine.KindSnapshotMissing},
		"the snapshot of another run":    {before: volume(func(v *mover.DrillVolume) { v.Run = "run-uid-2/shop-data" }), step: "restore", want: engine.KindSnapshotDiffers},
		"the snapshot of another time":   {before: volume(func(v *mover.DrillVolume) { v.SourceTime = v.SourceTime.Add(time.Second) }), step: "restore", want: engine.KindSnapshotDiffers},
		"a snapshot that is too old":     {before: func(_ *testing.T, b *bench) { b.config.Drill.NotBefore = b.config.Drill.NotBefore.Add(time.Second) }, step: "restore", want: engine.KindSnapshotStale},
		"a scratch that holds something": {before: func(t *testing.T, b *bench) { b.write(t, "scratch/shop-data/old", "x") }, step: "restore", want: engine.KindTargetUnwritable},
		"a volume that leads out":        {before: volume(func(v *mover.DrillVolume) { v.Volume = ".." }), step: "restore", want: engine.KindSnapshotDiffers},
		"another repository":             {before: func(_ *testing.T, b *bench) { b.config.Repository.ID = strings.Repeat("0", 64) }, step: "restore", want: engine.KindWrongRepository},
		"the manifest of another snapshot": {before: func(t *testing.T, b *bench) {
			b.config.Drill.Volumes[0].Manifest = another(t, b, "run-3/shop-data").Snapshot.Manifest
		}, step: "compare", want: engine.KindManifestDiffers},
		"a manifest that status does not know": {before: volume(func(v *mover.DrillVolume) { v.Manifest = "" }), step: "compare", want: engine.KindManifestMissing},
		"the restore of an older snapshot": {before: func(t *testing.T, b *bench) {
			// Somebody rolled back what is restored, and not what status knows.
			old := b.config.Drill.Volumes[0]
			made := another(t, b, "run-4/shop-data")
			b.config.Verify.Run = "run-4/shop-data"
			b.must(t, "verify")
			if o := b.process(t, "restore"); o.code != 0 {
				t.Fatal(o.output)
			}
			b.config.Drill.Volumes[0] = mover.DrillVolume{
				Volume: old.Volume, Snapshot: made.Snapshot.ID, Run: "run-4/shop-data", SourceTime: made.Snapshot.Start, Manifest: made.Snapshot.Manifest,
			}
		}, step: "compare", want: engine.KindContentDiffers},
		"an empty folder": {between: func(t *testing.T, b *bench) {
			must(t, os.RemoveAll(b.path("scratch/shop-data")))
			must(t, os.Mkdir(b.path("scratch/shop-data"), 0o755))
		}, step: "compare", want: engine.KindNothingRestored},
		"no folder": {between: func(t *testing.T, b *bench) { must(t, os.RemoveAll(b.path("scratch/shop-data"))) }, step: "compare", want: engine.KindNothingRestored},
		"one byte": {between: scratch(func(path string) error {
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			raw[300_000] ^= 1
			return os.WriteFile(path, raw, 0o644)
		}, "sub/b"), step: "compare", want: engine.KindContentDiffers},
		"a file missing":     {between: scratch(os.Remove, "sub/c"), step: "compare", want: engine.KindFileMissing},
		"a file too many":    {between: scratch(func(path string) error { return os.WriteFile(path, nil, 0o644) }, "more"), step: "compare", want: engine.KindContentDiffers},
		"the mode of a file": {between: scratch(func(path string) error { return os.Chmod(path, 0o666) }, "a"), step: "compare", want: engine.KindModeDiffers},
		"a link elsewhere": {between: scratch(func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink("sub/c", path))
		}, "link"), step: "compare", want: engine.KindLinkDiffers},
		"a link instead of a file": {between: scratch(func(path string) error {
			return errors.Join(os.Rename(path, filepath.Join(path, "../../hidden")), os.Symlink("../hidden", path))
		}, "sub/c"), step: "compare", want: engine.KindLinkDiffers},
		"no volume": {between: func(_ *testing.T, b *bench) { b.config.Drill.Volumes = nil }, step: "compare", want: engine.KindInvalid},
	}
	for name, m := range mutations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := drilled(t)
			if m.before != nil {
				m.before(t, b)
			}
			var o outcome
			_, err := os.Stat(b.path("scratch/shop-data/a"))
			if restored := err == nil; !restored {
				o = b.process(t, "restore")
			}
			if m.step == "compare" {
				if o.code != 0 {
					t.Fatalf("the restore failed: %s", o.output)
				}
				if m.between != nil {
					m.between(t, b)
				}
				o = b.process(t, "compare")
			}
			if o.result.OK || o.result.Kind != m.want || o.code != exitCodes[m.want] || o.result.Drill != nil || o.result.Message == "" {
				t.Fatalf("%s: exit code %d, result %s, want %s", m.step, o.code, o.raw, m.want)
			}
		})
	}
}

// spoil changes the largest file of a repository whose name begins so.
func spoil(folder, prefix string, change func(path string, raw []byte) error) error {
	var largest string
	var size int64
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		relative, err := filepath.Rel(filepath.Join(folder, "team", "shop"), path)
		if err != nil || !strings.HasPrefix(strings.ReplaceAll(relative, "/", ""), prefix) || !strings.HasSuffix(path, ".f") {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Size() > size {
			largest, size = path, info.Size()
		}
		return err
	})
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(largest)
	if err != nil {
		return err
	}
	return change(largest, raw)
}

// An empty source proves nothing, unless that is what the user expects.
// A copy that was read from a snapshot of the volume is of the moment of that. Status may tell an earlier one, and no later one.
func TestADrillOfACopyThatIsOfAnEarlierMoment(t *testing.T) {
	b := drilled(t)
	moment := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	b.config.Snapshot.Run, b.config.Snapshot.SourceTime, b.config.Verify.Run = "staged/shop-data", moment, "staged/shop-data"
	made := b.must(t, "snapshot")
	b.must(t, "verify")
	if !made.Snapshot.SourceTime.Equal(moment) || !made.Snapshot.Start.After(moment) {
		t.Errorf("it is of %s and was read at %s, want one of %s", made.Snapshot.SourceTime, made.Snapshot.Start, moment)
	}
	for reported, want := range map[time.Duration]engine.Kind{0: "", -time.Minute: "", time.Minute: engine.KindSnapshotDiffers} {
		if err := os.RemoveAll(b.path("scratch/shop-data")); err != nil {
			t.Fatal(err)
		}
		b.config.Drill.NotBefore = moment
		b.config.Drill.Volumes[0] = mover.DrillVolume{
			Volume: "shop-data", Snapshot: made.Snapshot.ID, Run: "staged/shop-data", SourceTime: moment.Add(reported), Manifest: made.Snapshot.Manifest,
		}
		o := b.process(t, "restore")
		if o.result.Kind != want {
			t.Errorf("told %s: got %s, want %q", reported, o.raw, want)
		}
		if want == "" {
			if o := b.process(t, "compare"); o.code != 0 {
				t.Errorf("told %s: %s", reported, o.raw)
			}
		}
	}
}

func TestADrillOfAnEmptySource(t *testing.T) {
	for allowed, want := range map[bool]engine.Kind{false: engine.KindNothingCompared, true: ""} {
		b := drilled(t)
		if err := os.RemoveAll(b.path("source")); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(b.path("source"), 0o755); err != nil {
			t.Fatal(err)
		}
		b.config.Snapshot.Run, b.config.Snapshot.AllowEmpty, b.config.Verify.Run = "empty/shop-data", true, "empty/shop-data"
		made := b.must(t, "snapshot")
		b.must(t, "verify")
		b.config.Drill.AllowEmpty = allowed
		b.config.Drill.Volumes[0] = mover.DrillVolume{
			Volume: "shop-data", Snapshot: made.Snapshot.ID, Run: "empty/shop-data", SourceTime: made.Snapshot.Start, Manifest: made.Snapshot.Manifest,
		}
		if o := b.process(t, "restore"); o.code != 0 {
			t.Fatal(o.output)
		}
		if o := b.process(t, "compare"); o.result.Kind != want {
			t.Errorf("allowed %v: got %s", allowed, o.raw)
		}
	}
}
