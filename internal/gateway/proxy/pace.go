package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// pace bounds how long a client of HTTP/1 may send nothing of a body, or take nothing of
// a response. For HTTP/2 the server watches the connection, and a deadline would end a
// stream that only waits for the other side.
type pace struct {
	control *http.ResponseController
	clock   clock.PassiveClock
	timeout time.Duration
}

func (p *pace) beforeWrite() {
	_ = p.control.SetWriteDeadline(p.clock.Now().Add(p.timeout))
}

func (p *pace) beforeRead() {
	_ = p.control.SetReadDeadline(p.clock.Now().Add(p.timeout))
}

// pacedBody is a request's body that must keep coming.
type pacedBody struct {
	pace

	body    io.Reader
	length  int64 // -1 if it is not known
	read    atomic.Int64
	stopped atomic.Bool
}

// Read reads what comes in time.
func (b *pacedBody) Read(p []byte) (int, error) {
	b.beforeRead()
	if b.stopped.Load() {
		b.stop()
	}
	n, err := b.body.Read(p)
	b.read.Add(int64(n))
	if errors.Is(err, io.EOF) && !b.stopped.Load() {
		_ = b.control.SetReadDeadline(time.Time{}) // net/http reads on, to see the client leave
	}
	return n, err
}

// unread reports whether some of a body of known length has not been read.
func (b *pacedBody) unread() bool { return b.read.Load() < b.length }

// stop makes a Read under way return, and those after it.
func (b *pacedBody) stop() {
	b.stopped.Store(true)
	_ = b.control.SetReadDeadline(aLongTimeAgo)
}
