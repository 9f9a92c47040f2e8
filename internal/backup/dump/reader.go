package dump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// Failure is why there is no complete output.
type Failure struct {
	// Lost reports whether the connection ended before the command did, so that nobody knows what became of it. Otherwise the
	// command failed, or what came is not what this package sends.
	Lost bool
	// Message says it in a sentence. It holds nothing that does not print, and at most maxMessage bytes.
	Message string
}

func (f *Failure) Error() string { return f.Message }

// refused is a failure of what came.
func refused(format string, arguments ...any) error {
	return &Failure{Message: "the container of the command sent what is no output of one: " + fmt.Sprintf(format, arguments...)}
}

// reader reads frames. It gives the output of the command, and after it either io.EOF, when all is well, or a Failure.
type reader struct {
	from io.Reader
	// last is called before the bytes are read that must not come, after the last frame. Nil: nothing is to be done.
	last func()

	left     uint32 // of the frame that is being read
	received uint64
	ended    error // what Read returns from now on
	complete bool
}

// Read gives the next bytes of the output.
func (r *reader) Read(p []byte) (int, error) {
	if len(p) == 0 || r.ended != nil {
		return 0, r.ended
	}
	if r.left == 0 {
		if r.ended = r.next(); r.ended != nil {
			return 0, r.ended
		}
	}
	n, err := r.from.Read(p[:min(len(p), int(r.left))])
	r.left -= uint32(n)
	r.received += uint64(n)
	if n == 0 && err != nil {
		r.ended = lost(err)
		return 0, r.ended
	}
	return n, nil
}

// Complete returns an error unless the command said itself that it ended well, and nothing else came.
func (r *reader) Complete() error {
	switch {
	case r.complete:
		return nil
	case r.ended != nil && !errors.Is(r.ended, io.EOF):
		return r.ended
	default:
		return &Failure{Lost: true, Message: "the output of the command was not read to its end"}
	}
}

// next reads the header of the next frame, and all of the last one.
func (r *reader) next() error {
	var header [headerLength]byte
	if _, err := io.ReadFull(r.from, header[:]); err != nil {
		return lost(err)
	}
	length := binary.BigEndian.Uint32(header[1:])
	switch {
	case header[0] == kindData && length >= 1 && length <= maxData:
		r.left = length
		return nil
	case header[0] == kindEnd && length >= endLength && length <= endLength+maxText:
		return r.end(int(length))
	default:
		return refused("a frame of kind %d and length %d", header[0], length)
	}
}

// end reads the last frame, and the end of the connection.
func (r *reader) end(length int) error {
	if r.last != nil {
		r.last()
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r.from, body); err != nil {
		return lost(err)
	}
	e := parseEnd(body)
	if !e.well() {
		return e.failure()
	}
	if e.count != r.received {
		return refused("%d bytes came of %d", r.received, e.count)
	}
	var more [1]byte
	switch n, err := io.ReadFull(r.from, more[:]); {
	case n > 0:
		return refused("more after the last frame")
	case !errors.Is(err, io.EOF):
		return refused("the connection was left open after the last frame")
	}
	r.complete = true
	return io.EOF
}

// failure says how a command ended that did not end well.
func (e end) failure() error {
	var message string
	switch e.how {
	case exited:
		message = fmt.Sprintf("the command ended with exit code %d", e.code)
	case signaled:
		message = fmt.Sprintf("the command was ended by signal %d (%s)", e.code, syscall.Signal(e.code))
	case unstarted:
		message = fmt.Sprintf("the command could not be started (exit code %d)", e.code)
	case held:
		message = fmt.Sprintf("the command ended with exit code %d, and left a process behind that can still write to its output", e.code)
	default:
		return refused("an end of kind %d", e.how)
	}
	if text := printable(e.text, maxQuoted); text != "" {
		message += ": " + text
	}
	return &Failure{Message: message}
}

// lost is what it means when the connection breaks.
func lost(err error) error {
	message := "the command was cut off before it said how it ended"
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		message += ": " + printable(err.Error(), maxQuoted)
	}
	return &Failure{Lost: true, Message: message}
}
