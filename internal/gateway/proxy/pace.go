package proxy

import (
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// pace bounds how long an HTTP/1 client may send nothing of a body, or take nothing of a
// response. For HTTP/2 a watch does that (stream.go).
type pace struct {
	control *http.ResponseController
	clock   clock.PassiveClock
	timeout time.Duration
}

func (p *pace) beforeWrite() {
	_ = p.control.SetWriteDeadline(p.clock.Now().Add(p.timeout))
}

// lift removes the bound from later writes.
func (p *pace) lift() { _ = p.control.SetWriteDeadline(time.Time{}) }
