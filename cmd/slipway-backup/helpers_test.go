package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
	"github.com/slipway-dev/slipway/internal/testing/roots"
)

// The test program is slipway-backup itself when these variables say so, with a clock that is ahead.
const (
	helperVariable = "SLIPWAY_BACKUP_HELPER"
	aheadVariable  = "SLIPWAY_BACKUP_AHEAD"
)

func TestMain(m *testing.M) {
	roots.TellIfAsked()
	if os.Getenv(helperVariable) == "" {
		os.Exit(m.Run())
	}
	if os.Args[1] == commandDump || os.Args[1] == commandInstall {
		os.Exit(beside(os.Args[1:]))
	}
	ahead, err := time.ParseDuration(os.Getenv(aheadVariable))
	if err != nil {
		panic(err)
	}
	p := program{output: os.Stdout, resultFile: os.Args[3], interval: time.Hour, clock: aheadClock{ahead}}
	os.Exit(p.run(context.Background(), os.Args[1], os.Args[2]))
}

// aheadClock is ahead of the machine's.
type aheadClock struct{ by time.Duration }

func (c aheadClock) Now() time.Time { return time.Now().Add(c.by) }

func (c aheadClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

const password = "canary-password-3f9a\"\\ with odd characters"

// bench has a repository and what is needed to run commands on it.
type bench struct {
	folder string
	config mover.Config
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{folder: t.TempDir()}
	b.write(t, "secret/password", password+"\n")
	b.config.Repository = mover.Repository{
		Filesystem:       &mover.Filesystem{Path: b.path("repository/team/shop")},
		EncryptionFolder: b.path("secret"),
		WorkFolder:       b.folder,
	}
	b.config.Snapshot = mover.Snapshot{Source: b.path("source")}
	return b
}

func (b *bench) path(name string) string { return filepath.Join(b.folder, name) }

func (b *bench) write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.path(name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// configFile writes the configuration.
func (b *bench) configFile(t testing.TB) string {
	t.Helper()
	raw, err := json.Marshal(b.config)
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, "config.json", string(raw))
	return b.path("config.json")
}

// outcome is what a command left.
type outcome struct {
	code   int
	output string
	raw    []byte
	result result
}

// run runs a command in this process.
func (b *bench) run(t testing.TB, command string) outcome {
	t.Helper()
	var output lockedbuffer.Buffer // the HTTP client of Go may say something when the command has ended
	p := program{output: &output, resultFile: b.path("result.json"), interval: time.Millisecond, clock: aheadClock{}}
	_ = os.Remove(p.resultFile)
	o := outcome{code: p.run(t.Context(), command, b.configFile(t))}
	o.output = output.String()
	o.read(t, p.resultFile)
	return o
}

func (o *outcome) read(t testing.TB, file string) {
	t.Helper()
	var err error
	if o.raw, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(o.raw, &o.result); err != nil {
		t.Fatalf("%v: %s", err, o.raw)
	}
}

// must fails unless a command went well.
func (b *bench) must(t testing.TB, command string) result {
	t.Helper()
	o := b.run(t, command)
	if o.code != 0 || !o.result.OK {
		t.Fatalf("%s: exit code %d\n%s", command, o.code, o.output)
	}
	return o.result
}

// wantKind fails unless a command failed so.
func (b *bench) wantKind(t testing.TB, command string, kind engine.Kind) {
	t.Helper()
	o := b.run(t, command)
	if o.result.OK || o.result.Kind != kind || o.code != exitCodes[kind] || o.result.Message == "" {
		t.Fatalf("%s: exit code %d, result %s, want %s", command, o.code, o.raw, kind)
	}
}

// contents are the checksums of the files in a folder.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		relative, _ := filepath.Rel(folder, path)
		found[relative] = fmt.Sprintf("%x", sha256.Sum256(raw))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
