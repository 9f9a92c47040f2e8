package upstream

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Service sends requests to the endpoints of one port of a Kubernetes Service.
type Service struct {
	options   Options
	secure    *TLS // nil: no TLS
	ejector   ejector
	gate      gate
	windows   *windows
	budget    budget
	endpoints atomic.Pointer[[]*endpoint]
	// eligible are the endpoints that get requests: those that no check has found
	// unhealthy. If there are none, all endpoints are eligible.
	eligible atomic.Pointer[[]*endpoint]
	// places are the eligible endpoints as Affinity names them. Nil: no key is set.
	places atomic.Pointer[places]

	set       sync.Mutex // held while endpoints, their health, the check or the protocol change
	check     Check
	protocol  Protocol
	asking    sync.WaitGroup // the gateway's own requests to suspected endpoints
	key       string         // the key in the Registry
	placeKey  []byte         // makes the places of endpoints, together with placeName
	placeName string
	wake      func() // makes the Registry start checks
}

// errNoEndpoints is why nothing is sent.
var errNoEndpoints = errors.New("the Service has no endpoints")

// NewService returns a Service without endpoints. They are reached with TLS unless secure is
// nil.
func NewService(options Options, secure *TLS) *Service {
	s := &Service{options: options.withDefaults(), secure: secure, windows: &windows{}, wake: func() {}}
	s.budget.start(s.options.Clock.Now())
	s.endpoints.Store(new([]*endpoint))
	s.eligible.Store(new([]*endpoint))
	return s
}

// SetLimits bounds the concurrent use of the Service. Requests in flight continue.
func (s *Service) SetLimits(limits model.Limits) { s.gate.setLimits(limits) }

// SetProtocol sets the declared protocol of the endpoints.
func (s *Service) SetProtocol(protocol Protocol) {
	s.set.Lock()
	defer s.set.Unlock()
	s.protocol = protocol
}

// Set replaces the endpoints, given as host:port. Endpoints that stay keep their
// connections and health. Requests in flight to removed endpoints continue.
func (s *Service) Set(addresses []string) { s.change(addresses, false) }

// Add adds endpoints and keeps the others.
func (s *Service) Add(addresses []string) { s.change(addresses, true) }

// change sets the endpoints. With keepOthers it adds them to the existing ones.
func (s *Service) change(addresses []string, keepOthers bool) {
	s.set.Lock()
	defer s.set.Unlock()
	others := map[string]*endpoint{}
	for _, e := range *s.endpoints.Load() {
		others[e.address] = e
	}
	var next []*endpoint
	for _, address := range slices.Compact(slices.Sorted(slices.Values(addresses))) {
		e := others[address]
		delete(others, address)
		if e == nil {
			e = newEndpoint(address, s)
		}
		next = append(next, e)
	}
	if keepOthers {
		next = slices.AppendSeq(next, maps.Values(others))
		clear(others)
	}
	s.endpoints.Store(&next)
	s.findEligible()
	for _, e := range others {
		e.remove()
	}
	if s.check != (Check{}) {
		s.wake()
	}
}

// retire closes every connection as soon as it has no request.
func (s *Service) retire() {
	s.set.Lock()
	defer s.set.Unlock()
	for _, e := range *s.endpoints.Load() {
		e.remove()
	}
}

// Endpoints returns how many endpoints there are.
func (s *Service) Endpoints() int { return len(*s.endpoints.Load()) }

// Requests returns how many requests are in flight or wait for a connection.
func (s *Service) Requests() int {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	return s.gate.requests.Taken()
}

// Busy returns how many requests the endpoints have, including health checks.
func (s *Service) Busy() int64 {
	busy := int64(0)
	for _, e := range *s.endpoints.Load() {
		busy += e.inFlight.Load()
	}
	return busy
}

// Ejected returns the addresses that are ejected now.
func (s *Service) Ejected() []string {
	now := s.options.Clock.Now()
	var out []string
	for _, e := range *s.endpoints.Load() {
		if e.ejected(now) {
			out = append(out, e.address)
		}
	}
	return out
}

// Tidy closes connections that were idle for too long. It must be called regularly.
func (s *Service) Tidy() {
	now := s.options.Clock.Now()
	for _, e := range *s.endpoints.Load() {
		e.http1.tidy(now)
		e.http2.tidy(now)
	}
}

// Do sends a request and returns when the head of its response has arrived. The caller
// reads the rest. The error is an *Error. The response must be closed.
func (s *Service) Do(ctx context.Context, req *Request) (*Response, error) {
	if s.Endpoints() == 0 {
		return nil, &Error{Kind: NoEndpoints, Err: errNoEndpoints}
	}
	replay, err := s.readReplay(req)
	if err != nil {
		return nil, err
	}
	pass := pass{client: req.Client, exclusive: req.Protocol == HTTP1}
	if failure := s.enter(ctx, req, pass); failure != nil {
		replay.release()
		return nil, failure
	}
	answered := false
	defer func() {
		if !answered { // an error or a panic
			req.streamed.finish()
			s.gate.leave(pass)
			replay.release()
		}
	}()
	s.budget.requests.Add(1)
	response, failure := s.try(ctx, req)
	if failure != nil {
		return nil, failure
	}
	answered, response.replay, response.gate, response.pass = true, replay, &s.gate, pass
	return response, nil
}

// enter waits until the limits allow the request, within its deadline.
func (s *Service) enter(ctx context.Context, req *Request, p pass) *Error {
	wait, kind := maxPendingWait, MaxConnections
	if !req.Deadline.IsZero() {
		if left := req.Deadline.Sub(s.options.Clock.Now()); left < wait {
			wait, kind = left, Timeout
		}
	}
	waited, failure := s.gate.enter(ctx, p, wait)
	req.waited = waited
	if failure != nil && failure.Kind == MaxConnections {
		failure.Kind = kind
	}
	return failure
}

// evict closes an idle connection to any endpoint. It returns false if there is none.
func (s *Service) evict() bool {
	for _, e := range *s.endpoints.Load() {
		if e.http1.evict() {
			return true
		}
	}
	return false
}

// pick draws two eligible endpoints that are not ejected, have no connection that hangs and
// were not tried, and returns the one with less load. If there are none, it also uses those
// with a connection that hangs, then those that are ejected, then those that were tried. It
// returns nil if there are no endpoints.
func (s *Service) pick(tried []*endpoint) *endpoint {
	all := *s.eligible.Load()
	switch {
	case len(all) == 0:
		return nil
	case len(all) == 1:
		return all[0]
	}
	var now time.Time
	if s.ejector.any.Load() {
		now = s.options.Clock.Now()
	}
	reachable := func(e *endpoint) bool {
		return (now.IsZero() || !e.ejected(now)) && !slices.Contains(tried, e)
	}
	usable := func(e *endpoint) bool { return e.hanging.Load() == 0 && reachable(e) }
	first := draw(all, usable)
	if first == nil {
		first = draw(all, reachable)
	}
	if first == nil {
		first = draw(all, func(e *endpoint) bool { return !slices.Contains(tried, e) })
	}
	if first == nil {
		return all[rand.IntN(len(all))]
	}
	second := draw(all, func(e *endpoint) bool { return e != first && usable(e) })
	if second != nil && second.inFlight.Load() < first.inFlight.Load() {
		return second
	}
	return first
}

// draw returns a random usable endpoint, or nil. Each has the same chance.
func draw(all []*endpoint, usable func(*endpoint) bool) *endpoint {
	for range 3 {
		if e := all[rand.IntN(len(all))]; usable(e) {
			return e
		}
	}
	var chosen *endpoint
	count := 0
	for _, e := range all {
		if !usable(e) {
			continue
		}
		count++
		if rand.IntN(count) == 0 {
			chosen = e
		}
	}
	return chosen
}

// replayBuffer holds the small body of a request.
type replayBuffer [MaxReplay]byte

var replayBuffers = sync.Pool{New: func() any { return new(replayBuffer) }}

func (b *replayBuffer) release() {
	if b != nil {
		replayBuffers.Put(b)
	}
}

// StopAfter calls stop after some time, unless its result is called before. The result
// returns when stop does not run any more: what stop uses may be gone once a request has
// ended.
func StopAfter(wait time.Duration, stop func()) (cancel func()) {
	stopped := make(chan struct{})
	timer := time.AfterFunc(wait, func() {
		defer close(stopped)
		stop()
	})
	return func() {
		if !timer.Stop() {
			<-stopped
		}
	}
}

// readReplay reads a small body into a buffer. It returns nil if there is no body or if it
// is not small.
func (s *Service) readReplay(req *Request) (*replayBuffer, error) {
	if !req.small() {
		return nil, nil
	}
	if !req.Deadline.IsZero() {
		defer StopAfter(req.Deadline.Sub(s.options.Clock.Now()), req.StopBody)()
	}
	buffer := replayBuffers.Get().(*replayBuffer)
	if err := req.keepBody(buffer[:]); err != nil {
		buffer.release()
		return nil, &Error{Kind: RequestBody, Err: err}
	}
	return buffer, nil
}
