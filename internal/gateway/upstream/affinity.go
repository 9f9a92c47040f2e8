package upstream

import (
	"crypto/hmac"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/rendezvous"
)

// Place names an endpoint of a Service. Whoever does not know the key of the Service learns no
// address from it, and cannot make one. The zero Place names none.
type Place [15]byte

// Affinity says which endpoint a request should go to. The zero value leaves the choice to
// the load.
type Affinity struct {
	// Place is an endpoint that a client was told before. It is used unless it is gone, unhealthy or ejected, has
	// failed for this request, or a connection to it hangs and not to another one.
	Place Place
	// Hash chooses among the endpoints if Hashed is set. Equal ones choose the same endpoint in every gateway with the
	// same key. Without this endpoint, only its share moves to others.
	Hash   uint64
	Hashed bool
}

// places are the eligible endpoints with their names.
type places struct {
	endpoints []*endpoint
	seeds     []uint64 // by the index of endpoints; beside each other, because each pick reads all of them
	named     map[Place]*endpoint
}

// SetKey sets the key that makes the places of endpoints. Nil: they have none, and Affinity is not followed. name keeps the
// places of two Services apart whose endpoints have the same addresses.
func (s *Service) SetKey(key []byte, name string) {
	s.set.Lock()
	defer s.set.Unlock()
	if string(key) == string(s.placeKey) && name == s.placeName {
		return
	}
	s.placeKey, s.placeName = slices.Clone(key), name
	for _, e := range *s.endpoints.Load() {
		e.place.Store(nil)
	}
	s.findPlaces()
}

// findPlaces needs set held. It is called after the eligible endpoints or the key have changed.
func (s *Service) findPlaces() {
	if len(s.placeKey) == 0 {
		s.places.Store(nil)
		return
	}
	eligible := *s.eligible.Load()
	found := &places{endpoints: eligible, seeds: make([]uint64, len(eligible)), named: make(map[Place]*endpoint, len(eligible))}
	for i, e := range eligible {
		place := e.place.Load()
		if place == nil {
			made := PlaceOf(s.placeKey, s.placeName, e.address)
			place = &made
			e.place.Store(place)
		}
		found.named[*place] = e
		for _, b := range place[:8] {
			found.seeds[i] = found.seeds[i]<<8 | uint64(b)
		}
	}
	s.places.Store(found)
}

// PlaceOf returns the place of an endpoint.
func PlaceOf(key []byte, service, address string) Place {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte("endpoint\x00" + service + "\x00" + address))
	return Place(mac.Sum(nil)[:len(Place{})])
}

// Has reports whether requests may go to the endpoint of a place now.
func (s *Service) Has(place Place) bool {
	known := s.places.Load()
	if known == nil {
		return false
	}
	e := known.named[place]
	return e != nil && !e.ejected(s.ejectionTime())
}

// ejectionTime is the time to compare ejections with. It is zero, before all of them, while none is ejected.
func (s *Service) ejectionTime() time.Time {
	if s.ejector.any.Load() {
		return s.options.Clock.Now()
	}
	return time.Time{}
}

// choose picks an endpoint for the request.
func (s *Service) choose(req *Request, tried []*endpoint) *endpoint {
	if req.Affinity != (Affinity{}) {
		if e := s.prefer(&req.Affinity, tried); e != nil {
			return e
		}
	}
	return s.pick(tried)
}

// prefer returns the endpoint that the affinity leads to. It is nil if there is none.
func (s *Service) prefer(a *Affinity, tried []*endpoint) *endpoint {
	known := s.places.Load()
	if known == nil {
		return nil
	}
	now := s.ejectionTime()
	reachable := func(e *endpoint) bool { return !e.ejected(now) && !slices.Contains(tried, e) }
	usable := func(e *endpoint) bool { return e.hanging.Load() == 0 && reachable(e) }
	if !a.Hashed {
		e := known.named[a.Place]
		if e == nil || !reachable(e) || (!usable(e) && slices.ContainsFunc(known.endpoints, usable)) {
			return nil
		}
		return e
	}
	e := known.highest(a.Hash, usable)
	if e == nil {
		e = known.highest(a.Hash, reachable)
	}
	if e == nil {
		e = known.highest(a.Hash, func(e *endpoint) bool { return !slices.Contains(tried, e) })
	}
	return e
}

// highest returns the usable endpoint with the highest score for a hash (rendezvous hashing). When it goes, the
// requests go to the ones with the next lower scores, and all other requests stay where they are.
func (p *places) highest(hash uint64, usable func(*endpoint) bool) *endpoint {
	var best *endpoint
	score := uint64(0)
	for i, seed := range p.seeds {
		if of := rendezvous.Score(hash, seed); (of > score || best == nil) && usable(p.endpoints[i]) {
			best, score = p.endpoints[i], of
		}
	}
	return best
}

// Place is the place of the endpoint that answered. It is zero if the Service has no key.
func (r *Response) Place() Place {
	if r.endpoint == nil {
		return Place{}
	}
	if place := r.endpoint.place.Load(); place != nil {
		return *place
	}
	return Place{}
}
