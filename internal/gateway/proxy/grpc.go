package proxy

import (
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"
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

// grpcDialect is what a client of gRPC speaks.
type grpcDialect uint8

const (
	notGRPC grpcDialect = iota
	overHTTP2
	inBody   // gRPC-Web
	inBase64 // gRPC-Web, as text
)

const (
	mediaGRPC  = "application/grpc"
	trailersIn = 0x80 // begins a part of a body with trailers
)

// dialect returns what the client speaks, by the content type of its request, which any client can claim. A call is a POST: whatever
// stores the answers to others, in front of the gateway, gets no 200 for a refusal.
func (e *exchange) dialect() grpcDialect {
	if e.r.Method != http.MethodPost {
		return notGRPC
	}
	media := e.r.Header.Get("Content-Type")
	if len(media) < len(mediaGRPC) || !strings.EqualFold(media[:len(mediaGRPC)], mediaGRPC) {
		return notGRPC
	}
	kind, _, _ := strings.Cut(media[len(mediaGRPC):], ";")
	kind, _, _ = strings.Cut(kind, "+")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "":
		if e.r.ProtoMajor == 2 {
			return overHTTP2
		}
	case "-web":
		return inBody
	case "-web-text":
		return inBase64
	}
	return notGRPC
}

// refuseGRPC tells a client of gRPC why it is refused. gRPC has its own status, in a response with status 200: in the head, without a
// body; gRPC-Web reads no trailers, so they are the body. The access log and the metrics have the status that others get.
func (e *exchange) refuseGRPC(dialect grpcDialect, status int) {
	code, message := strconv.Itoa(grpcStatus(status, e.failure)), grpcMessage(e.failure)
	contentType, body := mediaGRPC, []byte(nil)
	if dialect == overHTTP2 {
		header := e.w.Header()
		header["Grpc-Status"], header["Grpc-Message"] = []string{code}, []string{message}
	} else {
		trailers := "grpc-status: " + code + "\r\ngrpc-message: " + message + "\r\n"
		contentType = "application/grpc-web+proto"
		body = append(binary.BigEndian.AppendUint32([]byte{trailersIn}, uint32(len(trailers))), trailers...)
	}
	if dialect == inBase64 {
		contentType = "application/grpc-web-text+proto"
		body = base64.StdEncoding.AppendEncode(nil, body)
	}
	e.answer(http.StatusOK, contentType, body)
	e.status = status
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
