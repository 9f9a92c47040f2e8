// Package failure says why a request failed: with a word that programs may rely on, and a sentence for people.
package failure

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Failure is the answer of a request that failed.
type Failure struct {
	// Code is the HTTP status, and Reason a word for it that programs may rely on.
	Code   int    `json:"code"`
	Reason Reason `json:"reason"`
	// Message says what is wrong and what to do about it.
	Message string `json:"message"`
	// Challenge says how to prove who one is: the header WWW-Authenticate of the answer, if there is one.
	Challenge string `json:"-"`
}

// Error returns the message.
func (f *Failure) Error() string { return f.Message }

// Reason says why a request failed.
type Reason string

const (
	// BadRequest is a request that has no meaning: a parameter that is unknown, or has a form that it may not have.
	BadRequest Reason = "BadRequest"
	// Unauthenticated is a request without a token, or with one that is not valid, or not any more.
	Unauthenticated Reason = "Unauthenticated"
	// NotFound is something that does not exist, or that the user may not list. Nobody is told which.
	NotFound Reason = "NotFound"
	// NotAllowed is a method that the endpoint does not have, or a request of another page.
	NotAllowed Reason = "NotAllowed"
	// TooLarge is a request with too much in it.
	TooLarge Reason = "TooLarge"
	// WrongHost is a request with a name in its Host header that is not one of the program's.
	WrongHost Reason = "WrongHost"
	// TooMany is one request too many of this user, or of all. It may be tried again later.
	TooMany Reason = "TooMany"
	// Unavailable is something the program needs and cannot have at present. It may be tried again later.
	Unavailable Reason = "Unavailable"
	// Internal is an error of the program. Its log says more.
	Internal Reason = "Internal"
)

var statusOf = map[Reason]int{
	BadRequest: http.StatusBadRequest, Unauthenticated: http.StatusUnauthorized, NotFound: http.StatusNotFound,
	NotAllowed: http.StatusForbidden, TooLarge: http.StatusRequestEntityTooLarge, WrongHost: http.StatusMisdirectedRequest,
	TooMany: http.StatusTooManyRequests, Unavailable: http.StatusServiceUnavailable, Internal: http.StatusInternalServerError,
}

// New returns a failure with the status of its reason.
func New(reason Reason, format string, args ...any) *Failure {
	return &Failure{Code: statusOf[reason], Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Refuse answers with a failure.
func Refuse(w http.ResponseWriter, f *Failure) {
	if f.Challenge != "" {
		w.Header().Set("WWW-Authenticate", f.Challenge)
	}
	if f.Reason == TooMany || f.Reason == Unavailable {
		w.Header().Set("Retry-After", "1")
	}
	WriteJSON(w, f.Code, f)
}

// WriteJSON writes an answer. An error is that the client has gone.
func WriteJSON(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}
