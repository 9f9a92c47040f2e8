//go:build backupfaults

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// completed is how a pair of processes ended that the operator would call a backup.
const completed = "Completed"

var steps = []mover.Step{mover.StepSnapshot, mover.StepVerify}

// injection is one Job into which something goes wrong: a source, a repository of its own that holds an earlier snapshot, and
// what its row has arranged.
type injection struct {
	*bench
	t      testing.TB
	arena  *arena
	row    row
	s3     bool
	random *rand.Rand
	proxy  *proxy

	// What a row arranges. Nil and zero: nothing.
	before, between, lift func()
	during                map[mover.Step]func(*os.Process)
	message               func(mover.Step, []byte) []byte
	prefix                []string // of the command line, such as that of prlimit
	environment           []string
	ahead                 map[mover.Step]time.Duration // by which the clock is off
	user                  uint32
	limit                 time.Duration                   // of a step, as the deadline of its Job
	lie                   func(mover.Step) ([]byte, bool) // a planted bug: the result of a step that does not run
	same                  func(restored string) error

	expected []string
	files    map[string]bool // of the repository, before the snapshot
	said     bytes.Buffer
	results  map[mover.Step][]byte
	hung     bool
	problems []string
}

func (i *injection) problem(format string, arguments ...any) {
	i.problems = append(i.problems, fmt.Sprintf(format, arguments...))
}

// check fails the test for what the injection itself could not do.
func (i *injection) check(err error) {
	i.t.Helper()
	if err != nil {
		i.t.Errorf("%s: %v", i.row.name, err)
	}
}

// program returns the command line of a step. Only where the clock is off, the test program stands in for slipway-backup: with
// the same code and another clock.
func (i *injection) program(step mover.Step, file string, faulty bool) (arguments, environment []string) {
	environment = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + i.path("work")}, i.environment...)
	if ahead, off := i.ahead[step]; off && faulty {
		return []string{os.Args[0], string(step), i.configFile(i.t), file}, append(environment, helperVariable+"=yes", aheadVariable+"="+ahead.String())
	}
	if faulty {
		arguments = append(arguments, i.prefix...)
	}
	return append(arguments, i.arena.binary, string(step), "--config", i.configFile(i.t), "--result", file, "--storage-timeout", i.row.patience.String()), environment
}

// run runs a step as the container of a pod does, and says how it ended as the kubelet does.
func (i *injection) run(step mover.Step, faulty bool) corev1.ContainerStateTerminated {
	if faulty && i.lie != nil {
		if raw, reported := i.lie(step); reported {
			i.results[step] = raw
			return corev1.ContainerStateTerminated{Message: string(raw)}
		}
	}
	file := i.path("result-" + string(step))
	i.check(os.WriteFile(file, nil, 0o666))
	i.check(os.Chmod(file, 0o666))
	arguments, environment := i.program(step, file, faulty)
	limit := time.Minute + 2*i.row.patience
	if faulty && i.limit > 0 {
		limit = i.limit
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	process := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	process.Env = environment
	var output bytes.Buffer
	process.Stdout, process.Stderr = &output, &output
	process.WaitDelay = time.Second
	if i.user != 0 {
		process.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: i.user, Gid: i.user}}
	}
	if err := process.Start(); err != nil {
		i.check(err)
		return corev1.ContainerStateTerminated{ExitCode: 128}
	}
	if hook := i.during[step]; faulty && hook != nil {
		hook(process.Process)
	}
	_ = process.Wait()
	i.hung = i.hung || (ctx.Err() != nil && i.limit == 0)
	i.check(removeCaches(i.path("work")))
	raw, err := os.ReadFile(file)
	i.check(err)
	fmt.Fprintf(&i.said, "%q %q\n", arguments, environment)
	i.said.Write(output.Bytes())
	i.said.Write(raw)
	if faulty && i.message != nil {
		raw = i.message(step, raw)
	}
	i.results[step] = raw
	state := corev1.ContainerStateTerminated{ExitCode: int32(process.ProcessState.ExitCode()), Message: string(raw[:min(len(raw), 4096)])}
	if status, ok := process.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		state.ExitCode = 128 + int32(status.Signal())
	}
	return state
}

func removeCaches(folder string) error {
	left, err := filepath.Glob(filepath.Join(folder, "slipway-repository-*"))
	for _, path := range left {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// attempt runs what a Job runs, and judges it as the operator does.
func (i *injection) attempt(tag string, faulty bool) string {
	i.config.Snapshot.Run = tag
	if i.config.Verify.Run == "" || !faulty {
		i.config.Verify.Run = tag
	}
	i.results = map[mover.Step][]byte{}
	made := i.run(mover.StepSnapshot, faulty)
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod", Labels: map[string]string{batchv1.JobNameLabel: "job", batchv1.ControllerUidLabel: "job"}},
		Status: corev1.PodStatus{
			Phase:                 corev1.PodFailed,
			InitContainerStatuses: []corev1.ContainerStatus{{Name: string(mover.StepSnapshot), State: corev1.ContainerState{Terminated: &made}}},
		},
	}
	if made.ExitCode == 0 { // or the kubelet does not start the next one
		if faulty && i.between != nil {
			i.between()
		}
		verified := i.run(mover.StepVerify, faulty)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: string(mover.StepVerify), State: corev1.ContainerState{Terminated: &verified}}}
		if verified.ExitCode == 0 {
			pod.Status.Phase = corev1.PodSucceeded
		}
	}
	seen := mover.Observe(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", UID: "job"}}, []corev1.Pod{pod}, steps)
	switch {
	case seen.State == mover.Failed:
		return seen.Trouble.Reason
	case seen.State != mover.Succeeded:
		return "undecided: " + string(seen.State)
	}
	if problem := mover.Mismatch(seen.Results[mover.StepSnapshot], seen.Results[mover.StepVerify], tag); problem != "" {
		return "MoverFailed"
	}
	return completed
}

// restored tells whether a third process brings back what the source was.
func (i *injection) restored(tag string) error {
	target, err := os.MkdirTemp(i.folder, "target-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(target)
	i.config.Restore = mover.Restore{Run: tag, Target: target}
	state := i.run("restore", false)
	if state.ExitCode != 0 {
		return fmt.Errorf("restore: exit code %d: %s", state.ExitCode, state.Message)
	}
	if i.same != nil && tag != "before" {
		return i.same(target)
	}
	expected := i.expected
	if tag == "before" {
		expected = i.arena.expected
	}
	if diff := cmp.Diff(expected, portrait(i.t, target)); diff != "" {
		return fmt.Errorf("the restored folder differs (-source +target):\n%s", diff)
	}
	return nil
}

// verdict is what came of an injection.
type verdict struct {
	outcome  string
	said     string // by the step that failed
	again    string // of the next attempt, without the fault; empty: none was made
	lied     error  // the pair said Completed, and this is what restoring it says
	problems []string
}

// play lets a fault happen, takes it away, and lets the next attempt run.
func (i *injection) play() verdict {
	i.arrange()
	v := verdict{outcome: i.attempt("run/shop", true)}
	for _, raw := range i.results {
		if message := string(raw); !strings.Contains(message, `"ok":true`) {
			v.said = message[:min(len(message), 400)]
		}
	}
	if i.proxy != nil {
		i.proxy.set(nil)
	}
	if i.lift != nil {
		i.lift()
	}
	if v.outcome == completed {
		v.lied = i.restored("run/shop")
	}
	if i.hung {
		i.problem("a process had to be killed, because it did not end")
	}
	if !i.row.lasting {
		i.heal(&v)
	}
	if at := strings.Index(i.said.String(), "canary"); at >= 0 {
		i.problem("a secret is in what was said: %s", i.said.String()[max(0, at-100):min(i.said.Len(), at+40)])
	}
	v.problems = i.problems
	return v
}

// heal makes the next attempt, and looks for what was there before.
func (i *injection) heal(v *verdict) {
	i.same = nil
	i.expected = portrait(i.t, i.path("source"))
	if v.again = i.attempt("run-2/shop", false); v.again != completed {
		i.problem("the next attempt ended with %s: %s", v.again, i.results)
	} else if err := i.restored("run-2/shop"); err != nil && v.lied == nil {
		v.lied = fmt.Errorf("the next attempt: %w", err)
	}
	if err := i.restored("before"); err != nil {
		i.problem("the snapshot from before the fault: %v", err)
	}
}

// portrait is everything that a backup keeps of a folder, a line for each path.
func portrait(t testing.TB, folder string) []string {
	t.Helper()
	var lines []string
	first := map[uint64]string{}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, _ := filepath.Rel(folder, path)
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
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Errorf("%s: %v", folder, err)
	}
	return lines
}

// numbers names folders.
var numbers atomic.Int64
