package table

import (
	"fmt"
	"math"
	"net/textproto"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/rendezvous"
)

// Affinity sends the requests of a client to the same endpoint.
type Affinity struct {
	By AffinityBy
	// Name is that of the cookie or of the header. A cookie without one gets a name of the gateway.
	Name string
	// Lifetime is how long a cookie lasts. 0: until the browser ends.
	Lifetime time.Duration
	// NameField and LifetimeField are the fields of the spec with Name and Lifetime, for messages.
	NameField, LifetimeField string `json:"-"`
	// Scope names the first backend of the rule. Cookies of the gateway's own names are shared by routes with the same one.
	// Compile sets it.
	Scope string
}

// AffinityBy says how it is known which requests belong together.
type AffinityBy uint8

const (
	// AffinityByCookie means a cookie that the gateway sets.
	AffinityByCookie AffinityBy = iota
	// AffinityByToken means a header that the gateway sets in the response and the client repeats in its requests.
	AffinityByToken
	// AffinityByHeader means a header of the client. Requests with an equal one belong together.
	AffinityByHeader
	// AffinityByAddress means the address of the client.
	AffinityByAddress
	// AffinityNone means that no requests belong together. A rule with it has no affinity.
	AffinityNone
)

// Told reports whether the client is told the endpoint, and not the other way round.
func (a *Affinity) Told() bool { return a.By == AffinityByCookie || a.By == AffinityByToken }

const (
	maxSessionName     = 128
	maxSessionLifetime = 400 * 24 * time.Hour // browsers keep no cookie longer
)

func compileAffinity(e *compiled, rule *Rule) *model.Fault {
	if rule.Affinity == nil {
		return nil
	}
	affinity := *rule.Affinity
	switch affinity.By {
	case AffinityByCookie:
		if affinity.Name != "" && (!fieldname.IsToken(affinity.Name) || len(affinity.Name) > maxSessionName) {
			return model.Invalid("%s: %q cannot be the name of a cookie of at most %d characters", affinity.NameField, affinity.Name, maxSessionName)
		}
		if strings.Contains(strings.ToLower(affinity.Name), LoginCookies) {
			return model.Invalid("%s: %q is a name of cookies of log-ins", affinity.NameField, affinity.Name)
		}
		if affinity.Lifetime < 0 || affinity.Lifetime > maxSessionLifetime || affinity.Lifetime%time.Second != 0 {
			return model.Invalid("%s: %v is not from 1 second to 400 days, in whole seconds", affinity.LifetimeField, affinity.Lifetime)
		}
	case AffinityByToken, AffinityByHeader:
		name := textproto.CanonicalMIMEHeaderKey(affinity.Name)
		if !fieldname.IsToken(name) || len(name) > maxSessionName {
			return model.Invalid("%s: %q cannot be the name of a header of at most %d characters", affinity.NameField, affinity.Name, maxSessionName)
		}
		if fieldname.ForbiddenTrailer(name) && name != "Authorization" || name == "Cookie" || affinity.By == AffinityByToken && !isFreeHeader(name) {
			return model.Invalid("%s: %s has a meaning of its own", affinity.NameField, name)
		}
		affinity.Name = name
	case AffinityByAddress:
	case AffinityNone:
		return nil
	default:
		return model.Invalid("sessionAffinity: exactly one of cookie, header, clientAddress and none must be set")
	}
	if len(rule.Backends) > 0 {
		affinity.Scope = nameOf(&rule.Backends[0])
	}
	e.Affinity = &affinity
	return nil
}

// isFreeHeader reports whether the gateway may set a header in responses to a token: it would take the place of what
// the response says of itself.
func isFreeHeader(name string) bool {
	for _, taken := range [...]string{"Access-Control-", "Content-", "Www-", "Sec-", "Grpc-"} {
		if strings.HasPrefix(name, taken) {
			return false
		}
	}
	switch name {
	case "Accept-Ranges", "Age", "Alt-Svc", "Authorization", "Cache-Control", "Date", "Etag", "Expires", "Last-Modified", "Link", "Location", "Pragma",
		"Refresh", "Retry-After", "Server", "Strict-Transport-Security", "Vary", "Via", "Warning":
		return false
	}
	return true
}

// PickFor chooses a backend in proportion to the weights. Equal hashes get the same one. When a weight changes, only the
// share that it means moves.
func (r *Route) PickFor(hash uint64) (*WeightedBackend, Lack) {
	if len(r.shares) < 2 {
		return r.Pick(hash)
	}
	best, highest, before := 0, math.Inf(-1), uint64(0)
	for i := range r.shares {
		s := &r.shares[i]
		if score := rendezvous.Weighted(hash, s.seed, s.sum-before); score > highest {
			best, highest = i, score
		}
		before = s.sum
	}
	return r.take(&r.shares[best])
}

// seedOf returns the seed of a backend. It does not depend on the place in the list. before are the earlier backends: of one
// that is named twice, each has a seed of its own.
func seedOf(ref *model.BackendRef, before []model.BackendRef) uint64 {
	name, times := nameOf(ref), 0
	for i := range before {
		if nameOf(&before[i]) == name {
			times++
		}
	}
	return rendezvous.Hash(fmt.Sprintf("%s#%d", name, times))
}

func nameOf(ref *model.BackendRef) string {
	return model.BackendName{ServiceName: model.ServiceName{Namespace: ref.Namespace, Name: ref.Service}, Port: ref.Port}.String()
}
