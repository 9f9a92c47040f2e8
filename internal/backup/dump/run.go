package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/internal/redact"
)

const (
	// connectEvery is how often to look whether somebody listens.
	connectEvery = 200 * time.Millisecond
	// killAfter is how long a command may take to end when it is asked to.
	killAfter = 5 * time.Second
)

// ErrNotAsked says that the command did not run, because somebody else was asked to, or because nobody wants its output.
var ErrNotAsked = errors.New("nobody asks for the command to run")

// Command is a command whose output is wanted.
type Command struct {
	// Words are the program and its arguments.
	Words []string
	// Environment is that of the command, as of os.Environ.
	Environment []string
	// Errors gets what the command writes to its standard error, without secrets.
	Errors io.Writer
}

// Run connects to the socket, as soon as it is there, runs the command when it is asked to, and sends its output and how it
// ended. An error says that nobody heard of that. When the context ends the command is stopped, and nothing is said of its
// end: a command that takes a signal for a reason to end well has not written everything.
func (c Command) Run(ctx context.Context, socket string) error {
	conn, err := connect(ctx, socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	greeting := make([]byte, len(hello))
	if _, err := io.ReadFull(conn, greeting); err != nil || string(greeting) != hello {
		return ErrNotAsked
	}
	if _, err := io.WriteString(conn, hello); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	e, err := c.execute(ctx, conn, secretsOf(c.Environment))
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := writeEnd(conn, e); err != nil {
		return fmt.Errorf("say how the command ended: %w", err)
	}
	return conn.CloseWrite()
}

// connect waits until somebody listens.
func connect(ctx context.Context, socket string) (*net.UnixConn, error) {
	ticker := time.NewTicker(connectEvery)
	defer ticker.Stop()
	for {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
}

// execute runs the command and sends its output. An error says that the output could not be sent: then the command was ended.
func (c Command) execute(ctx context.Context, to io.Writer, secrets *redact.Redactor) (end, error) {
	output, err := newPipe()
	if err != nil {
		return end{}, err
	}
	defer output.close()
	errorsOf, err := newPipe()
	if err != nil {
		return end{}, err
	}
	defer errorsOf.close()

	runtime.LockOSThread() // the command is killed when the thread that started it ends
	defer runtime.UnlockOSThread()
	cmd := c.process(output, errorsOf)
	if err := cmd.Start(); err != nil {
		return cannotStart(err, secrets), nil
	}
	_ = errors.Join(output.write.Close(), errorsOf.write.Close())
	group := -cmd.Process.Pid
	defer func() { _ = syscall.Kill(group, syscall.SIGKILL) }() // whoever is left
	defer context.AfterFunc(ctx, func() {
		_ = syscall.Kill(group, syscall.SIGTERM)
		time.AfterFunc(killAfter, func() { _ = syscall.Kill(group, syscall.SIGKILL) })
	})()

	said := &tail{limit: maxText}
	var copying sync.WaitGroup
	copying.Go(func() { c.log(errorsOf, said, secrets) })
	var sent uint64
	var all bool
	var cut error
	copying.Go(func() {
		if sent, all, cut = send(output, to); cut != nil {
			_ = syscall.Kill(group, syscall.SIGKILL) // nobody hears it any more
		}
	})
	_ = cmd.Wait() // the state says it all
	interrupted := errors.Join(output.interrupt(), errorsOf.interrupt())
	copying.Wait()
	if err := errors.Join(cut, interrupted); err != nil {
		return end{}, fmt.Errorf("send the output of the command: %w", err)
	}
	e := endOf(cmd.ProcessState)
	e.count, e.text = sent, string(said.bytes)
	if e.well() && !all {
		e.how = held
	}
	return e, nil
}

// process is the command as a process, which leads a group of its own.
func (c Command) process(output, errorsOf *pipe) *exec.Cmd {
	cmd := exec.Command(c.Words[0], c.Words[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = c.Environment, output.write, errorsOf.write
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// log hands on what the command has to say, line by line, and keeps the end of it. Secrets go first: what is cut off from one
// cannot be found any more.
func (c Command) log(from *pipe, said *tail, secrets *redact.Redactor) {
	to := redact.NewWriter(lossy{said, c.Errors}, secrets)
	_, _ = from.copyTo(make([]byte, 32<<10), 0, func(p []byte) error {
		_, err := to.Write(p)
		return err
	})
	_ = to.Close()
}

// lossy keeps the end, and hands on to a log. One that takes nothing is no reason to end a dump.
type lossy struct {
	said *tail
	log  io.Writer
}

func (l lossy) Write(p []byte) (int, error) {
	_, _ = l.log.Write(p)
	return l.said.Write(p)
}

// send sends the output in frames. It tells how much there was, and whether that was all.
func send(from *pipe, to io.Writer) (sent uint64, all bool, err error) {
	all, err = from.copyTo(make([]byte, headerLength+maxData), headerLength, func(frame []byte) error {
		putHeader(frame, kindData, len(frame)-headerLength)
		sent += uint64(len(frame) - headerLength)
		_, err := to.Write(frame)
		return err
	})
	return sent, all, err
}

// endOf says how a process ended.
func endOf(state *os.ProcessState) end {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return end{how: signaled, code: int32(status.Signal())}
	}
	return end{how: exited, code: int32(state.ExitCode())}
}

// cannotStart says why a command was not started, with the exit codes of a shell.
func cannotStart(err error, secrets *redact.Redactor) end {
	const notFound, notExecutable = 127, 126
	e := end{how: unstarted, code: notExecutable, text: secrets.Clean(err.Error())}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		e.code = notFound
	}
	return e
}
