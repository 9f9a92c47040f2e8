package replica

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// What the pods of one namespace may cost the operator. The pods run what their users want, so each may answer anything, at any
// pace. Who uses up the share of a namespace delays the news of that namespace.
const (
	// maxHeld is how many pods may hold an answer back at a time. The others are asked every pauseCrowded.
	maxHeld      = 256
	pauseCrowded = 5 * time.Second
	// maxReading is how many answers are read at a time.
	maxReading = 4
	// Every question costs askCost at least, and every answer its bytes: bytesBurst at once, bytesPerSecond in the long run.
	askCost        = 8 << 10
	bytesPerSecond = 1 << 20
	bytesBurst     = 8 << 20
	// maxKept is how much memory the documents of all pods may take.
	maxKept = 32 << 20
)

// noRoom is said of a pod whose document is not kept.
const noRoom = "the operator keeps 32 MiB of what the gateways of one namespace tell about routes, listeners and problems, and those of this " +
	"namespace tell more: mend what the problems are about, use fewer replicas or routes, or move gateways to another namespace"

// share is what one namespace uses of it.
type share struct {
	clock   clock.Clock
	reading chan struct{}
	bytes   *rate.Limiter

	mutex      sync.Mutex
	held, kept int
}

func newShare(clock clock.Clock) *share {
	return &share{clock: clock, reading: make(chan struct{}, maxReading), bytes: rate.NewLimiter(bytesPerSecond, bytesBurst)}
}

// spend waits until there is no debt, and then takes so many bytes, though there may be fewer. It returns false when the context
// ends before.
func (s *share) spend(ctx context.Context, bytes int) bool {
	if !pass(ctx, s.clock, s.bytes) {
		return false
	}
	s.take(bytes)
	return true
}

// take takes bytes, which the next ones wait for.
func (s *share) take(bytes int) {
	for ; bytes > 0; bytes -= bytesBurst {
		s.bytes.ReserveN(s.clock.Now(), min(bytes, bytesBurst))
	}
}

// read returns when an answer may be read, and how to say that it was. It returns nil when the context ends before.
func (s *share) read(ctx context.Context) (done func()) {
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	if !pass(ctx, s.clock, s.bytes) {
		<-s.reading
		return nil
	}
	return func() { <-s.reading }
}

// hold reports whether an answer may be held back. If so, letGo is called after it.
func (s *share) hold() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.held == maxHeld {
		return false
	}
	s.held++
	return true
}

func (s *share) letGo() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.held--
}

// keep reports whether there is memory for a document in the place of another one. Then it is taken.
func (s *share) keep(before, after int) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if after > before && s.kept-before+after > maxKept {
		return false
	}
	s.kept += after - before
	return true
}

// pass waits for one of a limiter. It returns false when the context ends before.
func pass(ctx context.Context, clock clock.Clock, limiter *rate.Limiter) bool {
	wait := limiter.ReserveN(clock.Now(), 1).DelayFrom(clock.Now())
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
