package proxy

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
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
// Of a stream that nothing bounds, such as server-sent events, the end of the client's side is told while it comes, also one that came
// before it. HTTP/2 is told of the end at any time: nobody ends the side of such a connection and waits for answers.
//
// The read ends when the request was answered, by a deadline of net/http, or when the connection is closed.

var aLongTimeAgo = time.Unix(1, 0)

// halfClose is what a clientConn knows about the end of the client's side.
type halfClose struct {
	secure bool           // there is TLS, and HTTP/1 in it as far as is known
	http1  bool           // there is HTTP/1 in it; set before a request is served
	known  bool           // what there is in it; belongs to watchProtocol
	first  [5]byte        // of the connection, without TLS
	begun  int            // bytes of first
	reset  *sockets.Reset // nil before it was needed

	header [5]byte // of a TLS record, as far as it was read
	have   int     // bytes of header
	left   int     // bytes of the record after its header
}

// watchProtocol is called by net/http when a connection has got the head of a request. At first, nobody else reads from it.
func watchProtocol(conn net.Conn, state http.ConnState) {
	if state != http.StateActive {
		return
	}
	secure, isSecure := conn.(*tls.Conn)
	if isSecure {
		conn = secure.NetConn()
	}
	client, ok := conn.(*clientConn)
	if !ok || client.half.known {
		return
	}
	half := &client.half
	half.known = true
	if isSecure {
		half.http1 = secure.ConnectionState().NegotiatedProtocol != http2.NextProtoTLS
		half.secure = half.http1
		return
	}
	half.http1 = string(half.first[:]) != http2.ClientPreface[:len(half.first)]
}

// waiting is what is known of the wait for a reset.
type waiting struct {
	sync.Mutex // held while a deadline of reads is set

	until time.Time // the deadline of reads
	on    bool      // somebody waits
	woken bool      // to look again
}

// SetReadDeadline sets the deadline of reads.
func (c *clientConn) SetReadDeadline(until time.Time) error {
	c.waiting.Lock()
	defer c.waiting.Unlock()
	c.waiting.until = until
	c.bounded.Store(!until.IsZero())
	return c.Conn.SetReadDeadline(until)
}

// wake makes the wait for a reset look again at what it waits for. Nothing else would: what has arrived before tells nothing twice.
func (c *clientConn) wake() {
	c.waiting.Lock()
	defer c.waiting.Unlock()
	if c.waiting.on {
		c.waiting.woken = true
		_ = c.Conn.SetReadDeadline(aLongTimeAgo)
	}
}

func (c *clientConn) beginWaiting() {
	c.waiting.Lock()
	defer c.waiting.Unlock()
	c.waiting.on = true
}

// endWaiting reports whether the wait was woken. Then its result means nothing.
func (c *clientConn) endWaiting() (woken bool) {
	c.waiting.Lock()
	defer c.waiting.Unlock()
	woken = c.waiting.woken
	c.waiting.on, c.waiting.woken = false, false
	if woken {
		_ = c.Conn.SetReadDeadline(c.waiting.until)
	}
	return woken
}

// awaitsReset reports whether a read is that of net/http while a request with TLS is served.
func (c *clientConn) awaitsReset() bool { return c.half.secure && c.half.http1 && !c.bounded.Load() }

// awaitReset waits until the connection is reset, or the read must end. ended is what a read has returned, which is returned where
// nothing is known of a reset.
func (c *clientConn) awaitReset(ended error) error {
	if c.half.reset == nil {
		c.half.reset = sockets.NewReset(c.Conn, &c.streams)
	}
	if c.half.reset == nil {
		return ended
	}
	for {
		c.beginWaiting()
		err := c.half.reset.Wait()
		switch {
		case c.endWaiting():
		case err != nil:
			return err
		default:
			return ended
		}
	}
}

// isReset reports whether the connection is known to be reset. Nobody needs to read from it for that.
func (c *clientConn) isReset() bool { return c != nil && sockets.IsReset(c.Conn) }

// stream says whether the response is a stream that nothing bounds. Who ends the client's side while it comes has left: otherwise that
// would be known only from what is sent next.
func (c *clientConn) stream(on bool) {
	if c == nil {
		return
	}
	c.streams.Store(on)
	if on {
		c.wake()
	}
}

// fetch reads from the client. With TLS, it returns no more than one record. What else has come is copied once.
func (c *clientConn) fetch(p []byte) (int, error) {
	if len(c.ahead) > 0 {
		n := c.half.piece(c.ahead[:min(len(p), len(c.ahead))])
		copy(p, c.ahead[:n])
		if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
			c.ahead = nil // to free its memory
		}
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if of := c.half.piece(p[:n]); of < n {
		c.ahead, n, err = bytes.Clone(p[of:n]), of, nil
	}
	return n, err
}

// piece returns how much of these bytes, which follow those before, is returned at once.
func (h *halfClose) piece(b []byte) int {
	if h.secure {
		return h.record(b)
	}
	h.begun += copy(h.first[h.begun:], b)
	return len(b)
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
// In HTTP/2, a read of one byte is any other.
func (c *clientConn) isEnd(p []byte, err error) bool {
	return len(p) == 1 && errors.Is(err, io.EOF) && c.half.http1 && !c.half.secure && !c.streams.Load()
}
