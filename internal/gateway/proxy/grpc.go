package proxy

import (
	"net/http"
	"slices"
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
	if failure == failureNoBackend || failure == failureRoute {
		return grpcUnavailable
	}
	return grpcInternal
}

const mediaGRPC = "application/grpc"

// speaksGRPC reports whether the client reads a status of gRPC: a POST over HTTP/2 with the content type of gRPC, and with "TE: trailers",
// which each client of gRPC sends. Any client can claim that, but what asks the gateway on behalf of others, such as a check of whether a
// request is let in, forwards neither HTTP/2 nor this field. So it never takes the 200 of a refusal for consent. gRPC-Web is answered as
// HTTP is: its clients read the status of HTTP.
func (e *exchange) speaksGRPC() bool {
	if e.r.Method != http.MethodPost || e.r.ProtoMajor != 2 || !slices.ContainsFunc(e.r.Header["Te"], func(v string) bool { return hasToken(v, "trailers") }) {
		return false
	}
	media := e.r.Header.Get("Content-Type")
	if len(media) < len(mediaGRPC) || !strings.EqualFold(media[:len(mediaGRPC)], mediaGRPC) {
		return false
	}
	kind, _, _ := strings.Cut(media[len(mediaGRPC):], ";")
	kind, _, _ = strings.Cut(kind, "+")
	return strings.TrimSpace(kind) == ""
}

// refuseGRPC tells a client of gRPC why it is refused. gRPC has its own status, in the head of a response with status 200 and without a
// body. The access log and the metrics have the status that others get.
func (e *exchange) refuseGRPC(status int) {
	code := grpcStatus(status, e.answer.failure)
	if code == grpcUnavailable && e.pastTimeout() {
		code = grpcDeadlineExceeded // a backend resets a stream whose time is over
	}
	header := e.w.Header()
	header["Grpc-Status"], header["Grpc-Message"] = []string{strconv.Itoa(code)}, []string{grpcMessage(e.answer.failure)}
	e.answerWith(http.StatusOK, mediaGRPC, nil)
	e.answer.status = status
}

// grpcUnits are the units of the field grpc-timeout.
var grpcUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

// maxGRPCTimeout is how long the field grpc-timeout may be: eight digits and a unit.
const maxGRPCTimeout = 9

// pastTimeout reports whether the time that the client gives the call is over.
func (e *exchange) pastTimeout() bool {
	field := e.r.Header.Get("Grpc-Timeout")
	if len(field) < 2 || len(field) > maxGRPCTimeout {
		return false
	}
	count, err := strconv.ParseUint(field[:len(field)-1], 10, 32)
	unit, known := grpcUnits[field[len(field)-1]]
	return err == nil && known && e.handler.options.Clock.Since(e.start)/unit >= time.Duration(count)
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
