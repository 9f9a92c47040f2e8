package upstream

import "errors"

// Kind tells what went wrong with a request.
type Kind int

// The kinds of failure.
const (
	// NoEndpoints: the Service has no endpoints.
	NoEndpoints Kind = iota + 1
	// Connect: no connection could be opened. Nothing was sent.
	Connect
	// Reset: the connection ended before the head of the response.
	Reset
	// Timeout: the response did not come in time.
	Timeout
	// Malformed: the response must not be forwarded.
	Malformed
	// RequestBody: the body of the request could not be read, which is the client's fault.
	RequestBody
	// Canceled: the caller does not want the response any more.
	Canceled
	// InvalidRequest: the request cannot be sent in this form.
	InvalidRequest
	// WrongProtocol: the endpoint speaks another protocol than it was declared to.
	WrongProtocol
	// MaxRequests: too many requests are in flight. Nothing was sent.
	MaxRequests
	// MaxPending: too many requests wait for a connection. Nothing was sent.
	MaxPending
	// MaxConnections: no connection became free in time. Nothing was sent.
	MaxConnections
)

// String returns the kind as a label value.
func (k Kind) String() string {
	switch k {
	case NoEndpoints:
		return "no_endpoints"
	case Connect:
		return "connect"
	case Reset:
		return "reset"
	case Timeout:
		return "timeout"
	case Malformed:
		return "malformed"
	case RequestBody:
		return "request_body"
	case Canceled:
		return "canceled"
	case InvalidRequest:
		return "invalid_request"
	case WrongProtocol:
		return "wrong_protocol"
	case MaxRequests:
		return "max_requests"
	case MaxPending:
		return "max_pending_requests"
	case MaxConnections:
		return "max_connections"
	}
	return "unknown"
}

// ErrIdle means that the endpoint sent nothing of a response's body for IdleTimeout.
var ErrIdle = errors.New("nothing of the response came in time")

// Error is a failure of a request.
type Error struct {
	// Kind says what went wrong.
	Kind Kind
	// Endpoint is the address of the endpoint. It is empty if none was chosen.
	Endpoint string
	// Err is the cause.
	Err error

	// stale is set when a kept connection ended before a byte of the response. Most likely
	// the endpoint closed it because it was idle.
	stale bool
	// unprocessed is set when the endpoint certainly has not processed the request.
	unprocessed bool
	// hangs is set when there is no connection yet. It counts against the endpoint once it has failed.
	hangs bool
	// unsent is set when the timeout came before the whole request was sent.
	unsent bool
}

// Error returns what went wrong, and with which endpoint.
func (e *Error) Error() string {
	if e.Endpoint == "" {
		return e.Err.Error()
	}
	return e.Endpoint + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Unreachable reports whether no connection could be opened, for a reason that is not the gateway's own.
func (e *Error) Unreachable() bool { return e.Kind == Connect && !isOurs(e.Err) }

// KindOf returns the kind of a failure, or 0 if the error is not from this package.
func KindOf(err error) Kind {
	if failure, ok := errors.AsType[*Error](err); ok {
		return failure.Kind
	}
	return 0
}
