package gateway

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// restOfRoute is how long the rest after a reconcile is for each route. To compute what one route leads to takes about a
	// quarter of that.
	restOfRoute = 100 * time.Microsecond
	// maxRest bounds the rest.
	maxRest = time.Second
)

// pace keeps a Gateway with thousands of routes that change all the time from taking a whole core. The first change is acted on
// at once. Those that come while a reconcile works, and during the rest after it, are acted on together.
type pace struct {
	clock clock.PassiveClock
	// rests are when the rest of a Gateway ends, by name. Losing one costs a reconcile.
	rests *lru.Cache
}

// left is how long the rest of a Gateway still is. Zero or less: it is over.
func (p *pace) left(gateway types.NamespacedName) time.Duration {
	until, ok := p.rests.Get(gateway)
	if !ok {
		return 0
	}
	return until.(time.Time).Sub(p.clock.Now())
}

// rest begins the rest of a Gateway with so many routes.
func (p *pace) rest(gateway types.NamespacedName, routes int) {
	p.rests.Add(gateway, p.clock.Now().Add(min(time.Duration(routes)*restOfRoute, maxRest)))
}
