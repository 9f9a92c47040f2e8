package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// notFound is the one answer for what does not exist, and for what the user may not list. It has nothing in it that tells them
// apart.
func notFound() *api.Failure {
	return fail(api.NotFound, "there is no such kind or object in the history, or you may not list it")
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
