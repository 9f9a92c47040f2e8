package dump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// received is what the receiver got of a command.
type received struct {
	bytes []byte
	err   error // nil: it is complete
}

// receive accepts one command and reads all of its output.
func receive(ctx context.Context, r *Receiver) received {
	output, err := r.Accept(ctx)
	if err != nil {
		return received{err: err}
	}
	defer output.Close()
	got, err := io.ReadAll(output)
	if err == nil {
		err = output.Complete()
	}
	return received{bytes: got, err: err}
}

func listening(t *testing.T) (*Receiver, string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "socket")
	r, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r, socket
}

// sh is a command of the shell.
func sh(script string) Command {
	return Command{Words: []string{"/bin/sh", "-c", script}, Environment: os.Environ(), Errors: io.Discard}
}

// exchange runs a command and receives its output.
func exchange(t *testing.T, c Command) received {
	t.Helper()
	r, socket := listening(t)
	ran := make(chan error, 1)
	go func() { ran <- c.Run(t.Context(), socket) }()
	got := receive(t.Context(), r)
	if err := <-ran; err != nil {
		t.Errorf("the command's side: %v", err)
	}
	return got
}

func TestTheOutputOfACommandArrivesWithItsEnd(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 200_000)
	file := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(file, []byte(large), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		script, output, says string
	}{
		"an output":                              {"echo hello", "hello\n", ""},
		"nothing":                                {"true", "", ""},
		"a large output":                         {"cat " + file, large, ""},
		"a large output of a pipeline":           {"cat " + file + " | cat", large, ""},
		"complaints are no failure":              {"echo careful >&2; echo hello", "hello\n", ""},
		"it closes its output long before":       {"echo hello; exec >&-; exec 2>&-; sleep 0.2", "hello\n", ""},
		"it fails":                               {"exit 3", "", "the command ended with exit code 3"},
		"it fails after 90 %":                    {"head -c 2880000 " + file + "; echo no space left >&2; exit 1", large[:2880000], "exit code 1: no space left"},
		"it fails after all":                     {"cat " + file + "; exit 1", large, "exit code 1"},
		"it fails when it has closed its output": {"cat " + file + "; exec >&-; exit 1", large, "exit code 1"},
		"a signal":                               {"echo hello; kill -9 $$", "hello\n", "signal 9 (killed)"},
		"a child that is killed":                 {"echo hello; sh -c 'kill -9 $$'", "hello\n", "exit code 137"},
		"a child that only waits":                {"echo hello; sleep 60 &", "hello\n", "left a process behind"},
		"a child that writes on and on":          {"while :; do echo more; done &", "", "left a process behind"},
		"a child that writes later":              {"echo hello; (sleep 0.3; echo more) &", "hello\n", "left a process behind"},
		"a child in a session of its own":        {"echo hello; setsid sleep 5 &", "hello\n", "left a process behind"},
		"a child, and it fails":                  {"sleep 60 & exit 4", "", "exit code 4"},
		"a child that holds the errors only":     {"echo hello; sleep 60 >&- & sleep 0.3", "hello\n", ""},
		"no control characters":                  {"printf 'a\\033[31m\\007\\nb' >&2; exit 1", "", "exit code 1: a [31m / b"},
	}
	for name, tc := range tests {
		// Not at once: a process that another case forks has the pipes of this one until it runs its command.
		t.Run(name, func(t *testing.T) {
			got := exchange(t, sh(tc.script))
			if (got.err == nil) != (tc.says == "") {
				t.Fatalf("got %v, want %q", got.err, tc.says)
			}
			if tc.says != "" {
				var failure *Failure
				if !errors.As(got.err, &failure) || failure.Lost || !strings.Contains(failure.Message, tc.says) {
					t.Errorf("got %+v, want %q", got.err, tc.says)
				}
				checkMessage(t, got.err.Error())
			}
			if !strings.HasPrefix(string(got.bytes), tc.output) || (tc.says == "" && len(got.bytes) != len(tc.output)) {
				t.Errorf("got %d bytes, want %d", len(got.bytes), len(tc.output))
			}
		})
	}
}

func TestACommandThatCannotBeStarted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for program, says := range map[string]string{
		"/nowhere/pg_dump": "(exit code 127)", "no-such-command": "(exit code 127)", file: "(exit code 126)", os.TempDir(): "(exit code 126)",
	} {
		got := exchange(t, Command{Words: []string{program}, Errors: io.Discard})
		if got.err == nil || !strings.Contains(got.err.Error(), says) {
			t.Errorf("%q: got %v, want %q", program, got.err, says)
		}
	}
}

// What a command says is in its log and in the failure, without the values of variables.
func TestTheErrorsOfACommandGoToItsLog(t *testing.T) {
	var log bytes.Buffer
	c := sh("echo connect with $PGPASSWORD >&2; exit 1")
	c.Environment, c.Errors = append(os.Environ(), "PGPASSWORD=canary-7"), &log
	got := exchange(t, c)
	if got.err == nil || !strings.HasSuffix(got.err.Error(), "exit code 1: connect with $PGPASSWORD") {
		t.Errorf("got %v", got.err)
	}
	if log.String() != "connect with $PGPASSWORD\n" {
		t.Errorf("the log is %q", log.String())
	}
}

// One command runs for a receiver, however many want to.
func TestNoCommandRunsTwice(t *testing.T) {
	r, socket := listening(t)
	counted := filepath.Join(t.TempDir(), "count")
	ran := make(chan error, 5)
	for range 5 {
		go func() { ran <- sh("echo x >>"+counted+"; echo hello").Run(t.Context(), socket) }()
	}
	got := receive(t.Context(), r)
	if got.err != nil || string(got.bytes) != "hello\n" {
		t.Errorf("got %q, %v", got.bytes, got.err)
	}
	turnedAway := 0
	for range 5 {
		if err := <-ran; errors.Is(err, ErrNotAsked) {
			turnedAway++
		}
	}
	count, err := os.ReadFile(counted)
	if err != nil || string(count) != "x\n" || turnedAway != 4 {
		t.Errorf("it ran %q times, %d were turned away, %v", count, turnedAway, err)
	}
}

// A command waits for somebody who wants its output, and does not run without.
func TestACommandWaitsUntilSomebodyListens(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	marker := filepath.Join(t.TempDir(), "ran")
	ctx, cancel := context.WithTimeout(t.Context(), 3*connectEvery)
	defer cancel()
	if err := sh("touch "+marker).Run(ctx, socket); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(marker); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it ran: %v", err)
	}
	ran := make(chan error, 1)
	go func() { ran <- sh("echo hello").Run(t.Context(), socket) }()
	r, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := receive(t.Context(), r); got.err != nil || string(got.bytes) != "hello\n" {
		t.Errorf("got %q, %v", got.bytes, got.err)
	}
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// alive reports whether a process is there that is no zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// pidOf waits until a command has written its PID to a file.
func pidOf(t *testing.T, file string) int {
	t.Helper()
	var pid int
	eventually(t, func() bool {
		raw, err := os.ReadFile(file)
		if err != nil || !strings.HasSuffix(string(raw), "\n") {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(raw)))
		return err == nil
	})
	return pid
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	limit := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-ticker.C:
		case <-limit:
			t.Fatal("it never came true")
		}
	}
}

// A command that is told to stop, and ends well because of that, has not written everything.
func TestACommandThatIsStoppedIsNeverComplete(t *testing.T) {
	for name, script := range map[string]string{
		"it ends well":          "trap 'exit 0' TERM; echo $$ >%s; echo hello; while :; do sleep 0.05; done",
		"it dies":               "echo $$ >%s; echo hello; exec sleep 60",
		"it does not even hear": "trap '' TERM; echo $$ >%s; echo hello; while :; do sleep 0.05; done",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, socket := listening(t)
			file := filepath.Join(t.TempDir(), "pid")
			ctx, cancel := context.WithCancel(t.Context())
			ran := make(chan error, 1)
			go func() { ran <- sh(fmt.Sprintf(script, file)).Run(ctx, socket) }()
			came := make(chan received, 1)
			go func() { came <- receive(t.Context(), r) }()
			pid := pidOf(t, file)
			cancel()
			got := <-came
			var failure *Failure
			if !errors.As(got.err, &failure) || !failure.Lost {
				t.Errorf("got %v", got.err)
			}
			if err := <-ran; err == nil {
				t.Error("its side says that all is well")
			}
			eventually(t, func() bool { return !alive(pid) })
		})
	}
}

// Whoever keeps the output may be killed. Then the command is ended, as nobody needs it any more.
func TestACommandEndsWithTheReceiver(t *testing.T) {
	r, socket := listening(t)
	file := filepath.Join(t.TempDir(), "pid")
	ran := make(chan error, 1)
	go func() {
		ran <- sh("echo $$ >"+file+"; while :; do echo more; done").Run(t.Context(), socket)
	}()
	output, err := r.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pid := pidOf(t, file)
	if err := output.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ran; err == nil {
		t.Error("nobody heard of the end, and that is no error")
	}
	eventually(t, func() bool { return !alive(pid) })
}
