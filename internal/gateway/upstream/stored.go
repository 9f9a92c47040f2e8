package upstream

import (
	"io"
	"net"
)

// Stored returns a response that is in memory. length is that of the body, which the answer to HEAD tells without having it. It is -1
// if it is not told.
func Stored(status int, fields []Field, length int64, body []byte) *Response {
	return &Response{Status: status, Fields: fields, ContentLength: length, stream: &stored{body}}
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
