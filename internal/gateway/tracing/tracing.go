// Package tracing sends spans to an OpenTelemetry collector.
package tracing

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// Options configures where spans are sent.
type Options struct {
	// Endpoint is the URL of the collector for OTLP over HTTP, such as
	// http://collector:4318. Without a path, the path is /v1/traces.
	Endpoint string
	// SamplePercent is the percentage of requests that are traced, from 0 to 100. It does
	// not hold for requests whose client has decided about sampling.
	SamplePercent float64
	// Version is the version of the program. Kind, Gateway, Namespace and Instance identify it.
	Version string
	// Kind is the kind of Gateway: APIGateway or Gateway. In small letters it is part of the name of the attribute.
	Kind      string
	Gateway   string
	Namespace string
	Instance  string
}

// New returns a provider of tracers. Its Shutdown sends the spans that are left. If the
// collector is not reachable, spans are lost, but no request waits.
func New(ctx context.Context, options Options) (*trace.TracerProvider, error) {
	endpoint, err := url.Parse(options.Endpoint)
	if err != nil || endpoint.Host == "" || (endpoint.Scheme != "http" && endpoint.Scheme != "https") {
		return nil, fmt.Errorf("the collector of traces: %q is not an http or https address", options.Endpoint)
	}
	if endpoint.Path == "" || endpoint.Path == "/" {
		endpoint.Path = "/v1/traces"
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint.String()))
	if err != nil {
		return nil, fmt.Errorf("reach the collector of traces: %w", err)
	}
	return trace.NewTracerProvider(
		trace.WithBatcher(exporter),
		trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(options.SamplePercent/100))),
		trace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "slipway-gateway"),
			attribute.String("service.version", options.Version),
			attribute.String("service.namespace", options.Namespace),
			attribute.String("service.instance.id", options.Instance),
			attribute.String("slipway."+strings.ToLower(options.Kind), options.Gateway),
		)),
	), nil
}
