package proxy

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	affinitysetting "github.com/slipway-dev/slipway/internal/gateway/feature/affinity"
	"github.com/slipway-dev/slipway/internal/gateway/rendezvous"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// affinity is what the affinity of a route needs besides the table.
type affinity struct {
	*affinitysetting.Policy

	name     string        // of the cookie or the header
	backends []backendName // of Route.Backends
	pinned   map[backendName]bool
}

// affinities are those of a table.
type affinities struct {
	routes []*affinity // by Route.Place; nil if no route has any
	// pinned are the names of all backends that a pin can be for. The others are forgotten.
	pinned map[backendName]bool
}

// newAffinities returns those of the routes.
func newAffinities(key []byte, routes []*table.Route) affinities {
	var all affinities
	names := map[string]backendName{} // most routes have their backends in common
	for _, route := range routes {
		if route.Affinity == nil {
			continue
		}
		if all.routes == nil {
			all.routes, all.pinned = make([]*affinity, len(routes)), map[backendName]bool{}
		}
		of := &affinity{Policy: route.Affinity, name: route.Affinity.Name, pinned: all.pinned}
		if of.name == "" && route.Affinity.By == affinitysetting.ByCookie {
			of.name = "slipway-" + hex.EncodeToString(keyedName(key, "cookie", route.Affinity.Scope)[:4])
		}
		for i := range route.Backends {
			id := idOf(route.Backends, i)
			name, known := names[id]
			if !known {
				name = backendName(keyedName(key, "backend", id))
				names[id] = name
			}
			of.backends = append(of.backends, name)
			all.pinned[name] = all.pinned[name] || route.Affinity.Told()
		}
		all.routes[route.Place] = of
	}
	return all
}

// idOf returns the ID of a backend of a route, and which one with this ID it is: the same Service may be there twice, with
// other changes of the request.
func idOf(backends []table.WeightedBackend, place int) string {
	times := 0
	for i := range backends[:place] {
		if backends[i].ID == backends[place].ID {
			times++
		}
	}
	if times == 0 {
		return backends[place].ID
	}
	return backends[place].ID + "#" + strconv.Itoa(times)
}

// keyedName returns a name that nobody can make or read without the key.
func keyedName(key []byte, kind, text string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(kind + "\x00" + text))
	return mac.Sum(nil)
}

// newKey returns a key that no other process has.
func newKey() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return key
}

// setAffinities gives the routes with affinity what they need, and their backends the key. Others need no names for their
// endpoints.
func (h *Handler) setAffinities(s *state) {
	key := s.SessionKey
	if len(key) == 0 {
		key = h.ownKey
	}
	s.affinities = newAffinities(key, s.Table.Routes)
	sticky := make([]bool, len(s.services))
	for _, route := range s.Table.Routes {
		for i := range route.Backends {
			sticky[route.Backends[i].Index] = sticky[route.Backends[i].Index] || route.Affinity != nil
		}
	}
	for i, service := range s.services {
		if sticky[i] {
			service.SetKey(key, s.Table.Backends[i].ID)
		} else {
			service.SetKey(nil, "")
		}
	}
}

// choose returns the backend that the client knows, or what stands for the client among the backends and their endpoints.
func (a *affinity) choose(e *exchange) (backend *table.WeightedBackend, endpoint upstream.Affinity) {
	if a.Told() {
		known := slotOf[knownPins](e)
		backend = a.findPin(e, known)
		return backend, upstream.Affinity{Place: known.pin.place}
	}
	hash, known := a.clientHash(e)
	return nil, upstream.Affinity{Hash: hash, Hashed: known}
}

// clientHash returns a hash of what the route knows a client by. It is not known if the client does not say it.
func (a *affinity) clientHash(e *exchange) (hash uint64, known bool) {
	if a.By == affinitysetting.ByAddress {
		if !e.client.shareOf.IsValid() { // a trusted proxy does not say who the client is
			return 0, false
		}
		address := e.client.shareOf.As16()
		return rendezvous.Hash(string(address[:])), true
	}
	values := e.r.Header[a.name]
	switch len(values) {
	case 0:
		return 0, false
	case 1:
		return rendezvous.Hash(values[0]), values[0] != ""
	}
	return rendezvous.Hash(strings.Join(values, ", ")), true
}
