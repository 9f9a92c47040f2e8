package upstream

import (
	"errors"
	"sync"
	"time"
)

// errClientGone means that nobody wants the response any more, which was found while the endpoint did not read the request.
var errClientGone = errors.New("the client has gone")

// vigil looks now and then at an exchange that waits for its endpoint to read the request. Nil does nothing.
type vigil struct {
	every time.Duration
	look  func() (again bool) // is not called after end

	mu    sync.Mutex
	on    bool
	timer *time.Timer // nil before the first begin
}

func (v *vigil) begin() {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.on = true
	if v.timer == nil {
		v.timer = time.AfterFunc(v.every, v.fire)
		return
	}
	v.timer.Reset(v.every)
}

// end returns when look is not running any more.
func (v *vigil) end() {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.on = false
	if v.timer != nil {
		v.timer.Stop()
	}
}

func (v *vigil) fire() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.on && v.look() {
		v.timer.Reset(v.every)
	}
}

// clientGone reports whether the client is known to have gone.
func (r *Request) clientGone() bool { return r.ClientGone != nil && r.ClientGone() }
