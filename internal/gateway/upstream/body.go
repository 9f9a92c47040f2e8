package upstream

import (
	"bytes"
	"errors"
	"io"
	"strings"
)

const (
	// maxChunkLine bounds the line before a chunk, including extensions.
	maxChunkLine = 1 << 10
	// maxChunkDigits keeps the size of a chunk below the largest int64.
	maxChunkDigits = 15
)

var lastChunk = []byte("\r\n0\r\n\r\n")

// body reads the body of a response to its end, and no further.
type body struct {
	in       *buffer
	framing  framing
	left     int64 // bytes of the body or of the chunk
	chunks   bool  // a chunk was read, so a CRLF must come before the next
	done     bool
	trailers []Field
	limit    int // for the trailers
}

func (b *body) begin(in *buffer, framing framing, length int64, limit int) {
	*b = body{in: in, framing: framing, limit: limit, trailers: b.trailers[:0]}
	b.done = framing == noBody || (framing == byLength && length == 0)
	if framing == byLength {
		b.left = length
	}
}

func (b *body) read(p []byte) (int, error) {
	if b.done {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	switch b.framing {
	case byChunks:
		return b.readChunk(p)
	case byLength:
		n, err := b.readLeft(p)
		if err == nil && b.left == 0 {
			b.done = true
			return n, io.EOF
		}
		return n, err
	}
	n, err := b.in.Read(p)
	if errors.Is(err, io.EOF) {
		b.done = true
	}
	return n, err
}

// readLeft reads from the rest of the body or the chunk. An earlier end is an error.
func (b *body) readLeft(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.in.Read(p)
	b.left -= int64(n)
	if errors.Is(err, io.EOF) {
		err = nil
		if b.left > 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}

func (b *body) readChunk(p []byte) (int, error) {
	if b.left == 0 {
		if err := b.nextChunk(); err != nil {
			return 0, unexpected(err)
		}
		if b.done {
			return 0, io.EOF
		}
	}
	n, err := b.readLeft(p)
	if err == nil && b.left == 0 && bytes.HasPrefix(b.in.bytes(), lastChunk) {
		b.in.skip(len(lastChunk))
		b.done = true
		return n, io.EOF
	}
	return n, err
}

func (b *body) nextChunk() error {
	if b.chunks {
		end, err := b.in.line(2)
		if err != nil {
			return err
		}
		if end != "" {
			return malformed("chunk longer than its size")
		}
	}
	line, err := b.in.line(maxChunkLine)
	if err != nil {
		return err
	}
	size, err := parseChunkSize(line)
	if err != nil {
		return err
	}
	b.chunks = true
	b.left = size
	if size > 0 {
		return nil
	}
	if err := b.readTrailers(); err != nil {
		return err
	}
	b.done = true
	return nil
}

// parseChunkSize parses the size of a chunk. It ignores extensions, as RFC 9112, 7.1.1
// requires.
func parseChunkSize(line string) (int64, error) {
	digits, extension, _ := strings.Cut(line, ";")
	digits = strings.TrimRight(digits, " \t")
	if digits == "" || len(digits) > maxChunkDigits || !isFieldValue(extension) {
		return 0, malformed("invalid chunk size")
	}
	var size int64
	for i := range len(digits) {
		digit := hexDigit(digits[i])
		if digit < 0 {
			return 0, malformed("invalid chunk size")
		}
		size = size<<4 | digit
	}
	return size, nil
}

func hexDigit(c byte) int64 {
	switch {
	case c >= '0' && c <= '9':
		return int64(c - '0')
	case c >= 'a' && c <= 'f':
		return int64(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int64(c-'A') + 10
	}
	return -1
}

// readTrailers reads the trailer section. It drops fields that must not be trailers.
func (b *body) readTrailers() error {
	left := b.limit
	for {
		line, err := b.in.line(left)
		if err != nil {
			return err
		}
		if line == "" {
			return nil
		}
		left -= len(line) + len("\r\n")
		field, err := parseField(line)
		if err != nil {
			return err
		}
		if b.trailers, err = addTrailer(b.trailers, field); err != nil {
			return err
		}
	}
}

// buffered reports whether the next read returns without waiting for the endpoint.
func (b *body) buffered() bool {
	if b.done {
		return true
	}
	if b.framing != byChunks || b.left > 0 {
		return b.in.len() > 0
	}
	held := b.in.bytes()
	if b.chunks {
		held = held[min(len(held), len("\r\n")):]
	}
	return bytes.IndexByte(held, '\n') >= 0
}

// unexpected turns an EOF in the middle of a message into an error.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
