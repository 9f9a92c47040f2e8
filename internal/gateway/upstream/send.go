package upstream

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

const (
	// chunkPrefix is the room for a chunk's size before its data.
	chunkPrefix = 8
	pieceSize   = 32 << 10
	// lateHead is how long the head of a response may still take when the request cannot be sent: it may be on its way.
	lateHead = time.Second
)

var errRequestBody = errors.New("read the request's body")

// piece is a buffer for a part of a body, with room for the chunk framing around the data.
type piece [chunkPrefix + pieceSize + 2]byte

var pieces = sync.Pool{New: func() any { return new(piece) }}

// sender sends the body of a request while its response is read.
type sender struct {
	conn   *conn
	vigil  *vigil // runs while a part is sent, and when no more is sent
	result chan error
	gone   atomic.Bool // the connection was closed because the client has gone
	ended  atomic.Bool // the body is not read any more
	whole  atomic.Bool // the last part of the request is being sent, or was sent
}

// startSender sends the body on a goroutine. The goroutine ends with the exchange.
func startSender(c *conn) *sender {
	s := &sender{conn: c, result: make(chan error, 1)}
	if c.request.ClientGone != nil {
		s.vigil = &vigil{every: c.options.SendTimeout, look: s.mayGoOn}
	}
	c.request.opened = true
	go func() {
		err := s.send()
		s.result <- err
	}()
	return s
}

func (s *sender) send() error {
	// The wait for the response starts when the request was sent.
	s.setReadDeadline(s.conn.end)
	err := s.copy()
	if errors.Is(err, panics.ErrPanicked) {
		s.ended.Store(true)
		err = fmt.Errorf("%w: %w", errRequestBody, err)
	}
	if errors.Is(err, errRequestBody) {
		_ = s.conn.raw.Close() // the request cannot be completed, and the endpoint must notice that
		return err
	}
	end := s.conn.request.headBy(s.conn.options.Clock.Now(), s.conn.end)
	if err != nil {
		end = s.conn.lateBy(end)
		s.vigil.begin() // nobody reads from the client any more, who would notice that it has gone
	}
	s.setReadDeadline(end)
	return err
}

// sendBy returns when the endpoint must have read a part of the request that is sent now, within an end.
func (c *conn) sendBy(end time.Time) time.Time {
	if c.request.Patient {
		return end
	}
	return earlier(end, c.options.Clock.Now().Add(c.options.SendTimeout))
}

// lateBy returns when the head of the response must have arrived at the latest, after the request could not be sent.
func (c *conn) lateBy(headBy time.Time) time.Time {
	return earlier(headBy, c.options.Clock.Now().Add(lateHead))
}

// mayGoOn closes the connection when the client has gone. Nothing else tells that while its body is not read.
func (s *sender) mayGoOn() bool {
	gone := s.conn.request.clientGone()
	if gone {
		s.gone.Store(true)
		_ = s.conn.raw.Close()
	}
	return !gone
}

// setReadDeadline bounds the wait for the head of the response, unless the head was read.
func (s *sender) setReadDeadline(end time.Time) {
	s.conn.deadline.Lock()
	defer s.conn.deadline.Unlock()
	if !s.conn.headRead {
		_ = s.conn.raw.SetReadDeadline(end)
	}
}

func (s *sender) copy() (err error) {
	defer s.conn.options.Panics.CatchError("send the body of a request", &err)
	left := s.conn.request.ContentLength
	piece := pieces.Get().(*piece)
	defer pieces.Put(piece)
	for last := false; !last; {
		var n int
		var err error
		if n, last, err = s.next(piece, &left); err != nil {
			return err
		}
		s.whole.Store(last && !s.chunked())
		if n == 0 {
			continue
		}
		if err := s.write(s.frame(piece, n)); err != nil {
			return err
		}
	}
	if s.chunked() {
		return s.writeTrailers(piece[:0])
	}
	return nil
}

// next reads the next part of the body. last is set for the final part. left is how much of
// a body of known length is still to come.
func (s *sender) next(into *piece, left *int64) (n int, last bool, err error) {
	n, err = s.conn.request.Body.Read(into[chunkPrefix : chunkPrefix+pieceSize])
	last = errors.Is(err, io.EOF)
	if !s.chunked() {
		*left -= int64(n)
		last = last || *left <= 0
	}
	if last || err != nil {
		s.ended.Store(true)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, false, fmt.Errorf("%w: %w", errRequestBody, err)
	}
	if !s.chunked() && (*left < 0 || (last && *left > 0)) {
		return 0, false, fmt.Errorf("%w: its length is not its Content-Length", errRequestBody)
	}
	return n, last, nil
}

func (s *sender) chunked() bool { return s.conn.request.ContentLength < 0 }

// frame returns n bytes of data, which begin at chunkPrefix, in the form in which they are
// sent.
func (s *sender) frame(piece *piece, n int) []byte {
	if s.chunked() {
		return frameChunk(piece[:], n)
	}
	return piece[chunkPrefix : chunkPrefix+n]
}

// frameChunk adds the size and the line ends around n bytes of data, which begin at
// chunkPrefix.
func frameChunk(piece []byte, n int) []byte {
	var size [chunkPrefix]byte
	line := append(strconv.AppendInt(size[:0], int64(n), 16), '\r', '\n')
	start := chunkPrefix - len(line)
	copy(piece[start:], line)
	end := chunkPrefix + n
	copy(piece[end:], "\r\n")
	return piece[start : end+2]
}

func (s *sender) writeTrailers(b []byte) error {
	b = append(b, "0\r\n"...)
	if s.conn.request.Trailers != nil {
		for _, field := range s.conn.request.Trailers() {
			if isToken(field.Name) && isFieldValue(field.Value) && !fieldname.ForbiddenTrailer(field.Name) {
				b = appendField(b, field.Name, field.Value)
			}
		}
	}
	s.whole.Store(true)
	return s.write(append(b, '\r', '\n'))
}

func (s *sender) write(b []byte) error {
	if err := s.conn.raw.SetWriteDeadline(s.conn.sendBy(s.conn.end)); err != nil {
		return err
	}
	s.vigil.begin()
	defer s.vigil.end()
	_, err := s.conn.raw.Write(b)
	return err
}

// cut stops the sending if it is still running. It returns how the sending ended.
func (s *sender) cut() error {
	err := s.stop()
	s.vigil.end()
	if s.gone.Load() {
		return errClientGone
	}
	return err
}

func (s *sender) stop() error {
	select {
	case err := <-s.result:
		return err
	default:
	}
	if !s.ended.Load() {
		_ = s.conn.raw.Close()
		s.conn.request.StopBody()
		_ = s.wait()
		return errors.New("the response ended before the request")
	}
	_ = s.conn.raw.SetWriteDeadline(aLongTimeAgo)
	return s.wait()
}

func (s *sender) wait() error { return <-s.result }
