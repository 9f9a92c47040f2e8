package proxy

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/authz"
	authsetting "github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
	"github.com/slipway-dev/slipway/internal/gateway/whole"
)

// askGRPC asks as envoy.service.auth.v3 says.
func (e *exchange) askGRPC(auth *authsetting.External) externalResult {
	request := e.toService(auth)
	message, err := e.asMessage(auth)
	if err != nil {
		e.refuse(http.StatusBadRequest, "auth_request") // the client's fault, so it is never let in
		return externalFailed
	}
	request.Method, request.Target, request.Protocol, request.AcceptTrailers = http.MethodPost, authz.Method, upstream.HTTP2, true
	setBody(request, message)
	left := max(request.Deadline.Sub(e.handler.options.Clock.Now()), time.Millisecond)
	request.Fields = []upstream.Field{
		{Name: "Content-Type", Value: "application/grpc"},
		{Name: "Grpc-Timeout", Value: strconv.FormatInt(left.Milliseconds(), 10) + "m"},
	}
	response, err := e.state.services[auth.Backend.Index].Do(e.r.Context(), request)
	if err != nil {
		return e.withoutAnswer(auth, request, err)
	}
	defer response.Close()
	verdict, err := e.readVerdict(response)
	switch {
	case verdict == nil:
		return e.withoutAnswer(auth, request, err)
	case !verdict.Allowed && len(verdict.Body) > maxRefusal:
		e.refuse(verdict.Status, "auth_refused")
		return externalRefused
	case !verdict.Allowed:
		return e.refuseWith(verdict.Status, verdict.Fields, []byte(verdict.Body))
	}
	for _, name := range verdict.Remove {
		e.remove(name)
	}
	for _, field := range verdict.Fields { // the Service means to replace the client's, also where the route does not let its own through
		e.remove(field.Name)
	}
	return e.vouch(auth, verdict.Fields)
}

// asMessage is the question about the request. It has the fields that an HTTP question has.
func (e *exchange) asMessage(auth *authsetting.External) ([]byte, error) {
	question := authz.Question{
		Method: e.r.Method, Path: e.uri(), Host: e.r.Host, Scheme: e.scheme(), Protocol: e.r.Proto, Client: e.client.text, Time: e.start, Body: e.body.judged.Data,
		Fields: append(e.shown(auth),
			upstream.Field{Name: "X-Forwarded-Proto", Value: e.scheme()},
			upstream.Field{Name: "X-Forwarded-Host", Value: e.forwardedHost()},
			upstream.Field{Name: "X-Forwarded-For", Value: e.client.text},
		),
	}
	return question.Encode()
}

// readVerdict returns what a response says. Without a verdict, the error is for withoutAnswer.
func (e *exchange) readVerdict(response *upstream.Response) (*authz.Verdict, error) {
	switch {
	case response.Status >= http.StatusInternalServerError:
		return nil, nil
	case response.Status != http.StatusOK || !authz.Speaks(response.Fields):
		return nil, errNoVerdict
	}
	var message whole.Bytes
	defer func() { message.Drop(e.handler.kept) }()
	switch err := message.Read(e.handler.kept, e.keptFor(), response, authz.MaxAnswer, -1); {
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

// setBody sends bytes that are all there.
func setBody(request *upstream.Request, body []byte) {
	if len(body) == 0 {
		return
	}
	request.Body, request.ContentLength, request.StopBody = bytes.NewReader(body), int64(len(body)), func() {}
}

// remove keeps a field of the client from the backend.
func (e *exchange) remove(name string) {
	e.facts.hide = append(e.facts.hide, fieldname.Folded(name)) // the first one copies what the route hides: auth.admit clips it
}
