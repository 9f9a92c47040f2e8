package server

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/slipway-dev/slipway/internal/monitor/api"
)

var statusOf = map[api.Reason]int{
	api.BadRequest: http.StatusBadRequest, api.Unauthenticated: http.StatusUnauthorized, api.NotFound: http.StatusNotFound,
	api.NotAllowed: http.StatusForbidden, api.TooLarge: http.StatusRequestEntityTooLarge, api.WrongHost: http.StatusMisdirectedRequest,
	api.TooMany: http.StatusTooManyRequests, api.Unavailable: http.StatusServiceUnavailable, api.Internal: http.StatusInternalServerError,
}

func fail(reason api.Reason, format string, args ...any) *api.Failure {
	return &api.Failure{Code: statusOf[reason], Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// refuse answers with a failure.
func refuse(w http.ResponseWriter, f *api.Failure) {
	if f.Challenge != "" {
		w.Header().Set("WWW-Authenticate", f.Challenge)
	}
	if f.Reason == api.TooMany || f.Reason == api.Unavailable {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, f.Code, f)
}

// writeJSON writes an answer. An error is that the client has gone.
func writeJSON(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}
