package proxy

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/rendezvous"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// pin names a backend and one of its endpoints to a client. Both names are made with the gateway's key. So a client learns
// no address from them, all replicas read them alike, and a client can only give back what the gateway has said. A pin
// of a backend that a route has not got means nothing there.
type pin struct {
	backend [9]byte
	place   upstream.Place
}

const (
	pinSize = len(pin{}.backend) + len(pin{}.place)
	// pinLength is that of its text.
	pinLength = pinSize * 4 / 3
	// maxPins bounds the pins that are looked at of a request.
	maxPins = 8
)

var pinText = base64.RawURLEncoding.Strict()

func (p *pin) String() string {
	return pinText.EncodeToString(append(p.backend[:], p.place[:]...))
}

// readPin reads the text of a pin.
func readPin(text string) (p pin, ok bool) {
	var raw [pinSize]byte
	if len(text) != pinLength {
		return p, false
	}
	if n, err := pinText.Decode(raw[:], []byte(text)); err != nil || n != pinSize {
		return p, false
	}
	copy(p.backend[:], raw[:])
	copy(p.place[:], raw[len(p.backend):])
	return p, p.place != upstream.Place{}
}

// affinity is what the affinity of a route needs besides the table.
type affinity struct {
	name     string    // of the cookie or the header
	backends [][9]byte // the names of Route.Backends
}

// affinities returns those of the routes, by Route.Place. It is nil if there are none.
func affinities(key []byte, routes []*table.Route) []*affinity {
	var all []*affinity
	for _, route := range routes {
		if route.Affinity == nil {
			continue
		}
		if all == nil {
			all = make([]*affinity, len(routes))
		}
		of := &affinity{name: route.Affinity.Name}
		if of.name == "" && route.Affinity.By == table.AffinityByCookie {
			of.name = "slipway-" + hex.EncodeToString(keyedName(key, "cookie", route.Affinity.Scope)[:4])
		}
		for i := range route.Backends {
			of.backends = append(of.backends, [9]byte(keyedName(key, "backend", route.Backends[i].ID)))
		}
		all[route.Place] = of
	}
	return all
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
	s.affinities = affinities(key, s.Table.Routes)
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

// stickyService returns the backend for a request of a route with affinity, as service does.
func (e *exchange) stickyService() (*table.WeightedBackend, *upstream.Service, table.Lack) {
	if e.route.Affinity.Told() {
		if backend := e.findPin(); backend != nil {
			e.affinity.Place = e.pin.place
			return backend, e.state.services[backend.Index], table.LackNothing
		}
		return e.newService()
	}
	hash, known := e.clientHash()
	if !known {
		return e.newService()
	}
	e.affinity = upstream.Affinity{Hash: hash, Hashed: true}
	backend, lack := e.route.PickFor(hash)
	return e.checkService(backend, lack)
}

// clientHash returns a hash of what the route knows a client by. It is not known if the client does not say it.
func (e *exchange) clientHash() (hash uint64, known bool) {
	if e.route.Affinity.By == table.AffinityByAddress {
		if !e.shareOf.IsValid() { // a trusted proxy does not say who the client is
			return 0, false
		}
		address := e.shareOf.As16()
		return rendezvous.Hash(string(address[:])), true
	}
	values := e.r.Header[e.route.Affinity.Name]
	switch len(values) {
	case 0:
		return 0, false
	case 1:
		return rendezvous.Hash(values[0]), values[0] != ""
	}
	return rendezvous.Hash(strings.Join(values, ", ")), true
}

// findPin finds the pin of the request, and returns its backend. It is nil if the request has none that counts here:
// without an endpoint, one counts only while its backend has a weight.
func (e *exchange) findPin() *table.WeightedBackend {
	of, left := e.state.affinities[e.route.Place], maxPins
	if e.route.Affinity.By == table.AffinityByToken {
		for _, value := range e.r.Header[of.name] {
			if backend := e.pinned(of, value); backend != nil || left == 1 {
				return backend
			}
			left--
		}
		return nil
	}
	for _, line := range e.r.Header["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			name, value, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
			if name != of.name {
				continue
			}
			if backend := e.pinned(of, value); backend != nil || left == 1 {
				return backend
			}
			left--
		}
	}
	return nil
}

// pinned returns the backend that a pin names, and notes the pin.
func (e *exchange) pinned(of *affinity, text string) *table.WeightedBackend {
	asked, ok := readPin(text)
	if !ok {
		return nil
	}
	for i := range of.backends {
		backend := &e.route.Backends[i]
		if of.backends[i] != asked.backend {
			continue
		}
		service := e.state.services[backend.Index]
		if service.Has(asked.place) || backend.Weight > 0 && service.Endpoints() > 0 {
			e.pin = asked
			return backend
		}
	}
	return nil
}

// keepPin notes which endpoint has answered, if the client has to be told.
func (e *exchange) keepPin(response *upstream.Response) {
	if !e.route.Affinity.Told() {
		return
	}
	of := e.state.affinities[e.route.Place]
	now := pin{place: response.Place()}
	for i := range e.route.Backends {
		if &e.route.Backends[i] == e.chosen {
			now.backend = of.backends[i]
		}
	}
	if now.place != (upstream.Place{}) && now != e.pin {
		e.pin, e.tells = now, true
	}
}

// forgetPin has the client forget its endpoint, because it cannot be reached.
func (e *exchange) forgetPin() {
	if e.route.Affinity != nil && e.route.Affinity.By == table.AffinityByCookie && e.pin != (pin{}) {
		e.pin, e.tells = pin{}, true
	}
}

// tellPin tells the client its endpoint. Others must not be told the same by a shared cache, which may keep the rest of the
// response (RFC 9111, 5.2.2.7).
func (e *exchange) tellPin(header http.Header) {
	name := e.state.affinities[e.route.Place].name
	if e.route.Affinity.By == table.AffinityByToken {
		header[name] = []string{e.pin.String()}
		header["Cache-Control"] = append(header["Cache-Control"], `private="`+name+`"`)
		return
	}
	cookie := name + "="
	switch lifetime := e.route.Affinity.Lifetime; {
	case e.pin == pin{}:
		cookie += "; Max-Age=0"
	case lifetime > 0:
		cookie += e.pin.String() + "; Max-Age=" + strconv.FormatInt(int64(lifetime/time.Second), 10)
	default:
		cookie += e.pin.String()
	}
	cookie += "; Path=/; HttpOnly; SameSite=Lax"
	if e.scheme() == "https" {
		cookie += "; Secure"
	}
	header["Set-Cookie"] = append(header["Set-Cookie"], cookie)
	header["Cache-Control"] = append(header["Cache-Control"], `private="Set-Cookie"`)
}
