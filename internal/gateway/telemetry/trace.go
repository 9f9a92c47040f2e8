package telemetry

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// traceFields reads and writes the fields that carry a trace between servers (W3C Trace
// Context).
var traceFields = propagation.TraceContext{}

// StartSpan begins the span of a request. If the client sent a trace in the head of the request, the span is a child
// of it.
func StartSpan(ctx context.Context, tracer trace.Tracer, header http.Header, start time.Time) trace.Span {
	ctx = traceFields.Extract(ctx, propagation.HeaderCarrier(header))
	_, span := tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(start))
	return span
}

// EndSpan records the result of a request. The span has no query, because a query may
// hold keys.
func EndSpan(span trace.Span, of *Line, now time.Time) {
	defer span.End(trace.WithTimestamp(now))
	if !span.IsRecording() {
		return
	}
	name := noRoute
	if of.Route != "" {
		name = of.Route
	}
	span.SetName(name)
	span.SetAttributes(
		attribute.String("slipway.route", name),
		attribute.String("http.request.method", of.Method),
		attribute.String("server.address", of.Host),
		attribute.String("url.path", of.Path),
		attribute.String("client.address", of.Client),
		attribute.Int("http.response.status_code", of.Status),
	)
	if of.Endpoint != "" {
		span.SetAttributes(attribute.String("slipway.endpoint", of.Endpoint))
	}
	if of.Failure != "" {
		span.SetAttributes(attribute.String("error.type", of.Failure))
	}
	if of.Status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, of.Failure)
	}
}

// IsTraceField reports whether a field carries a trace. name is in canonical form.
func IsTraceField(name string) bool { return name == "Traceparent" || name == "Tracestate" }

// AddTrace adds the fields that make the backend's span a child of this one.
func AddTrace(ctx context.Context, span trace.Span, fields *[]upstream.Field) {
	traceFields.Inject(trace.ContextWithSpan(ctx, span), (*traceCarrier)(fields))
}

// traceCarrier adds trace fields to the request for the backend.
type traceCarrier []upstream.Field

var _ propagation.TextMapCarrier = (*traceCarrier)(nil)

// Set adds a field.
func (c *traceCarrier) Set(key, value string) {
	*c = append(*c, upstream.Field{Name: http.CanonicalHeaderKey(key), Value: value})
}

// Get and Keys are needed by the interface and never called.
func (c *traceCarrier) Get(string) string { return "" }

// Keys returns none.
func (c *traceCarrier) Keys() []string { return nil }
