package serve

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/authz"
	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
	"github.com/slipway-dev/slipway/internal/gateway/whole"
)

// askGRPC asks as envoy.service.auth.v3 says.
func (s *Step) askGRPC(e *exchange.Exchange, policy *auth.External) externalResult {
	request := s.toService(e, policy)
	message, err := s.asMessage(e, policy)
	if err != nil {
		e.Refuse(http.StatusBadRequest, "auth_request") // the client's fault, so it is never let in
		return externalFailed
	}
	request.Method, request.Target, request.Protocol, request.AcceptTrailers = http.MethodPost, authz.Method, upstream.HTTP2, true
	exchange.SetBody(request, message)
	left := max(request.Deadline.Sub(e.Clock.Now()), time.Millisecond)
	request.Fields = []upstream.Field{
		{Name: "Content-Type", Value: "application/grpc"},
		{Name: "Grpc-Timeout", Value: strconv.FormatInt(left.Milliseconds(), 10) + "m"},
	}
	response, err := s.service.Do(e.Context(), request)
	if err != nil {
		return s.withoutAnswer(e, policy, request, err)
	}
	defer response.Close()
	verdict, err := s.readVerdict(e, response)
	switch {
	case verdict == nil:
		return s.withoutAnswer(e, policy, request, err)
	case !verdict.Allowed && len(verdict.Body) > maxRefusal:
		e.Refuse(verdict.Status, "auth_refused")
		return externalRefused
	case !verdict.Allowed:
		return s.refuseWith(e, verdict.Status, verdict.Fields, []byte(verdict.Body))
	}
	for _, name := range verdict.Remove {
		s.remove(e, name)
	}
	for _, field := range verdict.Fields { // the Service means to replace the client's, also where the route does not let its own through
		s.remove(e, field.Name)
	}
	return s.vouch(e, policy, verdict.Fields)
}

// asMessage is the question about the request. It has the fields that an HTTP question has.
func (s *Step) asMessage(e *exchange.Exchange, policy *auth.External) ([]byte, error) {
	question := authz.Question{
		Method: e.Method(), Path: e.Target(), Host: e.Host(), Scheme: e.Scheme(), Protocol: e.Protocol(), Client: e.Client.Text,
		Time: e.Start, Body: e.Body.Whole.Data,
		Fields: append(s.shown(e, policy),
			upstream.Field{Name: "X-Forwarded-Proto", Value: e.Scheme()},
			upstream.Field{Name: "X-Forwarded-Host", Value: e.ForwardedHost()},
			upstream.Field{Name: "X-Forwarded-For", Value: e.Client.Text},
		),
	}
	return question.Encode()
}

// readVerdict returns what a response says. Without a verdict, the error is for withoutAnswer.
func (s *Step) readVerdict(e *exchange.Exchange, response *upstream.Response) (*authz.Verdict, error) {
	switch {
	case response.Status >= http.StatusInternalServerError:
		return nil, nil
	case response.Status != http.StatusOK || !authz.Speaks(response.Fields):
		return nil, errNoVerdict
	}
	var message whole.Bytes
	defer func() { message.Drop(e.Room) }()
	switch err := message.Read(e.Room, e.OwnerOf(s.External.Backend.ID), response, authz.MaxAnswer, -1); {
	case errors.Is(err, whole.ErrNoRoom):
		return nil, whole.ErrNoRoom
	case errors.Is(err, whole.ErrTooLarge):
		return nil, errNoVerdict
	case err != nil || authz.Failed(response.Fields, response.Trailers()):
		return nil, nil
	case !authz.Succeeded(response.Fields, response.Trailers()):
		return nil, errNoVerdict
	}
	verdict, err := authz.Decode(message.Data)
	switch {
	case errors.Is(err, authz.ErrUndecided):
		return nil, nil
	case err != nil:
		return nil, errNoVerdict
	}
	return verdict, nil
}

// remove keeps a field of the client from the backend.
func (s *Step) remove(e *exchange.Exchange, name string) {
	e.Facts.Hide = append(e.Facts.Hide, fieldname.Folded(name)) // the first one copies what the route hides: Step.Admit clips it
}
