package upstream

import (
	"io"
	"net"
)

// Stored returns a response that is in memory.
func Stored(status int, fields []Field, body []byte) *Response {
	return &Response{Status: status, Fields: fields, ContentLength: int64(len(body)), stream: &stored{body}}
}

type stored struct{ left []byte }

func (s *stored) read(p []byte) (int, error) {
	n := copy(p, s.left)
	if s.left = s.left[n:]; len(s.left) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func (s *stored) buffered() bool { return true }

func (s *stored) trailers() []Field { return nil }

func (s *stored) tunnel() net.Conn { return nil }

func (s *stored) close() {}
