package upstream

// States counts the endpoints of a Service by their health.
type States struct {
	// Available endpoints get requests.
	Available int
	// Ejected endpoints get no requests for some time, because requests to them have
	// failed.
	Ejected int
	// Unhealthy endpoints get no requests, because their health checks fail. If all are
	// unhealthy, they get requests nevertheless.
	Unhealthy int
}

// States returns how many endpoints are in each state. An endpoint that is unhealthy and
// ejected counts as unhealthy.
func (s *Service) States() States {
	s.set.Lock()
	defer s.set.Unlock()
	now := s.options.Clock.Now()
	var states States
	for _, e := range *s.endpoints.Load() {
		switch {
		case e.unhealthy:
			states.Unhealthy++
		case e.ejected(now):
			states.Ejected++
		default:
			states.Available++
		}
	}
	return states
}
