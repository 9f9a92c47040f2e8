package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/web/failure"
)

// notFound is the one answer for what does not exist, and for what the user may not list. It has nothing in it that tells them
// apart.
func notFound() *failure.Failure {
	return failure.New(failure.NotFound, "there is no such kind or object in the history, or you may not list it")
}

// failureOf turns any error into what the user is told. What the user cannot change is for the log.
func (s *server) failureOf(r *http.Request, err error) *failure.Failure {
	var known *failure.Failure
	switch {
	case errors.As(err, &known):
		return known
	case store.Is(err, store.NotFound):
		return notFound()
	case store.Is(err, store.Invalid):
		return failure.New(failure.BadRequest, "the history cannot be asked for that: check limit, cursor and times")
	case errors.Is(err, context.DeadlineExceeded):
		return failure.New(failure.Unavailable, "the answer took too long: ask for a shorter time, one kind or one namespace")
	case r.Context().Err() != nil:
		return failure.New(failure.Unavailable, "the request was ended")
	case store.Is(err, store.Closed):
		return failure.New(failure.Unavailable, "the monitor is being stopped")
	}
	s.options.Logger.Error(err, "A request failed", "path", r.URL.Path)
	return failure.New(failure.Internal, "the monitor failed to answer; its log says why")
}
