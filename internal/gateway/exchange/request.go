package exchange

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Request is what the client asks for.
type Request struct {
	r *http.Request

	// Start is when it has arrived.
	Start time.Time
	// Path and Match are the path as a backend gets it before a rewrite, and as routes match it.
	Path, Match string
	// Query is the query for the backend.
	Query string
	// Nominated are the fields that Connection names, beyond those that are never forwarded.
	Nominated []string
}

// Context ends when the client has left.
func (q *Request) Context() context.Context { return q.r.Context() }

// Method is that of the request.
func (q *Request) Method() string { return q.r.Method }

// Host is that of the request, in normal form once there is a route.
func (q *Request) Host() string { return q.r.Host }

// Protocol is the version of HTTP as text.
func (q *Request) Protocol() string { return q.r.Proto }

// ProtocolAtLeast reports whether the client speaks a version of HTTP or a later one.
func (q *Request) ProtocolAtLeast(major, minor int) bool { return q.r.ProtoAtLeast(major, minor) }

// Header has the fields of the request, by their canonical names. They belong to the request and may be changed.
func (q *Request) Header() http.Header { return q.r.Header }

// BasicAuth returns the user and the password of the request, if it has them.
func (q *Request) BasicAuth() (user, password string, ok bool) { return q.r.BasicAuth() }

// Target is the path with the query, before a rewrite.
func (q *Request) Target() string {
	if q.Query != "" || q.r.URL.ForceQuery {
		return q.Path + "?" + q.Query
	}
	return q.Path
}

// asksForProtocol reports whether the client wants to leave HTTP. An offer of HTTP/2 does
// not count: clients make it with their first request and go on with HTTP/1.1.
func (q *Request) asksForProtocol() bool {
	for _, value := range q.r.Header["Upgrade"] {
		if !strings.EqualFold(value, "h2c") {
			return true
		}
	}
	return false
}

// SpeaksGRPC reports whether the client reads a status of gRPC: a POST over HTTP/2 with the content type of gRPC, and with "TE: trailers",
// which each client of gRPC sends. Any client can claim that, but what asks the gateway on behalf of others, such as a check of whether a
// request is let in, forwards neither HTTP/2 nor this field. So it never takes the 200 of a refusal for consent. gRPC-Web is answered as
// HTTP is: its clients read the status of HTTP.
func (q *Request) SpeaksGRPC() bool {
	trailers := func(value string) bool { return HasToken(value, "trailers") }
	if q.r.Method != http.MethodPost || q.r.ProtoMajor != 2 || !slices.ContainsFunc(q.r.Header["Te"], trailers) {
		return false
	}
	media := q.r.Header.Get("Content-Type")
	if len(media) < len(mediaGRPC) || !strings.EqualFold(media[:len(mediaGRPC)], mediaGRPC) {
		return false
	}
	kind, _, _ := strings.Cut(media[len(mediaGRPC):], ";")
	kind, _, _ = strings.Cut(kind, "+")
	return strings.TrimSpace(kind) == ""
}

// saysGRPC reports whether the client claims to speak gRPC. Any client can claim it.
func (q *Request) saysGRPC() bool {
	return strings.HasPrefix(q.r.Header.Get("Content-Type"), "application/grpc")
}

// HasBody reports whether the request may have a body.
func (q *Request) HasBody() bool {
	return q.r.Body != nil && q.r.Body != http.NoBody && q.r.ContentLength != 0
}
