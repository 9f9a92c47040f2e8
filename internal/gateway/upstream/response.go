package upstream

import (
	"net"
	"strings"
)

// Response is the answer to a request. It must be closed, after which nothing of it
// may be used: the next response on the connection takes its place.
type Response struct {
	// Status is the status code, 101 or from 200.
	Status int
	// Fields are the end-to-end fields, Content-Length among them.
	Fields []Field
	// ContentLength is what Content-Length says, -1 if it is missing. A response to HEAD
	// and a 304 have one without a body.
	ContentLength int64
	// Upgrade is the protocol that a response 101 changes to.
	Upgrade string
	// Stream is set for a response that may be silent for as long as it likes: the endpoint
	// says that it is of type text/event-stream or application/grpc.
	Stream bool
	// Endpoint is the address that answered.
	Endpoint string

	stream   stream
	endpoint *endpoint
	replay   *replayBuffer
	gate     *gate // that the request has entered, nil for none
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

// Read reads the body. io.EOF means that it was whole.
func (r *Response) Read(p []byte) (int, error) { return r.stream.read(p) }

// Buffered reports whether Read returns without waiting for the endpoint. Before it
// waits, whoever passes the body on flushes what came.
func (r *Response) Buffered() bool { return r.stream.buffered() }

// Trailers returns the trailer fields, once Read has returned io.EOF.
func (r *Response) Trailers() []Field { return r.stream.trailers() }

// Tunnel returns the connection after a response 101. Closing the response closes it.
func (r *Response) Tunnel() net.Conn { return r.stream.tunnel() }

// Close ends the exchange. The connection is kept if both messages went over it whole.
func (r *Response) Close() {
	endpoint, replay, gate, pass := r.endpoint, r.replay, r.gate, r.pass // before the connection has another response
	r.stream.close()
	endpoint.leave()
	if gate != nil {
		gate.leave(pass)
	}
	replay.release()
}

// tunnel is a connection of which some bytes have been read already.
type tunnel struct {
	net.Conn

	in *buffer
}

// Read returns what came with the head of the response first.
func (t *tunnel) Read(p []byte) (int, error) { return t.in.Read(p) }

// CloseWrite ends the direction to the endpoint.
func (t *tunnel) CloseWrite() error {
	if half, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return t.Close()
}
