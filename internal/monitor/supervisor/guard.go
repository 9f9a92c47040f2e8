package supervisor

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// errSilent is an API server that does not say anything for too long.
var errSilent = errors.New("the API server does not answer")

// guard ends a request that waits too long for the API server. The time in which nobody reads does not count.
type guard struct {
	clock  clock.WithDelayedExecution
	cancel context.CancelCauseFunc
	// idle is how long one read may wait.
	idle time.Duration
	// total is how long all reads together may wait, 0 for no limit.
	total time.Duration
	// late is called when the answer has not come, or does not go on, for that long. It may be nil.
	late      func()
	lateAfter time.Duration

	status *status

	spent time.Duration
	body  io.ReadCloser
}

// open sends the request and returns its answer, or what went wrong.
func (g *guard) open(ctx context.Context, send func() (io.ReadCloser, error)) error {
	err := g.watched(func() error {
		body, err := send()
		g.body = body
		return err
	})
	return causeOf(ctx, err)
}

// Read implements io.Reader.
func (g *guard) Read(p []byte) (int, error) {
	var n int
	g.status.reads()
	err := g.watched(func() error {
		var err error
		n, err = g.body.Read(p)
		return err
	})
	g.status.has(n)
	return n, err
}

// watched runs what waits for the API server.
func (g *guard) watched(wait func() error) error {
	limit := g.idle
	if g.total > 0 {
		limit = min(limit, g.total-g.spent)
	}
	if limit <= 0 {
		return errSilent
	}
	begin := g.clock.Now()
	defer g.after(limit, func() { g.cancel(errSilent) })()
	if g.late != nil {
		defer g.after(g.lateAfter, g.late)()
	}
	err := wait()
	g.spent += g.clock.Since(begin)
	return err
}

// after does something after a time, unless it is stopped before. Once stop has returned nothing is done any more: what the answer has
// brought must not be overwritten by what was true before it.
func (g *guard) after(during time.Duration, do func()) (stop func()) {
	var mutex sync.Mutex
	stopped := false
	timer := g.clock.AfterFunc(during, func() {
		mutex.Lock()
		defer mutex.Unlock()
		if !stopped {
			do()
		}
	})
	return func() {
		timer.Stop()
		mutex.Lock()
		defer mutex.Unlock()
		stopped = true
	}
}

// causeOf returns why a request was cancelled instead of that it was.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
