package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

var statusOf = map[api.Reason]int{
	api.BadRequest: http.StatusBadRequest, api.Unauthenticated: http.StatusUnauthorized, api.NotFound: http.StatusNotFound,
	api.NotAllowed: http.StatusForbidden, api.TooLarge: http.StatusRequestEntityTooLarge, api.WrongHost: http.StatusMisdirectedRequest,
	api.TooMany: http.StatusTooManyRequests, api.Unavailable: http.StatusServiceUnavailable, api.Internal: http.StatusInternalServerError,
}

func fail(reason api.Reason, format string, args ...any) *api.Failure {
	return &api.Failure{Code: statusOf[reason], Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// notFound is the one answer for what does not exist, and for what the user may not list. It has nothing in it that tells them
// apart.
func notFound() *api.Failure {
	return fail(api.NotFound, "there is no such kind or object in the history, or you may not list it")
}

// unauthenticated is the one answer for a token that is missing, wrong or expired.
func unauthenticated() *api.Failure {
	return fail(api.Unauthenticated, "a bearer token that the cluster accepts is needed")
}

// failureOf turns any error into what the user is told. What the user cannot change is for the log.
func (s *server) failureOf(r *http.Request, err error) *api.Failure {
	var known *api.Failure
	switch {
	case errors.As(err, &known):
		return known
	case store.Is(err, store.NotFound):
		return notFound()
	case store.Is(err, store.Invalid):
		return fail(api.BadRequest, "the history cannot be asked for that: check limit, cursor and times")
	case errors.Is(err, context.DeadlineExceeded):
		return fail(api.Unavailable, "the answer took too long: ask for a shorter time, one kind or one namespace")
	case r.Context().Err() != nil:
		return fail(api.Unavailable, "the request was ended")
	case store.Is(err, store.Closed):
		return fail(api.Unavailable, "the monitor is being stopped")
	}
	s.options.Logger.Error(err, "A request failed", "path", r.URL.Path)
	return fail(api.Internal, "the monitor failed to answer; its log says why")
}

// refuse answers with a failure.
func refuse(w http.ResponseWriter, f *api.Failure) {
	header := w.Header()
	switch f.Reason {
	case api.Unauthenticated:
		header.Set("WWW-Authenticate", `Bearer realm="slipway-monitor"`)
	case api.TooMany, api.Unavailable:
		header.Set("Retry-After", "1")
	}
	writeJSON(w, f.Code, f)
}

// writeJSON writes an answer. An error is that the client has gone.
func writeJSON(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}
