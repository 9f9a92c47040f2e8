package proxy

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	authsetting "github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
	"github.com/slipway-dev/slipway/internal/gateway/whole"
)

// maxRefusal bounds the body with which a Service refuses a request.
const maxRefusal = 64 << 10

// refusalFields are the fields of a refusal that the client gets.
var refusalFields = []string{"Content-Type", "Location", "Set-Cookie", "Www-Authenticate", "Cache-Control", "Retry-After"}

// externalResult is how a question to a Service ended.
type externalResult int

// The results, as the metric has them.
const (
	externalAllowed externalResult = iota
	externalRefused
	externalLetIn
	externalFailed
	externalCanceled
	externalResults
)

func (r externalResult) String() string {
	return [externalResults]string{"allowed", "refused", "let_in", "error", "canceled"}[r]
}

// askExternal asks a Service whether the request may come in. If it may not, it answers the request and returns false.
func (e *exchange) askExternal(auth *authsetting.External) bool {
	if !e.path.ReadsOneWay() || e.path.Forward == wholeServer {
		return e.refuse(http.StatusBadRequest, "path")
	}
	if auth.Backend == nil {
		e.handler.authMetrics.external.asked(e.route.Name, externalFailed, 0)
		return e.refuse(http.StatusServiceUnavailable, "auth_unavailable")
	}
	if auth.MaxBody > 0 && !e.readJudged(auth.MaxBody) {
		return false
	}
	began, ask := e.handler.options.Clock.Now(), e.askHTTP
	if auth.GRPC {
		ask = e.askGRPC
	}
	result := ask(auth)
	e.handler.authMetrics.external.asked(e.route.Name, result, e.handler.options.Clock.Since(began))
	return result == externalAllowed || result == externalLetIn
}

// keptFor is for whom the bytes of a question are kept.
func (e *exchange) keptFor() whole.Owner {
	return whole.Owner{Client: e.client.shareOf, Service: e.route.Auth.External.Backend.ID}
}

// askHTTP asks with an HTTP request.
func (e *exchange) askHTTP(auth *authsetting.External) externalResult {
	request := e.question(auth)
	response, err := e.state.services[auth.Backend.Index].Do(e.r.Context(), request)
	if err != nil {
		return e.withoutAnswer(auth, request, err)
	}
	defer response.Close()
	switch {
	case response.Status >= http.StatusInternalServerError:
		return e.withoutAnswer(auth, request, nil)
	case response.Status < http.StatusOK:
		return e.withoutAnswer(auth, request, errNoVerdict)
	case response.Status >= http.StatusMultipleChoices:
		return e.refuseAs(response)
	case slices.ContainsFunc(response.Fields, func(f upstream.Field) bool { return strings.EqualFold(f.Name, "Grpc-Status") && f.Value != "0" }):
		return e.withoutAnswer(auth, request, errNoVerdict) // a refusal in gRPC has status 200
	}
	return e.vouch(auth, response.Fields)
}

// question is what the Service is asked.
func (e *exchange) question(auth *authsetting.External) *upstream.Request {
	request := e.toService(auth)
	request.Method, request.Target, request.Protocol = http.MethodGet, auth.Path, protocolOf(auth.Backend)
	if auth.MaxBody > 0 {
		request.Method = http.MethodPost
		setBody(request, e.body.judged.Data)
	}
	request.Fields = append(e.shown(auth),
		upstream.Field{Name: "X-Forwarded-Method", Value: e.r.Method},
		upstream.Field{Name: "X-Forwarded-Proto", Value: e.scheme()},
		upstream.Field{Name: "X-Forwarded-Host", Value: e.forwardedHost()},
		upstream.Field{Name: "X-Forwarded-Uri", Value: e.uri()},
		upstream.Field{Name: "X-Forwarded-For", Value: e.client.text},
	)
	return request
}

// toService is a request to the Service, as far as all of them are alike.
func (e *exchange) toService(auth *authsetting.External) *upstream.Request {
	request := &upstream.Request{
		Client: e.client.shareOf, Host: auth.Backend.Service,
		Deadline: e.handler.options.Clock.Now().Add(auth.Timeout), Retry: upstream.Retry{Attempts: 1, On: model.OnConnectFailure},
	}
	if deadline := e.deadline(); !deadline.IsZero() && deadline.Before(request.Deadline) {
		request.Deadline = deadline
	}
	return request
}

// shown are the client's fields that the Service is shown: those that are asked for, and never what the backend does not get.
func (e *exchange) shown(auth *authsetting.External) []upstream.Field {
	var fields []upstream.Field
	for _, name := range auth.RequestHeaders {
		if slices.Contains(e.nominated, name) {
			continue // the backend does not get it either
		}
		values := e.r.Header[name]
		if name == "Cookie" {
			values = withoutSessions(values)
		}
		for _, value := range values {
			fields = append(fields, upstream.Field{Name: name, Value: value})
		}
	}
	return fields
}

// uri is the path and the query that the backend gets, before a rewrite.
func (e *exchange) uri() string {
	if e.query != "" || e.r.URL.ForceQuery {
		return e.path.Forward + "?" + e.query
	}
	return e.path.Forward
}

// errNoVerdict means that the Service has answered, and that the answer does not say whether a request may come in.
var errNoVerdict = errors.New("the answer says neither yes nor no")

// withoutAnswer decides about a request when the Service has given no answer to a question that counts. err is nil if it says that
// it has failed. A client is not let in by what clients can bring about: too many requests at a time, one that takes too long, or
// one whose answer becomes too large. Nor by a defect of the gateway.
func (e *exchange) withoutAnswer(auth *authsetting.External, question *upstream.Request, err error) externalResult {
	if e.r.Context().Err() != nil {
		e.abandon()
		return externalCanceled
	}
	kind, over := upstream.KindOf(err), !e.handler.options.Clock.Now().Before(question.Deadline)
	switch {
	case errors.Is(err, panics.ErrPanicked):
		e.refuse(http.StatusServiceUnavailable, "auth_unavailable")
	case errors.Is(err, whole.ErrNoRoom):
		e.refuse(http.StatusServiceUnavailable, "auth_room")
	case errors.Is(err, errNoVerdict) || kind == upstream.Malformed:
		e.refuse(http.StatusServiceUnavailable, "auth_answer")
	case kind == upstream.InvalidRequest:
		e.refuse(http.StatusBadRequest, "auth_request")
	case kind == upstream.MaxRequests || kind == upstream.MaxPending || kind == upstream.MaxConnections:
		e.refuse(http.StatusServiceUnavailable, kind.String())
	case over && question.Deadline.Equal(e.deadline()): // the route's time, and not the Service's
		e.refuse(http.StatusGatewayTimeout, upstream.Timeout.String())
	case over && question.Waited(): // the Service did not have its whole time
		e.refuse(http.StatusServiceUnavailable, "auth_unavailable")
	case auth.LetIn:
		return externalLetIn
	default:
		e.refuse(http.StatusServiceUnavailable, "auth_unavailable")
	}
	return externalFailed
}

// refuseAs answers as the Service has.
func (e *exchange) refuseAs(response *upstream.Response) externalResult {
	var body whole.Bytes
	defer func() { body.Drop(e.handler.kept) }()
	if err := body.Read(e.handler.kept, e.keptFor(), response, maxRefusal, -1); err != nil {
		e.refuse(response.Status, "auth_refused") // without a body of which there is too much, or not all
		return externalRefused
	}
	return e.refuseWith(response.Status, response.Fields, body.Data)
}

// refuseWith refuses the request with what the Service says.
func (e *exchange) refuseWith(status int, fields []upstream.Field, body []byte) externalResult {
	header, contentType := e.w.Header(), ""
	for _, field := range fields {
		name := http.CanonicalHeaderKey(field.Name)
		switch {
		case name == "Content-Type":
			contentType = field.Value
		case slices.Contains(refusalFields, name):
			header[name] = append(header[name], field.Value)
		}
	}
	e.answer.failure = "auth_refused"
	e.answerWith(status, contentType, body)
	return externalRefused
}

// vouch keeps what the Service says of the client.
func (e *exchange) vouch(auth *authsetting.External, fields []upstream.Field) externalResult {
	for _, field := range fields {
		name := http.CanonicalHeaderKey(field.Name)
		if name == auth.IdentityHeader && e.facts.identity == "" {
			e.facts.identity = field.Value
		}
		if slices.Contains(auth.BackendHeaders, name) {
			e.facts.add = append(e.facts.add, upstream.Field{Name: name, Value: field.Value})
		}
	}
	if auth.IdentityHeader != "" && e.facts.identity == "" {
		e.refuse(http.StatusForbidden, "auth_without_identity")
		return externalRefused
	}
	return externalAllowed
}
