package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// maxCheckBody bounds how much of the answer to a check is read, so that its connection can
// be reused.
const maxCheckBody = 16 << 10

// Check defines the active health checks of a Service's endpoints. The zero value means no
// checks. Otherwise no number may be 0.
type Check struct {
	// Protocol is the protocol of the endpoints.
	Protocol Protocol
	// Path is the path of the GET request. A status from 200 to 399 is a success.
	Path string
	// Host is the host of the request. Empty: the address of the endpoint.
	Host string
	// Period is the time between two checks of an endpoint. It varies by up to a tenth.
	Period time.Duration
	// Timeout bounds a check.
	Timeout time.Duration
	// Healthy is how many successes in a row make an unhealthy endpoint healthy again.
	// Unhealthy is how many failures in a row make one unhealthy.
	Healthy   int
	Unhealthy int
	// Owner has one pace for all of its checks, so that the endpoints of one owner do not take
	// the time of all. Empty: no pace.
	Owner string
}

// checksPerSecond is the pace of an owner. With more endpoints than it is for, each is
// checked later than the period says.
const checksPerSecond = 500

// request is the request of a check.
func (c *Check) request(e *endpoint) *Request {
	return &Request{
		Protocol: c.Protocol, Method: http.MethodGet, Target: c.Path, Host: cmp.Or(c.Host, e.address),
		Fields: []Field{{"User-Agent", "slipway-gateway health check"}},
	}
}

// accepts reports whether a status is a success.
func (c *Check) accepts(status int) bool { return status >= 200 && status < 400 }

// CheckResult is the result of one check of an endpoint.
type CheckResult struct {
	// Service is the key of the Service.
	Service string
	// Endpoint is the address that was checked.
	Endpoint string
	// Err says why the check failed. It is nil after a success.
	Err error
	// Changed is set if this result made the endpoint unhealthy, or healthy again.
	Changed bool
}

// SetCheck replaces the check of the endpoints. The health of an endpoint stays until the
// new check finds another result. Without a check, all endpoints are healthy.
func (s *Service) SetCheck(check Check) {
	s.set.Lock()
	defer s.set.Unlock()
	if s.check == check {
		return
	}
	s.check = check
	for _, e := range *s.endpoints.Load() {
		e.stopChecks()
		e.unhealthy = e.unhealthy && check != (Check{})
	}
	s.findEligible()
	s.wake()
}

// findEligible needs set held. It is called after endpoints or their health have changed.
// If no endpoint is healthy, the check itself may be wrong. Then all endpoints are
// eligible, because a failed request is no worse than one that is not sent.
func (s *Service) findEligible() {
	all := *s.endpoints.Load()
	eligible := slices.DeleteFunc(slices.Clone(all), func(e *endpoint) bool { return e.unhealthy })
	if len(eligible) == 0 {
		eligible = all
	}
	s.eligible.Store(&eligible)
	s.findPlaces()
}

// startChecks checks each endpoint on its own goroutine, until the context ends, or the
// endpoint or the check is removed.
func (s *Service) startChecks(ctx context.Context, clock clock.Clock, wait *sync.WaitGroup, paceOf func(owner string) *rate.Limiter) {
	s.set.Lock()
	defer s.set.Unlock()
	if s.check == (Check{}) {
		return
	}
	for _, e := range *s.endpoints.Load() {
		if e.stopCheck != nil {
			continue
		}
		checking, stop := context.WithCancel(ctx)
		e.stopCheck = stop
		c := &checker{endpoint: e, check: s.check, pace: paceOf(s.check.Owner)}
		wait.Go(func() { c.run(checking, clock) })
	}
}

// stopChecks needs Service.set held.
func (e *endpoint) stopChecks() {
	if e.stopCheck != nil {
		e.stopCheck()
		e.stopCheck = nil
	}
}

// checker checks one endpoint.
type checker struct {
	endpoint  *endpoint
	check     Check
	pace      *rate.Limiter // nil: none
	successes int           // in a row
	failures  int
}

// run checks at random times. So neither endpoints nor gateways that start together keep
// checking at the same time.
func (c *checker) run(ctx context.Context, clock clock.Clock) {
	period := c.check.Period
	timer := clock.NewTimer(rand.N(period))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		if c.pace != nil && c.pace.Wait(ctx) != nil {
			return
		}
		timer.Reset(period - period/10 + rand.N(period/5+1)) // from the start of a check to the start of the next
		// A panic says nothing of the endpoint.
		if err := c.ask(ctx); ctx.Err() == nil && !errors.Is(err, panics.ErrPanicked) {
			c.report(ctx, err)
		}
	}
}

// ask checks the endpoint once. Its failures do not count for an ejection.
func (c *checker) ask(ctx context.Context) (err error) {
	defer c.endpoint.service.options.Panics.CatchError("check the health of an endpoint", &err)
	ctx, cancel := context.WithTimeoutCause(asOwn(ctx), c.check.Timeout, fmt.Errorf("no answer in %v", c.check.Timeout))
	defer cancel()
	request := c.check.request(c.endpoint)
	response, failure := c.endpoint.send(ctx, request, false)
	if failure != nil && failure.stale { // the endpoint closed an idle connection, as it may
		response, failure = c.endpoint.send(ctx, request, true)
	}
	if failure != nil {
		return failure
	}
	defer response.Close()
	if !c.check.accepts(response.Status) {
		return fmt.Errorf("%s: the answer is %d", response.Endpoint, response.Status)
	}
	_, _ = io.CopyN(io.Discard, response, maxCheckBody)
	return nil
}

// report counts a result and reports it.
func (c *checker) report(ctx context.Context, err error) {
	s := c.endpoint.service
	result := CheckResult{Service: s.key, Endpoint: c.endpoint.address, Err: err, Changed: s.judge(ctx, c, err == nil)}
	if s.options.Checked != nil {
		s.options.Checked(result)
	}
}

// judge reports whether a result changes the health of the endpoint.
func (s *Service) judge(ctx context.Context, c *checker, success bool) bool {
	s.set.Lock()
	defer s.set.Unlock()
	if ctx.Err() != nil {
		return false // the check may have been replaced already
	}
	if success {
		c.successes, c.failures = c.successes+1, 0
	} else {
		c.successes, c.failures = 0, c.failures+1
	}
	e := c.endpoint
	switch {
	case e.unhealthy && c.successes >= c.check.Healthy:
		e.unhealthy = false
	case !e.unhealthy && c.failures >= c.check.Unhealthy:
		e.unhealthy = true
	default:
		return false
	}
	s.findEligible()
	return true
}
