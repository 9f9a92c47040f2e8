package table

import (
	"time"
)

// Route is a compiled route. The table knows which requests it matches. Route tells what
// happens to them. A nil or zero field means that the spec does not ask for it.
type Route struct {
	// Name is the name in the spec, or one generated from host and path. It is unique in a
	// table.
	Name string
	// Index is the index in the spec.
	Index int

	// Unavailable is set if the route cannot be served as written. Then requests are
	// answered with 500, and no other field is used.
	Unavailable *Problem

	// Exactly one of Backends, Redirect and Direct is set. Pick chooses among the backends.
	Backends []WeightedBackend
	Redirect *Redirect
	Direct   *DirectResponse

	Rewrite         *Rewrite
	RequestHeaders  *HeaderEdit
	ResponseHeaders *HeaderEdit
	Mirror          *Mirror
	CORS            *CORS
	// MaxBodyBytes bounds the size of a request body. 0 means no limit.
	MaxBodyBytes int64
	Timeouts     Timeouts
	Retries      Retries
	Auth         *Auth
	RateLimit    *RateLimit

	match      predicates
	protection protection
	usable     usable
}

// WeightedBackend is a backend with its weight.
type WeightedBackend struct {
	*Backend
	Weight uint32
}

// usable are the backends that Pick chooses from: those with a weight and endpoints.
type usable struct {
	backends []*Backend
	sums     []uint64 // the sum of the weights up to and including each backend
}

// Timeouts bound the parts of an exchange. 0 means no bound.
type Timeouts struct {
	// Request bounds the time from the arrival of the request to the end of the response.
	Request time.Duration
	// Backend bounds, for each attempt, the time from sending the request to the head of
	// the response.
	Backend time.Duration
	// Idle bounds how long no bytes of a body may come. Not set: the defaults of the proxy.
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

// Retries defines how often and for which causes a request is sent again.
type Retries struct {
	Attempts int
	On       Causes
}

// Mirror is the backend that gets copies of requests.
type Mirror struct {
	Backend *Backend
	// Percent of the requests are copied, from 0 to 100.
	Percent uint32
}

// DirectResponse is a fixed answer.
type DirectResponse struct {
	StatusCode  int
	ContentType string
	Body        []byte
}

// RateLimit bounds the rate of requests.
type RateLimit struct {
	// Requests are allowed in each Period. Up to Burst of them may come at once.
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

// Pick chooses a backend with endpoints, in proportion to the weights. random is a
// uniformly distributed number. It returns nil if no backend has an endpoint. Then the
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
