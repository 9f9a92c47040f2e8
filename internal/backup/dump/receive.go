package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"time"
)

const (
	// connectLimit is how long the receiver waits until somebody connects.
	connectLimit = 5 * time.Minute
	// answerLimit is how long the other side may take to answer, or to close the connection when it has said all.
	answerLimit = 30 * time.Second
)

// Receiver waits for the output of one command.
type Receiver struct {
	listener *net.UnixListener
	// limits of time, which tests shorten.
	connect, answer time.Duration
}

// Listen makes the socket. Whatever is at its place already is left alone, and is an error: the user may have put it there.
func Listen(socket string) (*Receiver, error) {
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		return nil, &Failure{Message: "the container of the command has put something at the place of the socket"}
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, &Failure{Message: "the socket cannot be made: " + printable(err.Error(), maxQuoted)}
	}
	listener.SetUnlinkOnClose(false) // by then the name may stand for something else
	return &Receiver{listener: listener, connect: connectLimit, answer: answerLimit}, nil
}

// Close ends it.
func (r *Receiver) Close() error { return r.listener.Close() }

// Output is the output of a command: it ends with io.EOF only when the command has said that it ended well. Close it after
// use.
type Output struct {
	reader

	conn io.Closer
	stop func() bool
}

// Close ends the connection.
func (o *Output) Close() error {
	o.stop()
	return o.conn.Close()
}

// Accept waits for somebody to connect, and has them run the command. Who connects later is turned away, so that no command
// runs twice. When the context ends, so does the connection.
func (r *Receiver) Accept(ctx context.Context) (*Output, error) {
	conn, err := r.first(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	if err := r.greet(conn); err != nil {
		stop()
		return nil, errors.Join(err, conn.Close())
	}
	o := &Output{conn: conn, stop: stop}
	o.reader = reader{from: conn, last: func() { time.AfterFunc(r.answer, func() { _ = conn.Close() }) }}
	return o, nil
}

// first returns the first connection, and turns all others away until the receiver is closed.
func (r *Receiver) first(ctx context.Context) (net.Conn, error) {
	type accepted struct {
		conn net.Conn
		err  error
	}
	came := make(chan accepted, 1)
	go func() {
		conn, err := r.listener.Accept()
		came <- accepted{conn, err}
		for err == nil {
			var other net.Conn
			if other, err = r.listener.Accept(); err == nil {
				_ = other.Close()
			}
		}
	}()
	limit := time.NewTimer(r.connect)
	defer limit.Stop()
	select {
	case a := <-came:
		if a.err != nil {
			return nil, &Failure{Lost: true, Message: "nobody can connect: " + printable(a.err.Error(), maxQuoted)}
		}
		return a.conn, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-limit.C:
		return nil, &Failure{
			Lost: true, Message: fmt.Sprintf("the container of the command did not say within %s that it is ready", r.connect),
		}
	}
}

// greet has the other side run the command, and waits for the answer.
func (r *Receiver) greet(conn net.Conn) error {
	limit := time.AfterFunc(r.answer, func() { _ = conn.Close() })
	defer limit.Stop()
	if _, err := io.WriteString(conn, hello); err != nil {
		return lost(err)
	}
	answer := make([]byte, len(hello))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return lost(err)
	}
	if string(answer) != hello {
		return refused("a greeting that is none")
	}
	return nil
}
