package exchange

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// These are status codes of gRPC.
const (
	grpcDeadlineExceeded  = 4
	grpcPermissionDenied  = 7
	grpcResourceExhausted = 8
	grpcUnimplemented     = 12
	grpcInternal          = 13
	grpcUnavailable       = 14
	grpcUnauthenticated   = 16
)

// grpcStatus returns the status of gRPC for a refusal. gRPC's own table for answers that are not from gRPC knows less: it has
// UNAVAILABLE for a timeout and for too many requests, which makes clients ask again.
func grpcStatus(status int, failure string) int {
	switch status {
	case http.StatusUnauthorized:
		return grpcUnauthenticated
	case http.StatusForbidden:
		return grpcPermissionDenied
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return grpcUnimplemented
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return grpcDeadlineExceeded
	case http.StatusTooManyRequests, http.StatusRequestEntityTooLarge, http.StatusRequestHeaderFieldsTooLarge:
		return grpcResourceExhausted
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusMisdirectedRequest:
		return grpcUnavailable
	}
	if failure == FailureNoBackend || failure == FailureRoute {
		return grpcUnavailable
	}
	return grpcInternal
}

const mediaGRPC = "application/grpc"

// RefuseGRPC tells a client of gRPC why it is refused. gRPC has its own status, in the head of a response with status 200 and without a
// body. The access log and the metrics have the status that others get.
func (e *Exchange) RefuseGRPC(status int) {
	code := grpcStatus(status, e.Answer.Failure)
	if code == grpcUnavailable && e.pastTimeout() {
		code = grpcDeadlineExceeded // a backend resets a stream whose time is over
	}
	header := e.w.Header()
	header["Grpc-Status"], header["Grpc-Message"] = []string{strconv.Itoa(code)}, []string{grpcMessage(e.Answer.Failure)}
	e.AnswerWith(http.StatusOK, mediaGRPC, nil)
	e.Answer.Status = status
}

// grpcUnits are the units of the field grpc-timeout.
var grpcUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

// maxGRPCTimeout is how long the field grpc-timeout may be: eight digits and a unit.
const maxGRPCTimeout = 9

// pastTimeout reports whether the time that the client gives the call is over.
func (e *Exchange) pastTimeout() bool {
	field := e.r.Header.Get("Grpc-Timeout")
	if len(field) < 2 || len(field) > maxGRPCTimeout {
		return false
	}
	count, err := strconv.ParseUint(field[:len(field)-1], 10, 32)
	unit, known := grpcUnits[field[len(field)-1]]
	return err == nil && known && e.Clock.Since(e.Start)/unit >= time.Duration(count)
}

// grpcMessage encodes a text as gRPC does: what is not printable ASCII, and "%", with "%".
func grpcMessage(text string) string {
	var encoded strings.Builder
	for i := range len(text) {
		if c := text[i]; c >= ' ' && c <= '~' && c != '%' {
			encoded.WriteByte(c)
			continue
		}
		const digits = "0123456789ABCDEF"
		encoded.Write([]byte{'%', digits[text[i]>>4], digits[text[i]&15]})
	}
	return encoded.String()
}

// HasToken reports whether a list in a field has a token.
func HasToken(list, token string) bool {
	for list != "" {
		var element string
		element, list, _ = strings.Cut(list, ",")
		if strings.EqualFold(strings.Trim(element, " \t"), token) {
			return true
		}
	}
	return false
}
