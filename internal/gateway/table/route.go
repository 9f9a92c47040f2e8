package table

import (
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Route is a compiled route. The table knows which requests it matches. Route tells what
// happens to them. A nil or zero field means that the spec does not ask for it.
type Route struct {
	// Name is the name of the rule.
	Name string
	// Index is the Index of the rule. Place is the index in Table.Routes.
	Index int
	Place int
	// Transport says how the backends are reached. If it is not that of HTTP, the route is for connections or datagrams, and
	// has nothing but Unavailable and Backends.
	Transport model.Transport

	// Unavailable is set if the route cannot be served as written. Then requests are
	// answered with 500, and no other field is used.
	Unavailable *model.Problem

	// At most one of Backends, Redirect and Direct is set. Pick chooses among the backends.
	// Those with a Fault are not in Backends.
	Backends []WeightedBackend
	Redirect *CompiledRedirect
	Direct   *model.DirectResponse
	// StrictShares means that no backend gets the share of another one.
	StrictShares bool

	Rewrite         *CompiledRewrite
	RequestHeaders  *model.HeaderEdit
	ResponseHeaders *model.HeaderEdit
	Mirrors         []Mirror
	Timeouts        model.Timeouts
	Retries         model.Retries

	// Compiled are the settings that features have.
	list.Compiled

	match      predicates
	protection protection
	shares     []share
}

// WeightedBackend is a backend with its weight.
type WeightedBackend struct {
	*model.Backend
	Weight uint32

	// Rewrite is used instead of the route's. Nil: the route's.
	Rewrite *CompiledRewrite
	// These are applied after the route's.
	RequestHeaders  *model.HeaderEdit
	ResponseHeaders *model.HeaderEdit
	// Mirrors get copies besides those of the route.
	Mirrors []Mirror
}

// share is a part of the requests.
type share struct {
	backend int    // the index in Route.Backends, or -1
	lack    Lack   // why the backend cannot be used
	sum     uint64 // the sum of the weights up to and including this share
	seed    uint64 // names the share for PickFor; only with Affinity
}

// Lack says why no backend gets a request.
type Lack uint8

const (
	// LackNothing means that a backend gets it.
	LackNothing Lack = iota
	// LackEndpoints means that the backend has no endpoints. The answer is 503.
	LackEndpoints
	// LackBackend means that the backend cannot be used, or that there is none. The answer
	// is 500.
	LackBackend
)

// Mirror is a backend that gets copies of requests.
type Mirror struct {
	Backend *model.Backend
	// Numerator of Denominator requests are copied.
	Numerator   uint32
	Denominator uint32
}

// share sets what Pick chooses from. The shares come with their weights as sums.
func (r *Route) share(shares []share) {
	sum, kept := uint64(0), shares[:0]
	for _, s := range shares {
		usable := s.backend >= 0 && len(r.Backends[s.backend].Endpoints) > 0
		if s.sum == 0 || (!r.StrictShares && !usable) {
			continue
		}
		sum += s.sum
		s.sum = sum
		kept = append(kept, s)
	}
	r.shares = kept
}

// Pick chooses a backend with endpoints, in proportion to the weights. random is a
// uniformly distributed number. If there is none, the result is nil and the reason.
func (r *Route) Pick(random uint64) (*WeightedBackend, Lack) {
	switch n := len(r.shares); n {
	case 0:
		if r.StrictShares {
			return nil, LackBackend
		}
		return nil, LackEndpoints
	case 1:
		return r.take(&r.shares[0])
	default:
		at := random % r.shares[n-1].sum
		for i := range r.shares {
			if at < r.shares[i].sum {
				return r.take(&r.shares[i])
			}
		}
		return nil, LackEndpoints
	}
}

func (r *Route) take(s *share) (*WeightedBackend, Lack) {
	if r.StrictShares && s.lack != LackNothing {
		return nil, s.lack
	}
	return &r.Backends[s.backend], LackNothing
}
