package serve

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
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
func (s *Step) askExternal(e *exchange.Exchange, policy *auth.External) bool {
	if !e.ReadsOneWay() || e.Path == "*" {
		return e.Refuse(http.StatusBadRequest, "path")
	}
	if policy.Backend == nil {
		s.engine.metrics.external.asked(e.Route, externalFailed, 0)
		return e.Refuse(http.StatusServiceUnavailable, "auth_unavailable")
	}
	if policy.MaxBody > 0 && !e.ReadWhole(s.most, policy.Backend.ID) {
		return false
	}
	began, ask := e.Clock.Now(), s.askHTTP
	if policy.GRPC {
		ask = s.askGRPC
	}
	result := ask(e, policy)
	s.engine.metrics.external.asked(e.Route, result, e.Clock.Since(began))
	return result == externalAllowed || result == externalLetIn
}

// askHTTP asks with an HTTP request.
func (s *Step) askHTTP(e *exchange.Exchange, policy *auth.External) externalResult {
	request := s.question(e, policy)
	response, err := s.service.Do(e.Context(), request)
	if err != nil {
		return s.withoutAnswer(e, policy, request, err)
	}
	defer response.Close()
	switch {
	case response.Status >= http.StatusInternalServerError:
		return s.withoutAnswer(e, policy, request, nil)
	case response.Status < http.StatusOK:
		return s.withoutAnswer(e, policy, request, errNoVerdict)
	case response.Status >= http.StatusMultipleChoices:
		return s.refuseAs(e, response)
	case slices.ContainsFunc(response.Fields, refusesGRPC):
		return s.withoutAnswer(e, policy, request, errNoVerdict) // a refusal in gRPC has status 200
	}
	return s.vouch(e, policy, response.Fields)
}

func refusesGRPC(field upstream.Field) bool {
	return strings.EqualFold(field.Name, "Grpc-Status") && field.Value != "0"
}

// question is what the Service is asked.
func (s *Step) question(e *exchange.Exchange, policy *auth.External) *upstream.Request {
	request := s.toService(e, policy)
	request.Method, request.Target, request.Protocol = http.MethodGet, policy.Path, s.protocol
	if policy.MaxBody > 0 {
		request.Method = http.MethodPost
		exchange.SetBody(request, e.Body.Whole.Data)
	}
	request.Fields = append(s.shown(e, policy),
		upstream.Field{Name: "X-Forwarded-Method", Value: e.Method()},
		upstream.Field{Name: "X-Forwarded-Proto", Value: e.Scheme()},
		upstream.Field{Name: "X-Forwarded-Host", Value: e.ForwardedHost()},
		upstream.Field{Name: "X-Forwarded-Uri", Value: e.Target()},
		upstream.Field{Name: "X-Forwarded-For", Value: e.Client.Text},
	)
	return request
}

// toService is a request to the Service, as far as all of them are alike.
func (s *Step) toService(e *exchange.Exchange, policy *auth.External) *upstream.Request {
	request := &upstream.Request{
		Client: e.Client.ShareOf, Host: policy.Backend.Service,
		Deadline: e.Clock.Now().Add(policy.Timeout), Retry: upstream.Retry{Attempts: 1, On: model.OnConnectFailure},
	}
	if deadline := e.Deadline(); !deadline.IsZero() && deadline.Before(request.Deadline) {
		request.Deadline = deadline
	}
	return request
}

// shown are the client's fields that the Service is shown: those that are asked for, and never what the backend does not get.
func (s *Step) shown(e *exchange.Exchange, policy *auth.External) []upstream.Field {
	var fields []upstream.Field
	for _, name := range policy.RequestHeaders {
		if slices.Contains(e.Nominated, name) {
			continue // the backend does not get it either
		}
		values := e.Header()[name]
		if name == "Cookie" {
			values = e.StripCookies(values)
		}
		for _, value := range values {
			fields = append(fields, upstream.Field{Name: name, Value: value})
		}
	}
	return fields
}

// errNoVerdict means that the Service has answered, and that the answer does not say whether a request may come in.
var errNoVerdict = errors.New("the answer says neither yes nor no")

// withoutAnswer decides about a request when the Service has given no answer to a question that counts. err is nil if it says that
// it has failed. A client is not let in by what clients can bring about: too many requests at a time, one that takes too long, or
// one whose answer becomes too large. Nor by a defect of the gateway.
func (s *Step) withoutAnswer(e *exchange.Exchange, policy *auth.External, question *upstream.Request, err error) externalResult {
	if e.Context().Err() != nil {
		e.Abandon()
		return externalCanceled
	}
	kind, over := upstream.KindOf(err), !e.Clock.Now().Before(question.Deadline)
	switch {
	case errors.Is(err, panics.ErrPanicked):
		e.Refuse(http.StatusServiceUnavailable, "auth_unavailable")
	case errors.Is(err, whole.ErrNoRoom):
		e.Refuse(http.StatusServiceUnavailable, "auth_room")
	case errors.Is(err, errNoVerdict) || kind == upstream.Malformed:
		e.Refuse(http.StatusServiceUnavailable, "auth_answer")
	case kind == upstream.InvalidRequest:
		e.Refuse(http.StatusBadRequest, "auth_request")
	case kind == upstream.MaxRequests || kind == upstream.MaxPending || kind == upstream.MaxConnections:
		e.Refuse(http.StatusServiceUnavailable, kind.String())
	case over && question.Deadline.Equal(e.Deadline()): // the route's time, and not the Service's
		e.Refuse(http.StatusGatewayTimeout, upstream.Timeout.String())
	case over && question.Waited(): // the Service did not have its whole time
		e.Refuse(http.StatusServiceUnavailable, "auth_unavailable")
	case policy.LetIn:
		return externalLetIn
	default:
		e.Refuse(http.StatusServiceUnavailable, "auth_unavailable")
	}
	return externalFailed
}

// refuseAs answers as the Service has.
func (s *Step) refuseAs(e *exchange.Exchange, response *upstream.Response) externalResult {
	var body whole.Bytes
	defer func() { body.Drop(e.Room) }()
	if err := body.Read(e.Room, e.OwnerOf(s.External.Backend.ID), response, maxRefusal, -1); err != nil {
		e.Refuse(response.Status, "auth_refused") // without a body of which there is too much, or not all
		return externalRefused
	}
	return s.refuseWith(e, response.Status, response.Fields, body.Data)
}

// refuseWith refuses the request with what the Service says.
func (s *Step) refuseWith(e *exchange.Exchange, status int, fields []upstream.Field, body []byte) externalResult {
	header, contentType := e.Head(), ""
	for _, field := range fields {
		name := http.CanonicalHeaderKey(field.Name)
		switch {
		case name == "Content-Type":
			contentType = field.Value
		case slices.Contains(refusalFields, name):
			header[name] = append(header[name], field.Value)
		}
	}
	e.Answer.Failure = "auth_refused"
	e.AnswerWith(status, contentType, body)
	return externalRefused
}

// vouch keeps what the Service says of the client.
func (s *Step) vouch(e *exchange.Exchange, policy *auth.External, fields []upstream.Field) externalResult {
	for _, field := range fields {
		name := http.CanonicalHeaderKey(field.Name)
		if name == policy.IdentityHeader && e.Facts.Identity == "" {
			e.Facts.Identity = field.Value
		}
		if slices.Contains(policy.BackendHeaders, name) {
			e.Facts.Add = append(e.Facts.Add, upstream.Field{Name: name, Value: field.Value})
		}
	}
	if policy.IdentityHeader != "" && e.Facts.Identity == "" {
		e.Refuse(http.StatusForbidden, "auth_without_identity")
		return externalRefused
	}
	return externalAllowed
}
