package dump

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pipe is what a command writes to.
type pipe struct {
	read, write *os.File
}

func newPipe() (*pipe, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &pipe{read: read, write: write}, nil
}

func (p *pipe) close() { _ = errors.Join(p.read.Close(), p.write.Close()) }

// interrupt ends the waiting for more. What was written until now is still read.
func (p *pipe) interrupt() error { return p.read.SetReadDeadline(time.Unix(1, 0)) }

// copyTo hands on what is written, until nobody can write any more, or somebody interrupts it. It reports whether it was all:
// after an interruption, whether nobody can write any more. The buffer is what is handed on at a time, after room for a header.
func (p *pipe) copyTo(buffer []byte, room int, hand func(buffer []byte) error) (all bool, err error) {
	for {
		n, err := p.read.Read(buffer[room:])
		if n > 0 {
			if err := hand(buffer[:room+n]); err != nil {
				return false, err
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return true, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return p.drain(buffer, room, hand)
		default:
			return false, err
		}
	}
}

// drain hands on what is in the pipe now. The command has ended by then: whoever writes more, or only holds the pipe, is a
// process that it left behind.
func (p *pipe) drain(buffer []byte, room int, hand func([]byte) error) (all bool, err error) {
	if err := p.read.SetReadDeadline(time.Time{}); err != nil {
		return false, err
	}
	raw, err := p.read.SyscallConn()
	if err != nil {
		return false, err
	}
	var left int
	if outer := raw.Control(func(fd uintptr) { left, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); outer != nil || err != nil {
		return false, errors.Join(outer, err)
	}
	for {
		var n int
		// Not more than was there: one byte too many is asked for at the end, which nobody may have written.
		wanted := buffer[room : room+min(len(buffer)-room, left+1)]
		outer := raw.Read(func(fd uintptr) bool {
			for {
				if n, err = unix.Read(int(fd), wanted); !errors.Is(err, unix.EINTR) {
					return true
				}
			}
		})
		switch {
		case outer != nil:
			return false, outer
		case errors.Is(err, unix.EAGAIN):
			return false, nil
		case err != nil:
			return false, err
		case n == 0:
			return true, nil
		case n > left:
			return false, nil
		}
		left -= n
		if err := hand(buffer[:room+n]); err != nil {
			return false, err
		}
	}
}
