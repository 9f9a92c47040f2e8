package upstream

import (
	"bytes"
	"errors"
	"io"
)

const (
	// bufferSize is how much of a response is read at a time.
	bufferSize = 4 << 10
	// keptBufferSize bounds the buffer of an idle connection.
	keptBufferSize = 16 << 10
	// noProgress bounds how many reads in a row may return neither bytes nor an error.
	noProgress = 100
)

var (
	errTooLong    = errors.New("too long")
	errBareLF     = errors.New("a line ends without a carriage return")
	errNoProgress = errors.New("reads return nothing")
)

// buffer reads from a connection and keeps the bytes that were read but not used.
type buffer struct {
	source   io.Reader
	data     []byte
	from, to int
}

func (b *buffer) len() int      { return b.to - b.from }
func (b *buffer) bytes() []byte { return b.data[b.from:b.to] }
func (b *buffer) skip(n int)    { b.from += n }

// reset drops used bytes, and the memory that a large head needed.
func (b *buffer) reset() {
	if b.len() > 0 {
		return
	}
	b.from, b.to = 0, 0
	if len(b.data) > keptBufferSize {
		b.data = nil
	}
}

// fill reads once more. The buffer holds at most limit bytes.
func (b *buffer) fill(limit int) error {
	if b.len() >= limit {
		return errTooLong
	}
	if b.from > 0 && b.to == len(b.data) {
		b.to = copy(b.data, b.bytes())
		b.from = 0
	}
	if b.to == len(b.data) {
		grown := make([]byte, min(max(bufferSize, 2*len(b.data)), max(bufferSize, limit)))
		b.to = copy(grown, b.bytes())
		b.from = 0
		b.data = grown
	}
	for range noProgress {
		n, err := b.source.Read(b.data[b.to:])
		b.to += n
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errNoProgress
}

// Read returns buffered bytes. If there are none, it reads directly from the connection.
func (b *buffer) Read(p []byte) (int, error) {
	if b.len() > 0 {
		n := copy(p, b.bytes())
		b.skip(n)
		return n, nil
	}
	if len(p) >= bufferSize {
		return b.source.Read(p)
	}
	b.from, b.to = 0, 0
	if err := b.fill(bufferSize); err != nil {
		return 0, err
	}
	return b.Read(p)
}

// head returns everything up to the first empty line. On an error, the bytes stay in the
// buffer, so that it can be called again.
func (b *buffer) head(limit int) (string, error) {
	start := 0 // of the line that is not complete yet
	for {
		held := b.bytes()
		for {
			length := bytes.IndexByte(held[start:], '\n')
			if length < 0 {
				break
			}
			line := held[start : start+length]
			start += length + 1
			if len(line) > 0 && (len(line) > 1 || line[0] != '\r') {
				continue
			}
			if start > limit {
				return "", errTooLong
			}
			head := string(held[:start])
			b.skip(start)
			return head, nil
		}
		if err := b.fill(limit); err != nil {
			return "", err
		}
	}
}

// line returns the next line without its end. Inside a body the end must be CRLF. If a bare
// LF were accepted, readers that do not accept it would see another message.
func (b *buffer) line(limit int) (string, error) {
	for {
		length := bytes.IndexByte(b.bytes(), '\n')
		if length >= limit {
			return "", errTooLong
		}
		if length < 0 {
			if err := b.fill(limit); err != nil {
				return "", err
			}
			continue
		}
		if length == 0 || b.bytes()[length-1] != '\r' {
			return "", errBareLF
		}
		line := string(b.bytes()[:length-1])
		b.skip(length + 1)
		return line, nil
	}
}
