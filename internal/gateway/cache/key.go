package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// place is what a response is of: a backend, a host and a target. group is the rest of what must be equal.
type (
	place [sha256.Size]byte
	group [sha256.Size]byte
)

// unkeyed are the fields, in lower case, in which browsers differ without asking for something else, and those of this hop. They
// count if the backend names them in Vary. Every other field counts always.
var unkeyed = map[string]bool{
	"accept": true, "accept-charset": true, "accept-encoding": true, "accept-language": true, "cache-control": true, "dnt": true,
	"if-modified-since": true, "if-none-match": true, "pragma": true, "priority": true, "referer": true,
	"save-data": true, "te": true, "traceparent": true, "tracestate": true, "upgrade-insecure-requests": true, "user-agent": true,
	"via": true, "x-forwarded-for": true,
}

// isUnkeyed reports whether a field counts only if the backend says so.
func isUnkeyed(name string) bool {
	return unkeyed[name] || strings.HasPrefix(name, "sec-ch-") || strings.HasPrefix(name, "sec-fetch-") || name == "sec-gpc"
}

// Request is a request as the backend gets it.
type Request struct {
	// Service identifies the backend: its namespace, name and port.
	Service string
	// Method, Host, Target and Fields are those that are sent.
	Method, Host, Target string
	Fields               []upstream.Field
	// Plain is false for a request with a body, or one that switches to another protocol. Such a request is not answered by the
	// cache, whatever its method.
	Plain bool
	// Proven tells that somebody has proven who he is, even if the backend is not told. What it answers then is only kept if it
	// says that it is for everybody.
	Proven bool
}

// placeOf identifies what is asked for.
func placeOf(r *Request) place {
	return sha256.Sum256(appendTexts(nil, r.Service, r.Host, r.Target))
}

// groupOf identifies the fields that always count, whatever their order. Values of one name keep theirs.
func groupOf(r *Request) group {
	var fields []upstream.Field
	for _, field := range r.Fields {
		if name := strings.ToLower(field.Name); !isUnkeyed(name) {
			fields = append(fields, upstream.Field{Name: name, Value: field.Value})
		}
	}
	slices.SortStableFunc(fields, func(a, b upstream.Field) int { return strings.Compare(a.Name, b.Name) })
	var b []byte
	for _, field := range fields {
		b = appendTexts(b, field.Name, field.Value)
	}
	return sha256.Sum256(b)
}

// appendTexts writes texts so that no others are written the same way.
func appendTexts(b []byte, texts ...string) []byte {
	for _, text := range texts {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return b
}

// variant is what Vary names, with what the request had. Nil: it names nothing.
type variant []upstream.Field

// maxVary bounds the names in Vary.
const maxVary = 16

// variantOf reads Vary. ok is false if no other request may get the response.
func variantOf(r *Request, response []upstream.Field) (v variant, ok bool) {
	for _, field := range response {
		if !strings.EqualFold(field.Name, "Vary") {
			continue
		}
		for name := range strings.SplitSeq(field.Value, ",") {
			name = strings.ToLower(strings.Trim(name, " \t"))
			switch {
			case name == "":
				continue
			case name == "*" || len(v) == maxVary:
				return nil, false
			}
			v = append(v, upstream.Field{Name: name, Value: valuesOf(r.Fields, name)})
		}
	}
	return v, true
}

// matches reports whether a request has the same values.
func (v variant) matches(r *Request) bool {
	return !slices.ContainsFunc(v, func(field upstream.Field) bool { return valuesOf(r.Fields, field.Name) != field.Value })
}

// valuesOf joins all values of a field. No field and an empty one differ.
func valuesOf(fields []upstream.Field, name string) string {
	var b []byte
	for _, field := range fields {
		if strings.EqualFold(field.Name, name) {
			b = appendTexts(b, field.Value)
		}
	}
	return string(b)
}
