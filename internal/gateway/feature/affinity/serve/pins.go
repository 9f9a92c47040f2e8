package serve

import (
	"encoding/base64"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/feature/affinity"
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

// knownPins are the pins that a client knows, and the one that counts.
type knownPins struct {
	pin   pin
	all   pins
	tells bool // the client is told pins
}

// findPin finds the pins of the request, and returns the backend of the first one that counts here. It is -1 if none
// does: without an endpoint, a pin counts only while its backend has a weight.
func (a *Step) findPin(e *exchange.Exchange, known *knownPins) int {
	chosen := -1
	for text := range a.pinTexts(e.Header()) {
		for p := range readPins(text) {
			if len(known.all) == maxPins || !a.pinned[p.backend] || known.all.has(p.backend) {
				continue
			}
			if at := slices.Index(a.names, p.backend); at >= 0 {
				if !a.backends[at].counts(p) {
					continue
				}
				if chosen < 0 {
					chosen, known.pin = at, p
				}
			}
			known.all = append(known.all, p)
		}
	}
	return chosen
}

// counts reports whether a pin of a backend leads somewhere.
func (b *Backend) counts(p pin) bool {
	return b.Service.Has(p.place) || b.Weight > 0 && b.Service.Endpoints() > 0
}

// pinTexts returns the cookies, or the header lines, that may have pins.
func (a *Step) pinTexts(header http.Header) iter.Seq[string] {
	return func(yield func(string) bool) {
		left := maxPinTexts
		more := func(text string) bool {
			left--
			return yield(text) && left > 0
		}
		if a.By == affinity.ByToken {
			for _, value := range header[a.name] {
				if !more(value) {
					return
				}
			}
			return
		}
		for _, line := range header["Cookie"] {
			for pair := range strings.SplitSeq(line, ";") {
				found, value, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
				if found == a.name && !more(value) {
					return
				}
			}
		}
	}
}

// Keep notes which endpoint has answered, if the client has to be told. One that is overloaded, starting or stopping is
// none to stay at.
func (a *Step) Keep(e *exchange.Exchange, response *upstream.Response) *upstream.Response {
	if !a.Told() || response.Status >= http.StatusBadGateway {
		return response
	}
	known, now := exchange.SlotOf[knownPins](e), pin{backend: a.names[e.Chosen], place: response.Place()}
	if now.place != (upstream.Place{}) && now != known.pin {
		known.all, known.tells = known.all.with(now), true
	}
	return response
}

// Failed has the client forget its endpoint, if it cannot be reached.
func (a *Step) Failed(e *exchange.Exchange, err error) {
	failure, ok := errors.AsType[*upstream.Error](err)
	if known := exchange.SlotOf[knownPins](e); ok && failure.Unreachable() && a.By == affinity.ByCookie && known.pin != (pin{}) {
		known.all, known.tells = known.all.without(known.pin), true
	}
}

// Tell tells the client its endpoint. Others must not be told the same by a shared cache, which may keep the rest of the
// response (RFC 9111, 5.2.2.7).
func (a *Step) Tell(e *exchange.Exchange, header http.Header) {
	known := exchange.SlotOf[knownPins](e)
	switch {
	case !known.tells:
		return
	case a.By == affinity.ByToken:
		header[a.name] = []string{known.all.String()}
		header["Cache-Control"] = append(header["Cache-Control"], `private="`+a.name+`"`)
		return
	}
	cookie := a.name + "=" + known.all.String()
	switch {
	case len(known.all) == 0:
		cookie += "; Max-Age=0"
	case a.Lifetime > 0:
		cookie += "; Max-Age=" + strconv.FormatInt(int64(a.Lifetime/time.Second), 10)
	}
	cookie += "; Path=/; HttpOnly; SameSite=Lax"
	if e.Scheme() == "https" {
		cookie += "; Secure"
	}
	header["Set-Cookie"] = append(header["Set-Cookie"], cookie)
	header["Cache-Control"] = append(header["Cache-Control"], `private="Set-Cookie"`)
}

// WithoutPins returns fields of a request without cookies that are pins the client was told. All endpoints of a backend answer alike
// what they let caches keep, and clients without a pin get any of them. A cookie that only looks like pins stays: backends may read it.
func (a *Step) WithoutPins(e *exchange.Exchange) []upstream.Field {
	known := exchange.SlotOf[knownPins](e)
	if len(known.all) == 0 || a.By != affinity.ByCookie {
		return e.Outgoing.Fields
	}
	told := a.name + "=" + known.all.String()
	out := make([]upstream.Field, 0, len(e.Outgoing.Fields))
	for _, field := range e.Outgoing.Fields {
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
