package proxy

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// traceFields reads and writes the fields that carry a trace between servers (W3C Trace
// Context).
var traceFields = propagation.TraceContext{}

// startSpan begins the span of the request. If the client sent a trace, the span is a child
// of it.
func (e *exchange) startSpan() {
	tracer := e.handler.options.Tracer
	if tracer == nil {
		return
	}
	ctx := traceFields.Extract(e.r.Context(), propagation.HeaderCarrier(e.r.Header))
	_, e.span = tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(e.start))
}

// endSpan records the result of the request. The span has no query, because a query may
// hold keys.
func (e *exchange) endSpan() {
	if e.span == nil {
		return
	}
	defer e.span.End(trace.WithTimestamp(e.handler.options.Clock.Now()))
	if !e.span.IsRecording() {
		return
	}
	name := noRoute
	if e.route != nil {
		name = e.route.Name
	}
	_, path, _ := splitTarget(e.r.RequestURI)
	e.span.SetName(name)
	e.span.SetAttributes(
		attribute.String("slipway.route", name),
		attribute.String("http.request.method", e.r.Method),
		attribute.String("server.address", e.r.Host),
		attribute.String("url.path", path),
		attribute.String("client.address", e.client.text),
		attribute.Int("http.response.status_code", e.answer.status),
	)
	if e.answer.endpoint != "" {
		e.span.SetAttributes(attribute.String("slipway.endpoint", e.answer.endpoint))
	}
	if e.answer.failure != "" {
		e.span.SetAttributes(attribute.String("error.type", e.answer.failure))
	}
	if e.answer.status >= http.StatusInternalServerError {
		e.span.SetStatus(codes.Error, e.answer.failure)
	}
}

// replacesTrace reports whether the gateway replaces a field of the client with its own.
func (e *exchange) replacesTrace(name string) bool {
	return e.span != nil && (name == "Traceparent" || name == "Tracestate")
}

// addTrace makes the backend's span a child of the gateway's.
func (e *exchange) addTrace() {
	if e.span != nil {
		traceFields.Inject(trace.ContextWithSpan(e.r.Context(), e.span), (*traceCarrier)(e))
	}
}

// traceCarrier adds trace fields to the request for the backend.
type traceCarrier exchange

var _ propagation.TextMapCarrier = (*traceCarrier)(nil)

// Set adds a field.
func (c *traceCarrier) Set(key, value string) {
	c.fields = append(c.fields, upstream.Field{Name: http.CanonicalHeaderKey(key), Value: value})
}

// Get and Keys are needed by the interface and never called.
func (c *traceCarrier) Get(string) string { return "" }

// Keys returns none.
func (c *traceCarrier) Keys() []string { return nil }
