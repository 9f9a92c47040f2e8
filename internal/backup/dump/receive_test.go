package dump

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

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
