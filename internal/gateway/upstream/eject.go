package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// What leaves an endpoint out. It is here and nowhere else:
//
//   - Requests that fail raise a suspicion: no connection, no TLS, a connection that ends
//     before the head of a response though the request went out on a new one, no response in
//     time though the request was sent whole, a response that may not be passed on, and 502,
//     503 and 504. Ejection.Failures of them in a row are enough, and a single one for an
//     endpoint that was left out and has answered nothing since.
//   - None of it is proof, as a client may be able to produce it: a request that makes the
//     application fail, or take long. So the gateway then asks itself, with the request of the
//     health check, or else GET /, over a new connection (over HTTP/2: over the one that
//     there is). Only if that fails too, by one of the same failures (with a health check: by
//     its rules), the endpoint is left out.
//   - Failed health checks leave it out by themselves (health.go).
//   - Never: what a client did (it went, its body did not come, its request cannot be sent),
//     what the gateway lacks (ports, files, memory), a kept connection that the endpoint
//     had closed, and another protocol than was declared.
//   - Never more than Ejection.MaxPercent, and never the last one.

const (
	// askTimeout bounds the gateway's own request to an endpoint under suspicion.
	askTimeout = 2 * time.Second
	// askEvery is the least time between two of them to the same endpoint.
	askEvery = time.Second
)

// isGatewaysError reports whether a status is the word of an endpoint that is overloaded,
// starting or stopping. Other errors may be the application's answer.
func isGatewaysError(status int) bool { return status >= 502 && status <= 504 }

// raisesSuspicion reports whether a failure may be the endpoint's.
func (e *Error) raisesSuspicion() bool {
	switch e.Kind {
	case Connect:
		return !isOurs(e.Err)
	case Malformed:
		return true
	case Timeout:
		return !e.unsent
	case Reset:
		return !e.stale
	}
	return false
}

// isOurs reports whether it is the gateway that lacks something.
func isOurs(err error) bool {
	for _, lack := range []error{syscall.EADDRNOTAVAIL, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}

// ejector guards the decisions about ejections of a Service.
type ejector struct {
	mu sync.Mutex
	// any is set while an endpoint may be ejected, so that nobody looks at the clock
	// for a Service that is well.
	any atomic.Bool
}

// suspect counts a failure, and has the gateway ask the endpoint itself if there were too
// many in a row.
func (s *Service) suspect(ctx context.Context, e *endpoint) {
	failures := int(e.failures.Add(1))
	if failures < s.options.Ejection.Failures && e.ejections.Load() == 0 {
		return
	}
	now := s.options.Clock.Now()
	before := e.asked.Load()
	if e.ejected(now) || !s.mayEject(now) || now.UnixNano()-before < int64(askEvery) || !e.asked.CompareAndSwap(before, now.UnixNano()) {
		return
	}
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	s.asking.Go(func() {
		defer cancel()
		if err := s.ask(asking, e); err != nil {
			s.eject(e)
			return
		}
		e.failures.Store(0)
	})
}

// Wait waits until the gateway asks nobody itself any more.
func (s *Service) Wait() { s.asking.Wait() }

// ask asks an endpoint under suspicion. The error says that it fails whoever asks.
func (s *Service) ask(ctx context.Context, e *endpoint) error {
	s.set.Lock()
	check, protocol := s.check, s.protocol
	s.set.Unlock()
	configured := check != (Check{})
	if !configured {
		check = Check{Protocol: protocol, Path: "/"}
	}
	response, failure := e.send(asOwn(ctx), check.request(e), true)
	switch {
	case failure != nil && failure.Kind == Connect && isOurs(failure.Err):
		return nil
	case failure != nil && (failure.Kind == WrongProtocol || failure.Kind == MaxConnections):
		return nil
	case failure != nil:
		return failure
	}
	defer response.Close()
	if isGatewaysError(response.Status) || (configured && !check.accepts(response.Status)) {
		return fmt.Errorf("%s: the answer is %d", response.Endpoint, response.Status)
	}
	return nil
}

// eject leaves an endpoint out for a while, as long as enough others are left.
func (s *Service) eject(e *endpoint) {
	rules := &s.options.Ejection
	s.ejector.mu.Lock()
	defer s.ejector.mu.Unlock()
	now := s.options.Clock.Now()
	if e.ejected(now) || !s.mayEject(now) {
		return
	}
	duration := rules.Max
	if doubled := rules.Base << min(e.ejections.Load(), 30); doubled > 0 && doubled < rules.Max {
		duration = doubled
	}
	e.ejections.Add(1)
	e.failures.Store(0)
	e.ejectedUntil.Store(now.Add(duration).UnixNano())
	s.ejector.any.Store(true)
}

// mayEject reports whether one endpoint more may be left out, of those that get requests.
func (s *Service) mayEject(now time.Time) bool {
	eligible := *s.eligible.Load()
	out := 0
	for _, e := range eligible {
		if e.ejected(now) {
			out++
		}
	}
	allowed := max(1, len(eligible)*s.options.Ejection.MaxPercent/100)
	return out < min(allowed, len(eligible)-1)
}

// succeeded forgets the failures of an endpoint. An answer to a request from before its
// ejection does not end the ejection.
func (s *Service) succeeded(e *endpoint) {
	if e.ejected(s.options.Clock.Now()) {
		return
	}
	s.ejector.mu.Lock()
	defer s.ejector.mu.Unlock()
	e.failures.Store(0)
	e.ejections.Store(0)
	e.ejectedUntil.Store(0)
	ejected := func(e *endpoint) bool { return e.ejectedUntil.Load() != 0 }
	s.ejector.any.Store(slices.ContainsFunc(*s.endpoints.Load(), ejected))
}
