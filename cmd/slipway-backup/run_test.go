package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/backup/mover"
)

func TestTheLifeOfARepository(t *testing.T) {
	b := newBench(t)
	b.write(t, "source/a", "first")
	b.write(t, "source/sub/b", strings.Repeat("second", 100_000))
	b.config.Snapshot.Run = "run-1"
	b.wantKind(t, "snapshot", engine.KindNotFound)
	b.config.Repository.Create = true
	made := b.must(t, "snapshot")
	if made.RepositoryID == "" || made.Snapshot.Stats.Files != 2 || made.Snapshot.AddedBytes == 0 || made.PeakMemoryBytes == 0 {
		t.Fatalf("got %+v", made)
	}
	b.config.Repository.Create, b.config.Repository.ID = false, made.RepositoryID

	b.config.Verify = mover.Verify{Run: "run-1", ReadPercent: 100}
	verified := b.must(t, "verify")
	if verified.Verify.Files != 2 || verified.Verify.ReadFiles != 2 || verified.Snapshots[0].ID != made.Snapshot.ID {
		t.Fatalf("got %+v", verified)
	}
	b.config.Snapshot.Run = "run-2"
	second := b.must(t, "snapshot")
	listed := b.must(t, "list")
	if listed.SnapshotCount != 2 || listed.Snapshots[0].Run != "run-2" || listed.Snapshots[1].Files != 2 {
		t.Fatalf("got %+v", listed)
	}
	b.config.Restore = mover.Restore{Run: "run-1", Target: b.path("target")}
	if err := os.Mkdir(b.path("target"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.must(t, "restore")
	if content, err := os.ReadFile(b.path("target/a")); err != nil || string(content) != "first" {
		t.Errorf("restored %q, %v", content, err)
	}
	b.wantKind(t, "restore", engine.KindTargetNotEmpty)

	b.config.Expire.Snapshots = []string{made.Snapshot.ID}
	if expired := b.must(t, "expire").Expire; expired.Removed != 1 || expired.Kept != 1 {
		t.Errorf("got %+v", expired)
	}
	b.config.Verify = mover.Verify{Snapshots: []string{made.Snapshot.ID, second.Snapshot.ID}}
	b.wantKind(t, "verify", engine.KindCorrupt)
	b.must(t, "maintain")
	b.config.Repository.ID = strings.Repeat("0", 64)
	b.wantKind(t, "delete", engine.KindWrongRepository)
	b.config.Repository.ID = made.RepositoryID
	if deleted := b.must(t, "delete").Delete; deleted.Deleted == 0 {
		t.Errorf("got %+v", deleted)
	}
	b.wantKind(t, "list", engine.KindNotFound)
	b.wantKind(t, "snapshot", engine.KindNotFound)
}

func TestEveryKindHasAnExitCodeOfItsOwn(t *testing.T) {
	seen := map[int]engine.Kind{}
	for kind, code := range exitCodes {
		if other, found := seen[code]; found || code == 0 || code > 125 {
			t.Errorf("%s has the exit code %d, as has %s", kind, code, other)
		}
		seen[code] = kind
	}
	raw, err := os.ReadFile("../../internal/backup/engine/errors.go")
	if err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(strings.NewReader(string(raw)))
	for scanner.Scan() {
		var name, value string
		if n, _ := fmt.Sscanf(scanner.Text(), "\tKind%s Kind = %q", &name, &value); n != 2 {
			continue
		}
		if _, found := exitCodes[engine.Kind(value)]; !found {
			t.Errorf("%s has no exit code", value)
		}
	}
}

func TestAConfigurationThatNobodyUnderstandsIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":            `{`,
		"two of them":        `{"repository": {"filesystem": {"path": "/x"}}} {}`,
		"an unknown field":   `{"repository": {}, "snapshot": {"exlude": ["x"]}}`,
		"create and an ID":   `{"repository": {"create": true, "id": "1"}}`,
		"no location":        `{"repository": {}}`,
		"a missing password": `{"repository": {"filesystem": {"path": "/x"}, "encryptionFolder": "/nowhere"}}`,
		"no password":        `{"repository": {"filesystem": {"path": "/x"}}}`,
		"no bucket":          `{"repository": {"s3": {}}}`,
		"no credentials":     `{"repository": {"s3": {"bucket": "x"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write(t, "bad.json", text)
			p := program{output: &strings.Builder{}, resultFile: b.path("result.json"), interval: time.Hour, clock: aheadClock{}}
			if code := p.run(t.Context(), "snapshot", b.path("bad.json")); code != exitInvalid {
				t.Errorf("exit code %d", code)
			}
			var o outcome
			o.read(t, p.resultFile)
			if o.result.Kind != engine.KindInvalid || o.result.OK {
				t.Errorf("got %s", o.raw)
			}
		})
	}
}

func TestAResultFits(t *testing.T) {
	long := strings.Repeat("\"ä\n\x01", 4000)
	full := engine.Stats{SkippedExamples: []string{long, long}, UnreadableExamples: []string{long}}
	many := make([]engine.Snapshot, 5000)
	for i := range many {
		many[i] = engine.Snapshot{ID: strings.Repeat("f", 32), Run: fmt.Sprintf("run-%d", i)}
	}
	for name, r := range map[string]*result{
		"a long message":    {Command: "snapshot", Message: long},
		"many examples":     {Command: "snapshot", OK: true, Snapshot: &engine.SnapshotResult{Snapshot: engine.Snapshot{Stats: full}}},
		"a long restore":    {Command: "restore", OK: true, Restore: &engine.RestoreResult{Examples: []string{long}, Snapshot: engine.Snapshot{Stats: full}}},
		"a run of any name": {Command: "snapshot", OK: true, RepositoryID: "id", Snapshot: &engine.SnapshotResult{Snapshot: engine.Snapshot{Run: long}}},
	} {
		t.Run(name, func(t *testing.T) {
			r.setSnapshots(many)
			raw, err := r.marshal(newScrubber(nil))
			if err != nil || len(raw) > maxResult {
				t.Fatalf("%d bytes, %v", len(raw), err)
			}
			var back result
			if err := json.Unmarshal(raw, &back); err != nil {
				t.Fatal(err)
			}
			if back.OK != r.OK || back.Command != r.Command || back.RepositoryID != r.RepositoryID {
				t.Errorf("got %s", raw)
			}
		})
	}
	r := &result{Command: "list", OK: true}
	r.setSnapshots(many)
	raw, err := r.marshal(newScrubber(nil))
	var back result
	if err != nil || json.Unmarshal(raw, &back) != nil || back.SnapshotCount != 5000 || len(back.Snapshots) < 15 || back.Snapshots[0].Run != "run-0" {
		t.Errorf("%v: %d listed of %d", err, len(back.Snapshots), back.SnapshotCount)
	}
}

func TestNoSecretIsSaid(t *testing.T) {
	b := newBench(t)
	secrets := []string{password, "canary-access-key-77", "canary-secret-key-88", "canary-token-99"}
	b.write(t, "source/a", "x")
	b.write(t, "secret/accessKeyID", secrets[1]+"\n")
	b.write(t, "secret/secretAccessKey", secrets[2]+"\n")
	b.write(t, "secret/sessionToken", secrets[3]+"\n")
	var said strings.Builder
	note := func(o outcome) {
		said.WriteString(o.output)
		said.Write(o.raw)
	}
	b.config.Snapshot.Run = "1"
	b.config.Repository.Create = true
	for _, command := range commandNames() {
		note(b.run(t, command))
	}
	b.write(t, "target/"+strings.ReplaceAll(password, "/", "")+"-in-a-name", "x")
	b.config.Restore = mover.Restore{Run: "1", Target: b.path("target")}
	note(b.run(t, "restore")) // names a file that is in the way

	b.config.Repository.Filesystem = nil
	b.write(t, "secret/endpoint", "https://127.0.0.1:1\n")
	b.config.Repository.S3 = &mover.S3{Bucket: "bucket", CredentialsFolder: b.path("secret")}
	options, err := optionsOf(b.config.Repository)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&said, "%v %+v %#v %s", options, options, options, options.Location)
	if raw, err := json.Marshal(options); err == nil {
		said.Write(raw)
	}
	if at := strings.Index(said.String(), "canary"); at >= 0 {
		t.Errorf("a secret is in what was said: %s", said.String()[max(0, at-100):])
	}
	if !strings.Contains(said.String(), "(secret)-in-a-name") {
		t.Error("a secret in the name of a file was not replaced, so the test proves nothing")
	}
}

func TestNoSecretIsWrittenToAFile(t *testing.T) {
	b := newBench(t)
	b.write(t, "source/a", "x")
	b.config.Snapshot.Run = "1"
	b.config.Repository.Create = true
	options, err := optionsOf(b.config.Repository)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Create(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	r, err := engine.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Snapshot(t.Context(), engine.SnapshotOptions{Source: b.path("source"), Run: "1"}); err != nil {
		t.Fatal(err)
	}
	looked := 0
	err = filepath.WalkDir(b.folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path == b.path("secret/password") {
			return err
		}
		looked++
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), "canary") {
			t.Errorf("%s holds the password", path)
		}
		return err
	})
	if err != nil || looked < 5 {
		t.Errorf("looked at %d files, %v", looked, err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(b.path("slipway-repository-*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestProgressIsTold(t *testing.T) {
	b := newBench(t)
	for i := range 50 {
		b.write(t, fmt.Sprintf("source/%d", i), strings.Repeat(fmt.Sprint(i), 200_000))
	}
	b.config.Snapshot.Run = "1"
	b.config.Repository.Create = true
	o := b.run(t, "snapshot")
	var last struct {
		Progress *engine.Progress `json:"progress"`
	}
	for line := range strings.Lines(o.output) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if fields["msg"] == "progress" {
			if err := json.Unmarshal([]byte(line), &last); err != nil {
				t.Fatal(err)
			}
		}
	}
	if last.Progress == nil || last.Progress.Bytes == 0 {
		t.Fatalf("no progress in\n%s", o.output)
	}
	if reflect.DeepEqual(*last.Progress, engine.Progress{}) || last.Progress.Files > 50 {
		t.Errorf("got %+v", last.Progress)
	}
}
