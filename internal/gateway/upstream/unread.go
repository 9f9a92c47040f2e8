package upstream

import (
	"net"

	"github.com/slipway-dev/slipway/internal/gateway/sockets"
)

// What the kernel keeps of a response that nobody takes is bounded, and shared as windows are over HTTP/2. Without that, a
// connection that was fast once keeps several MiB. The kernel may use twice the size that it is told.
const (
	// wideBuffer makes all that waits of a response as much as a wide window: twice this, what the client cannot be sent yet,
	// and the piece that it gets next.
	wideBuffer   = (wideWindow - sockets.MaxUnsent - pieceSize) / 2
	narrowBuffer = narrowWindow
	// loopbackBuffer stands for narrowBuffer on loopback, where one segment may have 64 KiB. Less room than for two of them
	// makes the sender wait.
	loopbackBuffer = 64 << 10
)

func (c *conn) narrowBuffer() int {
	if address, ok := c.raw.RemoteAddr().(*net.TCPAddr); ok && address.IP.IsLoopback() {
		return loopbackBuffer
	}
	return narrowBuffer
}

func (c *conn) boundUnread(bytes int) {
	if tcp, ok := below(c.raw).(interface{ SetReadBuffer(bytes int) error }); ok {
		_ = tcp.SetReadBuffer(bytes)
	}
}

// widen lets the kernel keep more of the response, if there is a wide window for its client. A response that is here already
// needs none, and one that comes a piece at a time neither.
func (c *conn) widen() {
	if c.bodyHeld() || c.response.Stream || !c.pool.windows.take(c.request.Client) {
		return
	}
	c.client, c.wide = c.request.Client, true
	c.boundUnread(wideBuffer)
}

// narrow gives the wide window back.
func (c *conn) narrow() {
	if c.wide {
		c.boundUnread(c.narrowBuffer())
		c.pool.windows.release(c.client)
		c.wide = false
	}
}
