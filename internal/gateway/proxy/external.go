package proxy

import (
	"io"
	"net/http"
	"slices"

	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// maxRefusal bounds the body with which a Service refuses a request.
const maxRefusal = 64 << 10

// refusalFields are the fields of a refusal that the client gets.
var refusalFields = []string{"Content-Type", "Location", "Set-Cookie", "Www-Authenticate", "Cache-Control", "Retry-After"}

// askExternal asks a Service whether the request may come in. If it may not, it answers the request and returns false.
func (e *exchange) askExternal(auth *table.External) bool {
	if !e.path.ReadsOneWay() || e.path.Forward == wholeServer {
		return e.refuse(http.StatusBadRequest, "path")
	}
	if auth.Backend == nil {
		return e.refuse(http.StatusServiceUnavailable, "auth_unavailable")
	}
	request := e.question(auth)
	response, err := e.state.services[auth.Backend.Index].Do(e.r.Context(), request)
	if err != nil {
		return e.withoutAnswer(auth, err)
	}
	defer response.Close()
	switch {
	case response.Status >= http.StatusInternalServerError || response.Status < http.StatusOK:
		return e.withoutAnswer(auth, nil)
	case response.Status >= http.StatusMultipleChoices:
		return e.refuseAs(response)
	}
	return e.vouch(auth, response.Fields)
}

// question is what the Service is asked. Of the client's fields it gets those that are asked for, and the backend's hop by hop
// ones never.
func (e *exchange) question(auth *table.External) *upstream.Request {
	request := &upstream.Request{
		Client: e.shareOf, Method: http.MethodGet, Target: auth.Path, Host: auth.Backend.Service, Protocol: protocolOf(auth.Backend),
		Deadline: e.handler.options.Clock.Now().Add(auth.Timeout), Retry: upstream.Retry{Attempts: 1, On: upstream.OnConnectFailure},
	}
	if deadline := e.deadline(); !deadline.IsZero() && deadline.Before(request.Deadline) {
		request.Deadline = deadline
	}
	for _, name := range auth.RequestHeaders {
		if slices.Contains(e.nominated, name) {
			continue // the backend does not get it either
		}
		for _, value := range e.r.Header[name] {
			request.Fields = append(request.Fields, upstream.Field{Name: name, Value: value})
		}
	}
	uri := e.path.Forward
	if e.query != "" || e.r.URL.ForceQuery {
		uri += "?" + e.query
	}
	request.Fields = append(request.Fields,
		upstream.Field{Name: "X-Forwarded-Method", Value: e.r.Method},
		upstream.Field{Name: "X-Forwarded-Proto", Value: e.scheme()},
		upstream.Field{Name: "X-Forwarded-Host", Value: e.forwardedHost()},
		upstream.Field{Name: "X-Forwarded-Uri", Value: uri},
		upstream.Field{Name: "X-Forwarded-For", Value: e.client},
	)
	return request
}

// withoutAnswer decides about a request when the Service has given no answer that counts. err is nil if it gave one that does not.
func (e *exchange) withoutAnswer(auth *table.External, err error) bool {
	if e.r.Context().Err() != nil {
		e.status, e.failure, e.aborted = statusClientGone, upstream.Canceled.String(), true
		return false
	}
	switch kind := upstream.KindOf(err); {
	case err == nil:
	case kind == upstream.InvalidRequest:
		return e.refuse(http.StatusBadRequest, "auth_request") // the client's fault, so it is never let in
	case kind == upstream.MaxRequests || kind == upstream.MaxPending || kind == upstream.MaxConnections:
		// The Service was not asked. A client that asks too much at a time would let itself in.
		return e.refuse(http.StatusServiceUnavailable, kind.String())
	}
	if auth.LetIn {
		return true
	}
	return e.refuse(http.StatusServiceUnavailable, "auth_unavailable")
}

// refuseAs answers as the Service has.
func (e *exchange) refuseAs(response *upstream.Response) bool {
	body, err := io.ReadAll(io.LimitReader(response, maxRefusal+1))
	if err != nil || len(body) > maxRefusal {
		return e.refuse(response.Status, "auth_refused")
	}
	header, contentType := e.w.Header(), ""
	for _, field := range response.Fields {
		name := http.CanonicalHeaderKey(field.Name)
		switch {
		case name == "Content-Type":
			contentType = field.Value
		case slices.Contains(refusalFields, name):
			header[name] = append(header[name], field.Value)
		}
	}
	e.failure = "auth_refused"
	e.answer(response.Status, contentType, body)
	return false
}

// vouch keeps what the Service says of the client.
func (e *exchange) vouch(auth *table.External, fields []upstream.Field) bool {
	for _, field := range fields {
		name := http.CanonicalHeaderKey(field.Name)
		if name == auth.IdentityHeader && e.identity == "" {
			e.identity = field.Value
		}
		if slices.Contains(auth.BackendHeaders, name) {
			e.vouched = append(e.vouched, upstream.Field{Name: name, Value: field.Value})
		}
	}
	if auth.IdentityHeader != "" && e.identity == "" {
		return e.refuse(http.StatusForbidden, "auth_without_identity")
	}
	return true
}
