package upstream

import (
	"net"
	"strings"
)

// Response is the answer to a request. It must be closed. After that nothing of it may be
// used, because the next response on the connection reuses its memory.
type Response struct {
	// Status is the status code: 101, or 200 and above.
	Status int
	// Fields are the end-to-end fields, including Content-Length.
	Fields []Field
	// ContentLength is the value of Content-Length, or -1 if it is missing. A response to
	// HEAD and a 304 may have one without a body.
	ContentLength int64
	// Upgrade is the protocol that a 101 response switches to.
	Upgrade string
	// Stream is set for a response that may be silent without a bound, because its type is
	// text/event-stream or application/grpc.
	Stream bool
	// UntilClose is set if nothing but the end of the connection tells where the body ends. One that was cut looks whole then.
	UntilClose bool
	// Endpoint is the address that answered. Empty: nobody was asked.
	Endpoint string

	stream   stream
	endpoint *endpoint
	replay   *replayBuffer
	gate     *gate // the gate that the request has entered, or nil
	pass     pass
}

// stream is the rest of an exchange, after the head of the response.
type stream interface {
	read(p []byte) (int, error)
	buffered() bool
	trailers() []Field
	tunnel() net.Conn
	close()
}

// isStream reports whether the fields of a response make it a stream.
func isStream(fields []Field) bool {
	for i := range fields {
		if !strings.EqualFold(fields[i].Name, "Content-Type") {
			continue
		}
		name, _, _ := strings.Cut(fields[i].Value, ";")
		name = strings.ToLower(strings.Trim(name, " \t"))
		return name == "text/event-stream" || name == "application/grpc" || strings.HasPrefix(name, "application/grpc+")
	}
	return false
}

// Read reads the body. io.EOF means that the body is complete.
func (r *Response) Read(p []byte) (int, error) { return r.stream.read(p) }

// Buffered reports whether Read returns without waiting for the endpoint. If it would wait,
// the caller should flush what it has read.
func (r *Response) Buffered() bool { return r.stream.buffered() }

// Trailers returns the trailer fields, once Read has returned io.EOF.
func (r *Response) Trailers() []Field { return r.stream.trailers() }

// Tunnel returns the connection after a 101 response. Closing the response closes it.
func (r *Response) Tunnel() net.Conn { return r.stream.tunnel() }

// Close ends the exchange. The connection is kept if both messages are complete.
func (r *Response) Close() {
	endpoint, replay, gate, pass := r.endpoint, r.replay, r.gate, r.pass // before the connection is used for another response
	// It is deferred for the case of a panic.
	defer func() {
		if endpoint != nil {
			endpoint.leave()
		}
		if gate != nil {
			gate.leave(pass)
		}
		replay.release()
	}()
	r.stream.close()
}

// tunnel is a connection from which some bytes were read already.
type tunnel struct {
	net.Conn

	in *buffer
}

// Read first returns the bytes that came with the head of the response.
func (t *tunnel) Read(p []byte) (int, error) { return t.in.Read(p) }

// CloseWrite closes the write side.
func (t *tunnel) CloseWrite() error {
	if half, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return t.Close()
}
