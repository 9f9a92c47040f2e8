package proxy

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// partial are metrics of which some series can be removed.
type partial interface {
	DeletePartialMatch(labels prometheus.Labels) int
}

// routeSeries are series that only some routes have, and only as long as the table has such a route.
type routeSeries struct {
	has  func(*table.Route) bool
	add  func(route string) // makes the series of a route, with 0; optional
	vecs []partial

	mu    sync.Mutex
	known map[string]bool // names of routes
}

// keep adds the series of new routes, and removes those of routes that are gone.
func (s *routeSeries) keep(routes []*table.Route) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.known
	s.known = map[string]bool{}
	for _, route := range routes {
		if !s.has(route) || s.known[route.Name] {
			continue
		}
		s.known[route.Name] = true
		if s.add != nil {
			s.add(route.Name)
		}
	}
	for name := range before {
		if s.known[name] {
			continue
		}
		for _, vec := range s.vecs {
			vec.DeletePartialMatch(prometheus.Labels{"route": name})
		}
	}
}

// count calls f, unless the route is no longer there: its series would stay for good.
func (s *routeSeries) count(route *table.Route, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[route.Name] {
		f()
	}
}
