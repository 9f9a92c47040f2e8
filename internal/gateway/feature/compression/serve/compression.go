// Package serve compresses responses.
//
//	compression.go  deciding about a response, and compressing it
//	metrics.go      bytes before and after
package serve

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/compress"
	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// Engine has the encoders of all routes.
type Engine struct {
	pool    *compress.Pool
	metrics *metrics
}

// New returns an engine whose metrics are registered.
func New(registerer prometheus.Registerer) *Engine {
	pool := compress.NewPool()
	return &Engine{pool: pool, metrics: newMetrics(registerer, pool.InUse)}
}

// InUse returns how many encoders are in use.
func (n *Engine) InUse() int { return n.pool.InUse() }

// Keep removes the metrics of all other routes.
func (n *Engine) Keep(routes map[string]bool) { n.metrics.keep(routes) }

// Step compresses responses of a route.
type Step struct {
	*compress.Policy

	engine *Engine
	bytes  *compressedBytes
}

// Of returns the step of a route.
func (n *Engine) Of(route string, policy *compress.Policy) Step {
	return Step{Policy: policy, engine: n, bytes: n.metrics.of(route)}
}

// encoding compresses the body of a response. encoder is nil if it stays as it is. received are the bytes that it has got.
type encoding struct {
	encoder  *compress.Encoder
	received int64
	to       exchange.BodyWriter
}

// Body decides whether the response is compressed, and changes its header. The
// route's own changes come before it, so that they are part of the decision.
func (s Step) Body(e *exchange.Exchange, response *upstream.Response, to exchange.BodyWriter) exchange.BodyWriter {
	header, z := e.Head(), exchange.SlotOf[encoding](e)
	asked := compress.Request{Method: e.Method(), Header: e.Header(), HTTP10: !e.ProtocolAtLeast(1, 1)}
	verdict := s.Decide(asked, response.Status, header, response.ContentLength)
	if verdict.Coding != compress.Identity && e.Method() != http.MethodHead {
		owner := compress.Owner{Client: e.Client.ShareOf, Route: e.Route}
		if z.encoder = s.engine.pool.Take(verdict.Coding, owner, to); z.encoder == nil {
			s.engine.metrics.busy.Inc()
			verdict = verdict.Without()
		}
	}
	verdict.Apply(header)
	if z.encoder == nil {
		return to
	}
	z.to, e.Facts.Encoded = to, true
	return z
}

// End gives the encoder back. One that has panicked is not used again.
func (s Step) End(e *exchange.Exchange, returned bool) {
	z := exchange.SlotOf[encoding](e)
	if z.encoder == nil {
		return
	}
	s.bytes.in.Add(float64(z.received))
	s.bytes.out.Add(float64(e.Answer.Sent))
	if returned {
		s.engine.pool.Give(z.encoder)
	} else {
		s.engine.pool.Drop(z.encoder)
	}
}

func (z *encoding) Write(p []byte) (int, error) {
	z.received += int64(len(p))
	return z.encoder.Write(p)
}

func (z *encoding) Flush() error {
	if err := z.encoder.Flush(); err != nil {
		return err
	}
	return z.to.Flush()
}

func (z *encoding) Close() error {
	if err := z.encoder.Close(); err != nil {
		return err
	}
	return z.to.Close()
}
