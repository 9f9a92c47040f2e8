package upstream

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"net"
	"time"
)

// recordHeader is the size of the header of a TLS record: a type, a version and the size of the rest (RFC 8446,
// 5.1).
const recordHeader = 5

// records is a connection below TLS. It hands out one record at a time, so that TLS holds no bytes
// that nobody has asked for: there they could not be seen, and would be read as the next response.
type records struct {
	net.Conn

	in   *bufio.Reader
	left int // bytes of the record that is being handed out
}

func newRecords(conn net.Conn) *records { return &records{Conn: conn, in: bufio.NewReader(conn)} }

// Read returns bytes of one record.
func (r *records) Read(p []byte) (int, error) {
	if r.left == 0 {
		header, err := r.in.Peek(recordHeader)
		if err != nil {
			return 0, err
		}
		r.left = recordHeader + int(binary.BigEndian.Uint16(header[3:]))
	}
	n, err := r.in.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

// pending reports whether there are bytes that TLS has not asked for, or of a record that is not
// complete.
func (r *records) pending() bool { return r.left > 0 || r.in.Buffered() > 0 }

// below returns the connection that carries TLS, or the connection itself without TLS.
func below(conn net.Conn) net.Conn {
	if secure, is := conn.(*tls.Conn); is {
		conn = secure.NetConn()
	}
	if carrier, is := conn.(*records); is {
		conn = carrier.Conn
	}
	return conn
}

// quiet reports whether TLS and the connection below it hold nothing that nobody has read.
func quiet(secure *tls.Conn) bool {
	below, is := secure.NetConn().(*records)
	if !is || below.pending() {
		return false
	}
	// TLS returns what it has decrypted even when the deadline is over, and then reads nothing from below.
	if secure.SetReadDeadline(aLongTimeAgo) != nil {
		return false
	}
	var one [1]byte
	n, err := secure.Read(one[:])
	timeout, is := err.(net.Error) //nolint:errorlint // TLS returns it as it is
	if n > 0 || !is || !timeout.Timeout() || below.pending() {
		return false
	}
	return secure.SetReadDeadline(time.Time{}) == nil
}
