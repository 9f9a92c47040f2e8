package clienthello

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// MaxBytes bounds what is read. Messages with keys that withstand quantum computers have about 2 KiB.
const MaxBytes = 32 << 10

// readBytes is how much is read at a time.
const readBytes = 4 << 10

var (
	errRead    = errors.New("the message was read")
	errTooLong = errors.New("the first message of TLS is too long")
	errName    = errors.New("the client asks for something that is no name of DNS")
)

// Read reads the first message of TLS, however it is cut into pieces. name is the name that the client asks for, in lower case,
// empty if it asks for none. seen are all bytes that were taken from the connection. How long it takes, the caller bounds with a
// deadline. On an error the connection is of no use.
func Read(from net.Conn) (name string, seen []byte, err error) {
	r, done := &recorder{Conn: from}, false
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, // whoever speaks an older one is told so by whom the connection goes to
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name, done = hello.ServerName, true
			return nil, errRead
		},
	}
	err = tls.Server(r, config).Handshake()
	if !done {
		return "", r.seen, fmt.Errorf("read the first message of TLS: %w", err)
	}
	if name == "" {
		return "", r.seen, nil
	}
	host, err := table.ParseHost(name)
	if err != nil || host.Port != "" || name[0] == '[' {
		return "", r.seen, errName
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return "", r.seen, errName
	}
	return host.Name, r.seen, nil
}

// recorder keeps what is read, and writes nothing.
type recorder struct {
	net.Conn

	seen []byte
}

// Read reads from the connection, up to MaxBytes.
func (r *recorder) Read(p []byte) (int, error) {
	left := MaxBytes - len(r.seen)
	if left <= 0 {
		return 0, errTooLong
	}
	n, err := r.Conn.Read(p[:min(len(p), left, readBytes)])
	r.seen = append(r.seen, p[:n]...)
	return n, err
}

// Write throws away what crypto/tls has to say: the client gets no answer.
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }

// Close leaves the connection open.
func (r *recorder) Close() error { return nil }

// The deadlines are those of the caller.

// SetDeadline does nothing.
func (r *recorder) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (r *recorder) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (r *recorder) SetWriteDeadline(time.Time) error { return nil }

var _ io.ReadWriter = (*recorder)(nil)
