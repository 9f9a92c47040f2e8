package proxy

import (
	"crypto/tls"
	"net"
	"slices"
)

// These are alerts of TLS (RFC 8446, 6.2).
const (
	alertHandshakeFailure = 40
	alertMissingExtension = 109
	alertUnrecognizedName = 112
)

// alertNoName returns how the handshake of a client ends whose name nobody has.
func alertNoName(hello *tls.ClientHelloInfo) byte {
	switch {
	case hello.ServerName != "":
		return alertUnrecognizedName
	case slices.Contains(hello.SupportedVersions, tls.VersionTLS13):
		return alertMissingExtension // of the name
	}
	return alertHandshakeFailure
}

// endHandshake tells a client why its handshake ends. crypto/tls would tell every client of an internal error, and offers no other
// alert. So nothing that it says afterwards is sent. Before the first answer to a client, no message is encrypted.
func endHandshake(conn net.Conn, alert byte) {
	client, ok := conn.(*clientConn)
	if !ok {
		return
	}
	const record, fatal = 21, 2
	_, _ = client.Conn.Write([]byte{record, 3, 3, 0, 2, fatal, alert})
	client.muted.Store(true)
}

// Write writes to the client, unless its handshake was ended.
func (c *clientConn) Write(p []byte) (int, error) {
	if c.muted.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}
