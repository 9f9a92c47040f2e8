package proxy

import (
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// pace bounds how long an HTTP/1 client may send nothing of a body. For HTTP/2 a watch does
// that (stream.go).
type pace struct {
	control *http.ResponseController
	clock   clock.PassiveClock
	timeout time.Duration
}

// boundWrite bounds what is written to an HTTP/1 client next. Not even the first bytes of a response always fit into the buffers of the
// kernel: those before them may not have been taken yet. net/http removes the bound after each request.
func (e *exchange) boundWrite() {
	e.setWriteDeadline(e.handler.options.Clock.Now().Add(e.handler.options.ClientTimeout))
}

// setWriteDeadline allocates nothing, also where there are no deadlines.
func (e *exchange) setWriteDeadline(until time.Time) {
	if to, ok := e.w.(interface{ SetWriteDeadline(until time.Time) error }); ok {
		_ = to.SetWriteDeadline(until)
	}
}
