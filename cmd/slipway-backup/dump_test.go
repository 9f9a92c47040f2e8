package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// dumping is a repository, and a folder for the socket between the two processes.
type dumping struct {
	*bench
	t      *testing.T
	socket string
}

func newDumping(t *testing.T) *dumping {
	t.Helper()
	d := &dumping{bench: newBench(t), t: t}
	d.socket = filepath.Join(t.TempDir(), "socket")
	d.config.Repository.Create = true
	d.config.Snapshot = mover.Snapshot{Run: "run", Volume: "dump", Dump: &mover.Dump{Socket: d.socket, Name: "shop.sql"}}
	return d
}

// side is a process of slipway-backup.
type side struct {
	*exec.Cmd
	output *lockedbuffer.Buffer
}

// start runs the test program as slipway-backup, which ends with the test.
func (d *dumping) start(environment []string, arguments ...string) side {
	d.t.Helper()
	s := side{Cmd: exec.Command(os.Args[0], arguments...), output: &lockedbuffer.Buffer{}}
	s.Env = append(append(os.Environ(), helperVariable+"=yes", aheadVariable+"=0s"), environment...)
	s.Stdout, s.Stderr = s.output, s.output
	if err := s.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if s.ProcessState == nil {
			_ = s.Process.Kill()
			_ = s.Wait()
		}
	})
	return s
}

// keeps starts the side that keeps the output.
func (d *dumping) keeps() side {
	d.t.Helper()
	_ = os.Remove(d.path("result.json"))
	return d.start(nil, "snapshot", d.configFile(d.t), d.path("result.json"))
}

// runs starts the side that runs a command of the shell. A signal that comes before it waits would end it as any process.
func (d *dumping) runs(script string, environment ...string) side {
	d.t.Helper()
	s := d.start(environment, "dump", "--socket", d.socket, "--", "/bin/sh", "-c", script)
	d.wait("the side that runs the command to wait", func() bool { return strings.Contains(s.output.String(), waitingToBeAsked) })
	return s
}

// end waits for the side that keeps the output, and returns what came of it.
func (d *dumping) end(keeps side) outcome {
	d.t.Helper()
	_ = keeps.Wait()
	o := outcome{code: keeps.ProcessState.ExitCode(), output: keeps.output.String()}
	o.read(d.t, d.path("result.json"))
	return o
}

// stop asks a side to end, as a kubelet does, and fails unless it does so at once and well.
func (d *dumping) stop(s side) {
	d.t.Helper()
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatalf("%v: %s", err, s.output)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			d.t.Errorf("%v: %s", err, s.output)
		}
	case <-time.After(time.Minute):
		d.t.Fatal("it does not end")
	}
}

// snapshots are the runs of all snapshots, finished or not, that there are.
func (d *dumping) snapshots() []string {
	d.t.Helper()
	options, err := optionsOf(d.config.Repository)
	if err != nil {
		d.t.Fatal(err)
	}
	r, err := engine.Open(d.t.Context(), options)
	if engine.KindOf(err) == engine.KindNotFound {
		return nil
	}
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Close(context.Background())
	listed, err := r.List(d.t.Context(), engine.ListOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	var runs []string
	for _, s := range listed {
		runs = append(runs, s.Run)
	}
	return runs
}

func TestADumpIsKeptVerifiedAndRestored(t *testing.T) {
	d := newDumping(t)
	content := strings.Repeat("a line of a dump, which a database may have written\n", 200_000)
	d.write(t, "content", content)
	runs := d.runs("cat " + d.path("content"))
	o := d.end(d.keeps())
	if o.code != 0 || !o.result.OK || o.result.Snapshot.Stats.Files != 1 || o.result.Snapshot.Stats.Bytes != int64(len(content)) {
		t.Fatalf("exit code %d: %s\n%s\n%s", o.code, o.raw, o.output, runs.output)
	}
	d.stop(runs)
	d.config.Repository.Create = false
	d.config.Verify = mover.Verify{Run: "run", ReadPercent: 5}
	if v := d.must(t, "verify"); v.Verify.ReadBytes != int64(len(content)) || v.Verify.Files != 1 {
		t.Errorf("verified %+v", v.Verify)
	}
	d.config.Restore = mover.Restore{Latest: true, Volume: "dump", Target: t.TempDir()}
	d.must(t, "restore")
	if got, err := os.ReadFile(filepath.Join(d.config.Restore.Target, "shop.sql")); err != nil || string(got) != content {
		t.Errorf("restored %d bytes, %v", len(got), err)
	}
	// The copy of the run is there: nobody is asked to run a command once more.
	again := d.runs("touch " + d.path("ran-again"))
	if o := d.end(d.keeps()); o.code != 0 || !o.result.Snapshot.Adopted {
		t.Errorf("exit code %d: %s", o.code, o.raw)
	}
	d.stop(again)
	if _, err := os.Stat(d.path("ran-again")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command ran again: %v", err)
	}
}

func TestADumpThatFailsLeavesNoSnapshotAndSaysWhy(t *testing.T) {
	tests := map[string]struct {
		script string
		kind   engine.Kind
		says   string
	}{
		"it fails after 90 %":       {"head -c 9000000 /dev/urandom; echo the disk is full >&2; exit 1", engine.KindDumpFailed, "exit code 1: the disk is full"},
		"it fails at once":          {"exit 3", engine.KindDumpFailed, "exit code 3"},
		"there is no such command":  {"exec /usr/bin/no-such-dump", engine.KindDumpFailed, "exit code 127"},
		"it is killed":              {"head -c 9000000 /dev/urandom; kill -9 $$", engine.KindDumpFailed, "signal 9"},
		"it gives nothing":          {"true", engine.KindSourceEmpty, ""},
		"it leaves a child":         {"head -c 9000000 /dev/urandom; sleep 60 &", engine.KindDumpFailed, "left a process behind"},
		"it says a secret":          {"echo $PGPASSWORD >&2; exit 1", engine.KindDumpFailed, "exit code 1: $PGPASSWORD"},
		"it says more than is room": {"yes noise | head -c 1000000 >&2; echo the cause >&2; exit 1", engine.KindDumpFailed, "the cause"},
	}
	d := newDumping(t)
	if _, err := engine.Create(t.Context(), d.options()); err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d.t = t
			d.socket = filepath.Join(t.TempDir(), "socket")
			d.config.Snapshot.Dump.Socket = d.socket
			runs := d.runs(tc.script, "PGPASSWORD=canary-dump-5")
			o := d.end(d.keeps())
			if o.code != exitCodes[tc.kind] || o.result.OK || o.result.Kind != tc.kind || !strings.Contains(o.result.Message, tc.says) {
				t.Errorf("exit code %d: %s", o.code, o.raw)
			}
			if strings.Contains(string(o.raw)+o.output, "canary-dump-5") {
				t.Errorf("the value of a variable is in %s\n%s", o.raw, o.output)
			}
			d.stop(runs)
		})
	}
	d.t = t
	if left := d.snapshots(); len(left) != 0 {
		t.Errorf("there are snapshots of %q", left)
	}
}

func (d *dumping) options() engine.Options {
	d.t.Helper()
	options, err := optionsOf(d.config.Repository)
	if err != nil {
		d.t.Fatal(err)
	}
	return options
}

// waitFor waits for a file that a command makes.
func (d *dumping) waitFor(file string) {
	d.t.Helper()
	d.wait("a file "+file, func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
}

// wait waits for something that processes do.
func (d *dumping) wait(what string, happened func() bool) {
	d.t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	limit := time.After(3 * time.Minute) // a busy machine takes long to open a repository
	for !happened() {
		select {
		case <-ticker.C:
		case <-limit:
			d.t.Fatalf("there never was %s", what)
		}
	}
}

// The container that runs the command is killed after 90 %, and started again, as a kubelet does.
func TestACommandThatWasCutOffIsNotRunAgain(t *testing.T) {
	d := newDumping(t)
	script := fmt.Sprintf("echo x >>%s; head -c 9000000 /dev/urandom; touch %s; exec sleep 60", d.path("runs"), d.path("most"))
	runs := d.runs(script)
	keeps := d.keeps()
	d.waitFor(d.path("most"))
	if err := runs.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	again := d.runs(script)
	o := d.end(keeps)
	if o.code != exitCodes[engine.KindDumpLost] || o.result.Kind != engine.KindDumpLost || !strings.Contains(o.result.Message, "cut off") {
		t.Errorf("exit code %d: %s", o.code, o.raw)
	}
	d.stop(again)
	if count, err := os.ReadFile(d.path("runs")); err != nil || string(count) != "x\n" {
		t.Errorf("it ran %q times, %v", count, err)
	}
	if left := d.snapshots(); len(left) != 0 {
		t.Errorf("there are snapshots of %q", left)
	}
}

// The process that keeps the output is killed after 90 %. The command ends, and another attempt begins anew.
func TestADumpOutlivesNobodyWhoKeepsIt(t *testing.T) {
	d := newDumping(t)
	runs := d.runs(fmt.Sprintf("head -c 9000000 /dev/urandom; touch %s; while :; do echo more; done; touch %s", d.path("most"), d.path("ended")))
	keeps := d.keeps()
	d.waitFor(d.path("most"))
	if err := keeps.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = keeps.Wait()
	d.stop(runs)
	if _, err := os.Stat(d.path("ended")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command went on to its end: %v", err)
	}
	if left := d.snapshots(); len(left) != 0 {
		t.Errorf("there are snapshots of %q", left)
	}
	// Another pod has a folder of its own.
	d.socket = filepath.Join(t.TempDir(), "socket")
	d.config.Snapshot.Dump.Socket = d.socket
	runs = d.runs("echo all of it")
	if o := d.end(d.keeps()); o.code != 0 || o.result.Snapshot.Stats.Bytes != 10 {
		t.Errorf("exit code %d: %s", o.code, o.raw)
	}
	d.stop(runs)
}

// A pod that is being deleted asks both to end.
func TestADumpThatIsStoppedLeavesNoSnapshot(t *testing.T) {
	d := newDumping(t)
	runs := d.runs(fmt.Sprintf("trap 'exit 0' TERM; head -c 9000000 /dev/urandom; touch %s; while :; do sleep 0.05; done", d.path("most")))
	keeps := d.keeps()
	d.waitFor(d.path("most"))
	d.stop(runs)
	if o := d.end(keeps); o.result.Kind != engine.KindDumpLost {
		t.Errorf("exit code %d: %s", o.code, o.raw)
	}
	if left := d.snapshots(); len(left) != 0 {
		t.Errorf("there are snapshots of %q", left)
	}
}

// What stands in the way of the socket is the doing of the container that shares its folder.
func TestALinkInTheWayOfTheSocketIsRefused(t *testing.T) {
	d := newDumping(t)
	if err := os.Symlink(d.path("secret/password"), d.socket); err != nil {
		t.Fatal(err)
	}
	if o := d.end(d.keeps()); o.result.Kind != engine.KindDumpFailed {
		t.Errorf("exit code %d: %s", o.code, o.raw)
	}
	if raw, err := os.ReadFile(d.path("secret/password")); err != nil || string(raw) != password+"\n" {
		t.Errorf("the file holds %q, %v", raw, err)
	}
}

func TestTheProgramInstallsItself(t *testing.T) {
	d := newDumping(t)
	folder := t.TempDir()
	target := filepath.Join(folder, "slipway-backup")
	for range 2 { // the kubelet may begin anew
		if s := d.start(nil, "install", target); s.Wait() != nil {
			t.Fatal(s.output)
		}
	}
	got, err := os.Stat(target)
	own, ownErr := os.Stat("/proc/self/exe")
	if err != nil || ownErr != nil || got.Size() != own.Size() || got.Mode().Perm() != 0o555 {
		t.Errorf("got %v, %v of %v, %v", got, err, own, ownErr)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
	for _, arguments := range [][]string{{"install"}, {"install", "/nowhere/at/all"}, {"dump"}, {"dump", "--socket", "x"}, {"dump", "--", "true"}, {"dump", "--nonsense"}} {
		if s := d.start(nil, arguments...); s.Wait() == nil {
			t.Errorf("%q went well: %s", arguments, s.output)
		}
	}
}
