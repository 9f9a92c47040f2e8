package proxy

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http2"

	"github.com/slipway-dev/slipway/internal/gateway/sockets"
)

// A client of HTTP/1 may send its whole request, close its side, and wait for the answer (RFC 9112, 9.6). net/http reads on while a
// request is served, and takes the end of the client's side for a client that has left. So while it does that, it is told only that
// the connection was reset:
//
//   - Without TLS, that read is one of a single byte. What net/http reads otherwise goes through a buffer.
//   - With TLS, the end may be a message that nobody can tell from others before it is decrypted. So nothing is read at all. That read
//     is the only one without a deadline: the head of a request and its body have one, and so has the wait for another request. TLS gets
//     no more than one record at a time, because it would find the end in what it has already read.
//
// Of a stream that nothing bounds, such as server-sent events, the end of the client's side is told while it comes.
//
// The read ends when the request was answered, by a deadline of net/http, or when the connection is closed.

// unbounded is a deadline that is none, for reads of a body that have no bound.
const unbounded time.Duration = 1 << 62

// halfClose is what a clientConn knows about the end of the client's side.
type halfClose struct {
	secure bool           // there is TLS, and HTTP/1 in it as far as is known
	http1  bool           // there is HTTP/1 in it; set before a request is served
	known  bool           // what there is in it; belongs to watchProtocol
	reset  *sockets.Reset // nil before it was needed

	header [5]byte // of a TLS record, as far as it was read
	have   int     // bytes of header
	left   int     // bytes of the record after its header
}

// watchProtocol is called by net/http when a connection has got the head of a request. At first, nobody else reads from it.
func watchProtocol(conn net.Conn, state http.ConnState) {
	secure, ok := conn.(*tls.Conn)
	if !ok || state != http.StateActive {
		return
	}
	if client, ok := secure.NetConn().(*clientConn); ok && !client.half.known {
		client.half.known = true
		client.half.http1 = secure.ConnectionState().NegotiatedProtocol != http2.NextProtoTLS
		client.half.secure = client.half.http1
	}
}

// SetReadDeadline sets the deadline of reads.
func (c *clientConn) SetReadDeadline(until time.Time) error {
	c.bounded.Store(!until.IsZero())
	return c.Conn.SetReadDeadline(until)
}

// awaitsReset reports whether a read with TLS is that of net/http while a request is served.
func (c *clientConn) awaitsReset() bool { return c.half.http1 && !c.bounded.Load() }

// awaitReset waits until the connection is reset, or the read must end. ended is what a read has returned, which is returned where
// nothing is known of a reset.
func (c *clientConn) awaitReset(ended error) error {
	if c.half.reset == nil {
		c.half.reset = sockets.NewReset(c.Conn, &c.streams)
	}
	if c.half.reset == nil {
		return ended
	}
	if err := c.half.reset.Wait(); err != nil {
		return err
	}
	return ended
}

// stream says whether the response is a stream that nothing bounds. Who ends the client's side while it comes has left: otherwise that
// would be known only from what is sent next.
func (c *clientConn) stream(on bool) {
	if c != nil {
		c.streams.Store(on)
	}
}

// fetch reads from the client. With TLS, it returns no more than one record.
func (c *clientConn) fetch(p []byte) (n int, err error) {
	if len(c.ahead) > 0 {
		n = copy(p, c.ahead)
		c.ahead = c.ahead[n:]
	} else {
		n, err = c.Conn.Read(p)
	}
	if c.half.secure {
		if end := c.half.record(p[:n]); end < n {
			c.ahead = append(append(make([]byte, 0, n-end+len(c.ahead)), p[end:n]...), c.ahead...)
			n, err = end, nil
		}
	}
	if len(c.ahead) == 0 {
		c.ahead = nil // to free its memory
	}
	return n, err
}

// record returns how much of these bytes, which follow those before, is of one record.
func (h *halfClose) record(b []byte) (end int) {
	for end < len(b) {
		if h.left == 0 { // in a header
			h.header[h.have] = b[end]
			h.have++
			end++
			if h.have < len(h.header) {
				continue
			}
			h.have, h.left = 0, int(binary.BigEndian.Uint16(h.header[3:]))
		} else {
			of := min(h.left, len(b)-end)
			h.left -= of
			end += of
		}
		if h.left == 0 && h.have == 0 {
			break
		}
	}
	return end
}

// isEnd reports whether a read has found the end of the client's side, in the read of net/http while a request is served without TLS.
func (c *clientConn) isEnd(p []byte, err error) bool {
	return len(p) == 1 && errors.Is(err, io.EOF) && !c.half.secure && !c.streams.Load()
}
