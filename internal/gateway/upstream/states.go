package upstream

// States counts the endpoints of a Service by what is thought of them.
type States struct {
	// Available endpoints get requests.
	Available int
	// Ejected are left out for a while, because requests to them have failed.
	Ejected int
	// Unhealthy are left out because their health checks fail. Where that is all of them,
	// they get requests all the same.
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
