package proxy

import (
	"net/http"

	"github.com/slipway-dev/slipway/internal/gateway/compress"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// compression compresses responses of a route.
type compression struct {
	*compress.Policy

	bytes *compressedBytes
}

// encoding compresses the body of a response. encoder is nil if it stays as it is. received are the bytes that it has got.
type encoding struct {
	encoder  *compress.Encoder
	received int64
	to       bodyWriter
}

// body decides whether the response is compressed, and changes its header. The
// route's own changes come before it, so that they are part of the decision.
func (c compression) body(e *exchange, response *upstream.Response, to bodyWriter) bodyWriter {
	header, s := e.w.Header(), slotOf[encoding](e)
	verdict := c.Decide(e.r, response.Status, header, response.ContentLength)
	if verdict.Coding != compress.Identity && e.r.Method != http.MethodHead {
		owner := compress.Owner{Client: e.client.shareOf, Route: e.route.Name}
		if s.encoder = e.handler.encoders.Take(verdict.Coding, owner, to); s.encoder == nil {
			e.handler.compressionMetrics.busy.Inc()
			verdict = verdict.Without()
		}
	}
	verdict.Apply(header)
	if s.encoder == nil {
		return to
	}
	s.to, e.facts.encoded = to, true
	return s
}

// end gives the encoder back. One that has panicked is not used again.
func (c compression) end(e *exchange, returned bool) {
	s := slotOf[encoding](e)
	if s.encoder == nil {
		return
	}
	c.bytes.in.Add(float64(s.received))
	c.bytes.out.Add(float64(e.answer.sent))
	if returned {
		e.handler.encoders.Give(s.encoder)
	} else {
		e.handler.encoders.Drop(s.encoder)
	}
}

func (s *encoding) Write(p []byte) (int, error) {
	s.received += int64(len(p))
	return s.encoder.Write(p)
}

func (s *encoding) Flush() error {
	if err := s.encoder.Flush(); err != nil {
		return err
	}
	return s.to.Flush()
}

func (s *encoding) Close() error {
	if err := s.encoder.Close(); err != nil {
		return err
	}
	return s.to.Close()
}
