package table

import (
	"time"
)

// Route is a compiled route: which requests it matches is in the table, what happens
// to them is here. What is nil or zero is not asked for.
type Route struct {
	// Name is the name in the spec, or one made of host and path. It is unique in a table.
	Name string
	// Index is the place in the spec.
	Index int

	// Unavailable is set where the route cannot be served as written: requests are
	// answered with 500 and nothing else of the route is used.
	Unavailable *Problem

	// One of Backends, Redirect and Direct is set. Pick chooses among the backends.
	Backends []WeightedBackend
	Redirect *Redirect
	Direct   *DirectResponse

	Rewrite         *Rewrite
	RequestHeaders  *HeaderEdit
	ResponseHeaders *HeaderEdit
	Mirror          *Mirror
	CORS            *CORS
	// MaxBodyBytes is the size of the largest request body; 0: no limit.
	MaxBodyBytes int64
	Timeouts     Timeouts
	Retries      Retries
	Auth         *Auth
	RateLimit    *RateLimit

	match      predicates
	protection protection
	usable     usable
}

// WeightedBackend is a backend with its share.
type WeightedBackend struct {
	*Backend
	Weight uint32
}

// usable is what Pick chooses from: backends with weight and endpoints.
type usable struct {
	backends []*Backend
	sums     []uint64 // of the weights up to and including each backend
}

// Timeouts are 0 where there is no bound.
type Timeouts struct {
	// Request is from the arrival of the request to the end of the response.
	Request time.Duration
	// Backend is from sending the request to the head of the response, for each try.
	Backend time.Duration
	// Idle is how long nothing may come of a body; unset: the proxy's own times.
	Idle    time.Duration
	IdleSet bool
}

// Causes is a set of reasons to send a request again.
type Causes uint8

// The causes of a retry.
const (
	ConnectFailure Causes = 1 << iota
	Reset
	Timeout
	Status502
	Status503
	Status504
)

// Retries says how often and why a request is sent again.
type Retries struct {
	Attempts int
	On       Causes
}

// Mirror is where copies of requests go.
type Mirror struct {
	Backend *Backend
	// Percent of the requests, from 0 to 100.
	Percent uint32
}

// DirectResponse is a fixed answer.
type DirectResponse struct {
	StatusCode  int
	ContentType string
	Body        []byte
}

// RateLimit bounds the number of requests.
type RateLimit struct {
	// Requests are allowed in each Period, Burst of them at once.
	Requests int64
	Period   time.Duration
	Burst    int64
	Per      Scope
}

// Scope says which requests are counted together.
type Scope uint8

// The scopes of a rate limit.
const (
	PerClientAddress Scope = iota
	PerKey
	PerRoute
)

// Pick chooses a backend that has endpoints, in proportion to the weights. random is
// any number, each as likely as the other. It returns nil when no backend has one: the
// answer is 503.
func (r *Route) Pick(random uint64) *Backend {
	switch n := len(r.usable.backends); n {
	case 0:
		return nil
	case 1:
		return r.usable.backends[0]
	default:
		at := random % r.usable.sums[n-1]
		for i, sum := range r.usable.sums {
			if at < sum {
				return r.usable.backends[i]
			}
		}
		return nil
	}
}
