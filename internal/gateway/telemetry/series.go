package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Partial are metrics of which some series can be removed.
type Partial interface {
	DeletePartialMatch(labels prometheus.Labels) int
}

// RouteSeries are series that only some routes have, and only as long as the table has such a route.
type RouteSeries struct {
	add  func(route string)
	vecs []Partial

	mu    sync.Mutex
	known map[string]bool // names of routes
}

// NewRouteSeries returns the series of these metrics. add makes those of a route, with 0. Nil: they begin with the first count.
func NewRouteSeries(add func(route string), vecs ...Partial) *RouteSeries {
	return &RouteSeries{add: add, vecs: vecs}
}

// Keep adds the series of new routes, and removes those of routes that are gone. The map must not change afterwards.
func (s *RouteSeries) Keep(routes map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.known
	s.known = routes
	for name := range routes {
		if !before[name] && s.add != nil {
			s.add(name)
		}
	}
	for name := range before {
		if routes[name] {
			continue
		}
		for _, vec := range s.vecs {
			vec.DeletePartialMatch(prometheus.Labels{"route": name})
		}
	}
}

// Count calls f, unless the route is no longer there: its series would stay for good.
func (s *RouteSeries) Count(route string, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[route] {
		f()
	}
}
