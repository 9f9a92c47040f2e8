package upstream

import "errors"

// Kind says what went wrong with a request.
type Kind int

// The kinds of failure.
const (
	// NoEndpoints: the Service has none.
	NoEndpoints Kind = iota + 1
	// Connect: no connection could be opened, so nothing was sent.
	Connect
	// Reset: the connection ended before the head of a response was there.
	Reset
	// Timeout: the response did not come in time.
	Timeout
	// Malformed: what came is not a response that may be passed on.
	Malformed
	// RequestBody: the request's body could not be read; the client's fault.
	RequestBody
	// Canceled: whoever sent the request does not want the answer any more.
	Canceled
	// InvalidRequest: the request cannot be sent as it is.
	InvalidRequest
	// WrongProtocol: the endpoint answers in another protocol than it was declared to speak.
	WrongProtocol
	// MaxRequests: as many requests as may be are under way. Nothing was sent.
	MaxRequests
	// MaxPending: as many requests as may be wait for a connection. Nothing was sent.
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

// ErrIdle is that the endpoint sent nothing of a response's body for IdleTimeout.
var ErrIdle = errors.New("nothing of the response came in time")

// Error is a failure of a request.
type Error struct {
	// Kind says what went wrong.
	Kind Kind
	// Endpoint is the address that it went wrong with, empty if there was none.
	Endpoint string
	// Err is the cause.
	Err error

	// stale is set when a kept connection ended before a byte of the response came:
	// most likely the endpoint closed it while it was idle.
	stale bool
	// unprocessed is set when the endpoint says that it has not looked at the request.
	unprocessed bool
	// unsent is set when the time was over before the request had been sent whole.
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

// KindOf returns the kind of a failure, 0 if it is none of this package's.
func KindOf(err error) Kind {
	if failure, ok := errors.AsType[*Error](err); ok {
		return failure.Kind
	}
	return 0
}
