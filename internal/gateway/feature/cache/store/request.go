package store

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// Backend identifies what answers.
type Backend struct {
	// Namespace and Service are whose responses they are. Room is shared out among namespaces, and in each among its Services.
	Namespace, Service string
	// Way is how it is reached: the port, the protocol, and to whom TLS must lead.
	Way string
}

// Policy is what a route keeps.
type Policy struct {
	// MaxBytes is the largest body that is kept.
	MaxBytes int64
	// MaxAge bounds how long a response counts as fresh, whatever the backend says.
	MaxAge time.Duration
}

// Request is a request as the backend gets it.
type Request struct {
	Backend Backend
	// Method, Host, Target and Fields are those that are sent.
	Method, Host, Target string
	Fields               []upstream.Field
	// Plain is false for a request with a body, or one that switches to another protocol. Such a request is not answered by the
	// cache, whatever its method.
	Plain bool
	// Proven tells that somebody has proven who he is, even if the backend is not told. What it answers then is only kept if it
	// says that it is for everybody.
	Proven bool
	// Client is the client, as clients.Of defines it, for its share of what responses under way hold. The zero Addr means no
	// particular one.
	Client netip.Addr
}

// unkeyed are the fields, in lower case, in which browsers differ without asking for something else, and those of this hop. They
// count if the backend names them in Vary. Every other field counts always.
var unkeyed = map[string]bool{
	"accept-charset": true, "accept-encoding": true, "accept-language": true, "cache-control": true, "dnt": true,
	"if-modified-since": true, "if-none-match": true, "pragma": true, "priority": true, "referer": true, "save-data": true,
	"sec-ch-ua": true, "sec-ch-ua-mobile": true, "sec-ch-ua-platform": true, "sec-fetch-dest": true, "sec-fetch-mode": true,
	"sec-fetch-site": true, "sec-fetch-user": true, "sec-gpc": true, "traceparent": true, "tracestate": true,
	"upgrade-insecure-requests": true, "user-agent": true, "via": true, "x-forwarded-for": true,
}

type (
	// pageKey identifies a page: a Service, a host and a target.
	pageKey [sha256.Size]byte
	// fieldsKey identifies the rest of what always counts: the way to the Service, and fields.
	fieldsKey [sha256.Size]byte
)

// question is what a request asks for. It is made before anything is locked, because clients decide how much work that is.
type question struct {
	page   pageKey
	fields fieldsKey
	// values are those of the fields that count if Vary names them, by their names in lower case.
	values map[string]string
}

func newQuestion(r *Request) question {
	q := question{page: keyOf(r.Backend, r.Host, r.Target), values: map[string]string{}}
	sorted := make([]upstream.Field, len(r.Fields))
	for i, field := range r.Fields {
		sorted[i] = upstream.Field{Name: strings.ToLower(field.Name), Value: field.Value}
	}
	// The order of names does not matter. Values of one name keep theirs.
	slices.SortStableFunc(sorted, func(a, b upstream.Field) int { return strings.Compare(a.Name, b.Name) })
	b := appendTexts(nil, r.Backend.Way)
	var values []byte // those of one name; a client may repeat it thousands of times
	for i, field := range sorted {
		if !unkeyed[field.Name] {
			b = appendTexts(b, field.Name, field.Value)
			continue
		}
		values = appendTexts(values, field.Value) // no field and an empty one differ
		if last := i+1 == len(sorted) || sorted[i+1].Name != field.Name; last {
			q.values[field.Name], values = string(values), values[:0]
		}
	}
	q.fields = sha256.Sum256(b)
	return q
}

func keyOf(backend Backend, host, target string) pageKey {
	return sha256.Sum256(appendTexts(nil, backend.Namespace, backend.Service, host, target))
}

// appendTexts writes texts so that no others are written the same way.
func appendTexts(b []byte, texts ...string) []byte {
	for _, text := range texts {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return b
}

// vary is what Vary names, with what the request had. Fields that always count are left out. Nil: it names nothing else.
type vary []upstream.Field

// maxVary bounds the names in Vary.
const maxVary = 16

// varyOf reads Vary. ok is false if no other request may get the response.
func varyOf(q *question, response []upstream.Field) (v vary, ok bool) {
	var names []string
	for _, field := range response {
		switch {
		case strings.EqualFold(field.Name, "Vary"):
			names = append(names, strings.Split(strings.ToLower(field.Value), ",")...)
		case strings.EqualFold(field.Name, "Content-Encoding"):
			names = append(names, "accept-encoding") // many forget to say it
		}
	}
	for _, name := range names {
		name = strings.Trim(name, " \t")
		switch {
		case name == "*" || fieldname.OfConnection(name) && name != "host":
			return nil, false // what the connection is told is not compared
		case !unkeyed[name] || slices.ContainsFunc(v, func(known upstream.Field) bool { return known.Name == name }):
			continue
		case len(v) == maxVary:
			return nil, false
		}
		v = append(v, upstream.Field{Name: name, Value: q.values[name]})
	}
	return v, true
}

// matches reports whether a request has the same values.
func (v vary) matches(q *question) bool {
	return !slices.ContainsFunc(v, func(field upstream.Field) bool { return q.values[field.Name] != field.Value })
}
