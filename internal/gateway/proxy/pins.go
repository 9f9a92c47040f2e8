package proxy

import (
	"encoding/base64"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// pin names a backend and one of its endpoints to a client. Both names are made with the gateway's key. So a client learns
// no address from them, all replicas read them alike, and a client can only give back what the gateway has said. A pin
// of a backend that a route has not got means nothing there.
type pin struct {
	backend backendName
	place   upstream.Place
}

type backendName [9]byte

const (
	pinSize = len(backendName{}) + len(upstream.Place{})
	// pinLength is that of its text.
	pinLength = pinSize * 4 / 3
	// maxPins bounds the pins of a client, one for each backend. Their text has 256 bytes at most.
	maxPins = 8
	// maxPinTexts bounds the cookies or header lines of a request that are looked at.
	maxPinTexts = 8
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

// pins are what a client knows: a pin for each backend. Routes may share a cookie, and each replaces the pins of its own
// backends only.
type pins []pin

func (p pins) String() string {
	var text strings.Builder
	for i := range p {
		text.WriteString(p[i].String())
	}
	return text.String()
}

// readPins reads the text of pins. Those that cannot be read are left out.
func readPins(text string) iter.Seq[pin] {
	return func(yield func(pin) bool) {
		if len(text) > maxPins*pinLength || len(text)%pinLength != 0 {
			return
		}
		for ; text != ""; text = text[pinLength:] {
			if p, ok := readPin(text[:pinLength]); ok && !yield(p) {
				return
			}
		}
	}
}

func (p pins) has(backend backendName) bool {
	return slices.ContainsFunc(p, func(one pin) bool { return one.backend == backend })
}

// with returns the pins with another one, in the place of that of the same backend. If there are too many, the oldest goes.
func (p pins) with(added pin) pins {
	for i := range p {
		if p[i].backend == added.backend {
			p[i] = added
			return p
		}
	}
	if len(p) >= maxPins {
		p = slices.Delete(p, 0, len(p)-maxPins+1)
	}
	return append(p, added)
}

func (p pins) without(gone pin) pins {
	return slices.DeleteFunc(p, func(one pin) bool { return one == gone })
}

// findPin finds the pins of the request, and returns the backend of the first one that counts here. It is nil if none
// does: without an endpoint, a pin counts only while its backend has a weight.
func (e *exchange) findPin() *table.WeightedBackend {
	all := &e.state.affinities
	of := all.routes[e.route.Place]
	var chosen *table.WeightedBackend
	for text := range e.pinTexts(of.name) {
		for p := range readPins(text) {
			if len(e.facts.pins) == maxPins || !all.pinned[p.backend] || e.facts.pins.has(p.backend) {
				continue
			}
			if at := slices.Index(of.backends, p.backend); at >= 0 {
				backend := &e.route.Backends[at]
				if !e.counts(p, backend) {
					continue
				}
				if chosen == nil {
					chosen, e.facts.pin = backend, p
				}
			}
			e.facts.pins = append(e.facts.pins, p)
		}
	}
	return chosen
}

// counts reports whether a pin of a backend leads somewhere.
func (e *exchange) counts(p pin, backend *table.WeightedBackend) bool {
	service := e.state.services[backend.Index]
	return service.Has(p.place) || backend.Weight > 0 && service.Endpoints() > 0
}

// pinTexts returns the cookies, or the header lines, of a name that may have pins.
func (e *exchange) pinTexts(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		left := maxPinTexts
		more := func(text string) bool {
			left--
			return yield(text) && left > 0
		}
		if e.route.Affinity.By == table.AffinityByToken {
			for _, value := range e.r.Header[name] {
				if !more(value) {
					return
				}
			}
			return
		}
		for _, line := range e.r.Header["Cookie"] {
			for pair := range strings.SplitSeq(line, ";") {
				found, value, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
				if found == name && !more(value) {
					return
				}
			}
		}
	}
}

// keepPin notes which endpoint has answered, if the client has to be told. One that is overloaded, starting or stopping is
// none to stay at.
func (e *exchange) keepPin(response *upstream.Response) {
	if !e.route.Affinity.Told() || response.Status >= http.StatusBadGateway {
		return
	}
	of := e.state.affinities.routes[e.route.Place]
	now := pin{place: response.Place()}
	for i := range e.route.Backends {
		if &e.route.Backends[i] == e.chosen {
			now.backend = of.backends[i]
		}
	}
	if now.place != (upstream.Place{}) && now != e.facts.pin {
		e.facts.pins, e.facts.tells = e.facts.pins.with(now), true
	}
}

// forgetPin has the client forget its endpoint, because it cannot be reached.
func (e *exchange) forgetPin() {
	if e.route.Affinity != nil && e.route.Affinity.By == table.AffinityByCookie && e.facts.pin != (pin{}) {
		e.facts.pins, e.facts.tells = e.facts.pins.without(e.facts.pin), true
	}
}

// tellPin tells the client its endpoint. Others must not be told the same by a shared cache, which may keep the rest of the
// response (RFC 9111, 5.2.2.7).
func (e *exchange) tellPin(header http.Header) {
	name := e.state.affinities.routes[e.route.Place].name
	if e.route.Affinity.By == table.AffinityByToken {
		header[name] = []string{e.facts.pins.String()}
		header["Cache-Control"] = append(header["Cache-Control"], `private="`+name+`"`)
		return
	}
	cookie := name + "=" + e.facts.pins.String()
	switch lifetime := e.route.Affinity.Lifetime; {
	case len(e.facts.pins) == 0:
		cookie += "; Max-Age=0"
	case lifetime > 0:
		cookie += "; Max-Age=" + strconv.FormatInt(int64(lifetime/time.Second), 10)
	}
	cookie += "; Path=/; HttpOnly; SameSite=Lax"
	if e.scheme() == "https" {
		cookie += "; Secure"
	}
	header["Set-Cookie"] = append(header["Set-Cookie"], cookie)
	header["Cache-Control"] = append(header["Cache-Control"], `private="Set-Cookie"`)
}

// withoutPins returns fields of a request without cookies that are pins the client was told. All endpoints of a backend answer alike
// what they let caches keep, and clients without a pin get any of them. A cookie that only looks like pins stays: backends may read it.
func (e *exchange) withoutPins(fields []upstream.Field) []upstream.Field {
	if len(e.facts.pins) == 0 || e.route.Affinity == nil || e.route.Affinity.By != table.AffinityByCookie {
		return fields
	}
	told := e.state.affinities.routes[e.route.Place].name + "=" + e.facts.pins.String()
	out := make([]upstream.Field, 0, len(fields))
	for _, field := range fields {
		if strings.EqualFold(field.Name, "Cookie") {
			pairs := slices.DeleteFunc(strings.Split(field.Value, ";"), func(pair string) bool { return strings.Trim(pair, " \t") == told })
			if field.Value = strings.Trim(strings.Join(pairs, ";"), " \t"); field.Value == "" {
				continue
			}
		}
		out = append(out, field)
	}
	return out
}
