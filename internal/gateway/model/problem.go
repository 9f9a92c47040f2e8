package model

import "fmt"

// These are the reasons of problems. They are those of the API.
const (
	ReasonInvalid             = "Invalid"
	ReasonInvalidRoute        = "InvalidRoute"
	ReasonInvalidRegex        = "InvalidRegex"
	ReasonBackendNotFound     = "BackendNotFound"
	ReasonPortNotFound        = "PortNotFound"
	ReasonUnsupportedService  = "UnsupportedService"
	ReasonUnsupportedProtocol = "UnsupportedProtocol"
	ReasonNoEndpoints         = "NoEndpoints"
)

// Problem says why a rule is not served as written, or why a listener, a health check or
// another setting is ignored.
type Problem struct {
	// Index is the Index of the rule, and Route its name. For other problems Index is -1,
	// List is the list that has the object, and Route is its name: for settings, the ID of
	// the backend.
	Index int
	Route string
	List  string
	// Reason is one of the reasons above, or one that the front end has put into a Fault.
	Reason string
	// Message names the field and the object. It never contains the value of a Secret.
	Message string
}

// Invalid is a Fault of a rule, with ReasonInvalidRoute.
func Invalid(format string, args ...any) *Fault {
	return &Fault{ReasonInvalidRoute, fmt.Sprintf(format, args...)}
}

// Fault says why something cannot be used. It becomes a Problem.
type Fault struct {
	Reason  string
	Message string
}
