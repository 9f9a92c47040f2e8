package dump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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

// What a command says is in its log as it is, and in the failure without the values of variables.
func TestTheErrorsOfACommandGoToItsLog(t *testing.T) {
	var log bytes.Buffer
	c := sh("echo connect with $PGPASSWORD >&2; exit 1")
	c.Environment, c.Errors = append(os.Environ(), "PGPASSWORD=canary-7"), &log
	got := exchange(t, c)
	if got.err == nil || !strings.HasSuffix(got.err.Error(), "exit code 1: connect with $PGPASSWORD") {
		t.Errorf("got %v", got.err)
	}
	if log.String() != "connect with canary-7\n" {
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

// alive tells whether a process is there that is no zombie.
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

// Whatever is at the place of the socket stays as it is.
func TestNothingInTheWayOfTheSocketIsTouched(t *testing.T) {
	for name, put := range map[string]func(target, socket string) error{
		"a link to a file":  os.Symlink,
		"a link to nowhere": func(_, socket string) error { return os.Symlink("/nowhere/at/all", socket) },
		"a file":            func(_, socket string) error { return os.WriteFile(socket, []byte("x"), 0o600) },
		"a folder":          func(_, socket string) error { return os.Mkdir(socket, 0o700) },
		"a pipe":            func(_, socket string) error { return syscall.Mkfifo(socket, 0o600) },
		"another's socket":  func(_, socket string) error { return listenOnly(t, socket) },
		"a link to itself":  func(_, socket string) error { return os.Symlink(socket, socket) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			target, socket := filepath.Join(folder, "secret"), filepath.Join(folder, "socket")
			if err := os.WriteFile(target, []byte("as it was"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := put(target, socket); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(socket)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Listen(socket)
			var failure *Failure
			if !errors.As(err, &failure) || failure.Lost {
				t.Errorf("got %v", err)
			}
			after, err := os.Lstat(socket)
			if err != nil || !os.SameFile(before, after) || before.Mode() != after.Mode() {
				t.Errorf("it is %v, %v; it was %v", after, err, before)
			}
			if content, err := os.ReadFile(target); err != nil || string(content) != "as it was" {
				t.Errorf("what a link pointed to holds %q, %v", content, err)
			}
		})
	}
}

func listenOnly(t *testing.T, socket string) error {
	l, err := net.Listen("unix", socket)
	if err == nil {
		t.Cleanup(func() { _ = l.Close() })
	}
	return err
}

// Closing the receiver removes nothing: the name may stand for something else by then.
func TestClosingRemovesNothing(t *testing.T) {
	r, socket := listening(t)
	if err := os.Remove(socket); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(socket, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(socket); err != nil || string(content) != "x" {
		t.Errorf("it holds %q, %v", content, err)
	}
}

// hostile connects and does as it likes.
func hostile(t *testing.T, socket string, does func(conn *net.UnixConn)) {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go does(conn)
}

func TestAHostileContainerLeadsNowhere(t *testing.T) {
	say := func(texts ...string) func(*net.UnixConn) {
		return func(conn *net.UnixConn) {
			_, _ = io.WriteString(conn, strings.Join(texts, ""))
		}
	}
	silent := func(*net.UnixConn) {}
	good := data("abcdef") + ending(exited, 0, 6, "")
	for name, does := range map[string]func(*net.UnixConn){
		"it says nothing":                      silent,
		"it closes at once":                    func(conn *net.UnixConn) { _ = conn.Close() },
		"it greets slowly":                     func(conn *net.UnixConn) { slowly(conn, hello) },
		"it greets otherwise":                  say("slipway-dump 2\n", good),
		"it greets only":                       func(conn *net.UnixConn) { say(hello)(conn); _ = conn.CloseWrite() },
		"it does not greet":                    say(good),
		"all is well, and it stays there":      say(hello, good),
		"all is well, and it says more":        func(conn *net.UnixConn) { say(hello, good, good)(conn); _ = conn.CloseWrite() },
		"all is well, and it says more slowly": func(conn *net.UnixConn) { say(hello, good)(conn); slowly(conn, good) },
		"a last frame that never ends":         func(conn *net.UnixConn) { say(hello, data("abcdef"))(conn); slowly(conn, ending(exited, 0, 6, "")) },
		"garbage":                              func(conn *net.UnixConn) { say(hello, strings.Repeat("\xff", 1<<20))(conn) },
		"a huge frame":                         func(conn *net.UnixConn) { say(hello, frame(kindData, 1<<31, "x"))(conn) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, socket := listening(t)
			r.answer = 300 * time.Millisecond
			hostile(t, socket, does)
			got := receive(t.Context(), r)
			var failure *Failure
			if !errors.As(got.err, &failure) {
				t.Fatalf("got %q, %v", got.bytes, got.err)
			}
			checkMessage(t, failure.Message)
		})
	}
}

// slowly writes a byte at a time, until nobody listens any more.
func slowly(w io.Writer, text string) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for i := range len(text) {
		<-ticker.C
		if _, err := io.WriteString(w, text[i:i+1]); err != nil {
			return
		}
	}
}

func TestNobodyIsWaitedForForEver(t *testing.T) {
	r, _ := listening(t)
	r.connect = 50 * time.Millisecond
	got := receive(t.Context(), r)
	var failure *Failure
	if !errors.As(got.err, &failure) || !failure.Lost {
		t.Errorf("got %v", got.err)
	}
}

// A context that ends wakes up whoever waits for the connection, for the greeting or for more output.
func TestTheContextEndsEveryWaiting(t *testing.T) {
	for name, does := range map[string]func(conn *net.UnixConn){
		"nobody connects": nil,
		"no greeting":     func(*net.UnixConn) {},
		"no output":       func(conn *net.UnixConn) { _, _ = io.WriteString(conn, hello+data("abc")) },
	} {
		t.Run(name, func(t *testing.T) {
			r, socket := listening(t)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if does != nil {
				hostile(t, socket, does)
			}
			if got := receive(ctx, r); got.err == nil {
				t.Errorf("got %q", got.bytes)
			}
		})
	}
}

// A receiver that is slow does not make a command look as if it had left a child behind.
func TestASlowReceiverGetsAll(t *testing.T) {
	r, socket := listening(t)
	var running sync.WaitGroup
	running.Go(func() {
		if err := sh("head -c 3000000 /dev/zero").Run(t.Context(), socket); err != nil {
			t.Error(err)
		}
	})
	output, err := r.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	var n int64
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for err == nil {
		<-ticker.C
		var m int64
		m, err = io.CopyN(io.Discard, output, 100_000)
		n += m
	}
	if !errors.Is(err, io.EOF) || n != 3_000_000 || output.Complete() != nil {
		t.Errorf("got %d bytes, %v", n, err)
	}
	running.Wait()
}
