package serve

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/feature/affinity"
	"github.com/slipway-dev/slipway/internal/gateway/rendezvous"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// Route is a route with affinity.
type Route struct {
	Policy *affinity.Policy
	// Place is that of the route in its table.
	Place int
	// Backends are those of the route.
	Backends []Backend
}

// Backend is one of a route.
type Backend struct {
	ID      string
	Weight  uint32
	Service *upstream.Service
}

// Table has the affinities of a table.
type Table struct {
	routes map[int]*Step // by Place
	// pinned are the names of all backends that a pin can be for. The others are forgotten.
	pinned map[backendName]bool
}

// Step is what the affinity of a route needs besides the table.
type Step struct {
	*affinity.Policy

	name     string        // of the cookie or the header
	names    []backendName // of backends
	backends []Backend
	pinned   map[backendName]bool
}

// Of returns the step of a route with affinity.
func (t *Table) Of(place int) *Step { return t.routes[place] }

// New returns the affinities of routes. key makes the names of backends and endpoints: all replicas have the same one, and clients do
// not know it.
func New(key []byte, routes []Route) *Table {
	all := &Table{routes: make(map[int]*Step, len(routes)), pinned: map[backendName]bool{}}
	names := map[string]backendName{} // most routes have their backends in common
	for i := range routes {
		route := &routes[i]
		of := &Step{Policy: route.Policy, name: route.Policy.Name, backends: route.Backends, pinned: all.pinned}
		if of.name == "" && route.Policy.By == affinity.ByCookie {
			of.name = "slipway-" + hex.EncodeToString(keyedName(key, "cookie", route.Policy.Scope)[:4])
		}
		for n := range route.Backends {
			id := idOf(route.Backends, n)
			name, known := names[id]
			if !known {
				name = backendName(keyedName(key, "backend", id))
				names[id] = name
			}
			of.names = append(of.names, name)
			all.pinned[name] = all.pinned[name] || route.Policy.Told()
		}
		all.routes[route.Place] = of
	}
	return all
}

// idOf returns the ID of a backend of a route, and which one with this ID it is: the same Service may be there twice, with
// other changes of the request.
func idOf(backends []Backend, place int) string {
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

// NewKey returns a key that no other process has.
func NewKey() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return key
}

// Choose returns the backend that the client knows, or what stands for the client among the backends and their endpoints.
func (a *Step) Choose(e *exchange.Exchange) (backend int, endpoint upstream.Affinity) {
	if a.Told() {
		known := exchange.SlotOf[knownPins](e)
		backend = a.findPin(e, known)
		return backend, upstream.Affinity{Place: known.pin.place}
	}
	hash, known := a.clientHash(e)
	return -1, upstream.Affinity{Hash: hash, Hashed: known}
}

// clientHash returns a hash of what the route knows a client by. It is not known if the client does not say it.
func (a *Step) clientHash(e *exchange.Exchange) (hash uint64, known bool) {
	if a.By == affinity.ByAddress {
		if !e.Client.ShareOf.IsValid() { // a trusted proxy does not say who the client is
			return 0, false
		}
		address := e.Client.ShareOf.As16()
		return rendezvous.Hash(string(address[:])), true
	}
	values := e.Header()[a.name]
	switch len(values) {
	case 0:
		return 0, false
	case 1:
		return rendezvous.Hash(values[0]), values[0] != ""
	}
	return rendezvous.Hash(strings.Join(values, ", ")), true
}
