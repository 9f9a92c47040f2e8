package proxy

import (
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent  = "00-" + traceID + "-00f067aa0ba902b7-01"
	unasked = "00-" + traceID + "-00f067aa0ba902b7-00"
)

// tracing returns options with a tracer. For requests whose client has not decided about
// sampling, it traces all or none. The recorder holds the spans.
func tracing(t *testing.T, all bool) (Options, *tracetest.SpanRecorder) {
	t.Helper()
	root := sdktrace.NeverSample()
	if all {
		root = sdktrace.AlwaysSample()
	}
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(sdktrace.ParentBased(root)))
	t.Cleanup(func() { _ = provider.Shutdown(t.Context()) })
	return Options{Tracer: provider.Tracer("test")}, spans
}

func TestARequestIsASpanBetweenItsClientsAndItsBackends(t *testing.T) {
	backend, requests := recording(t)
	options, spans := tracing(t, false)
	g := start(t, options, `[{name: app, backendService: {name: app, port: 80}}]`, backend)
	g.get("/a%20b?api_key=CANARY", "traceparent", parent, "tracestate", "vendor=1", "Baggage", "x=1")
	got := <-requests
	eventually(t, "the span ends", func() bool { return len(spans.Ended()) == 1 })
	span := spans.Ended()[0]
	want(t, "trace", span.SpanContext().TraceID().String(), traceID)
	want(t, "parent", span.Parent().SpanID().String(), "00f067aa0ba902b7")
	want(t, "name", span.Name(), "app")
	want(t, "traceparent to the backend", join(got.Header["Traceparent"]), "00-"+traceID+"-"+span.SpanContext().SpanID().String()+"-01")
	want(t, "tracestate to the backend", join(got.Header["Tracestate"]), "vendor=1")
	want(t, "baggage to the backend", join(got.Header["Baggage"]), "x=1")
	attributes := fmt.Sprint(span.Attributes())
	for _, part := range []string{"GET", "/a%20b", "200", backend} {
		if !strings.Contains(attributes, part) {
			t.Errorf("%s is not in %s", part, attributes)
		}
	}
	if strings.Contains(attributes, "CANARY") {
		t.Errorf("a key is in %s", attributes)
	}
}

func TestTheClientDecidesAndOtherwiseTheSampler(t *testing.T) {
	backend, requests := recording(t)
	for _, test := range []struct {
		all    bool
		fields []string
		traced bool
	}{
		{all: true, traced: true},
		{all: false, traced: false},
		{all: false, fields: []string{"Traceparent", parent}, traced: true},
		{all: true, fields: []string{"Traceparent", unasked}, traced: false},
		{all: true, fields: []string{"Traceparent", "nonsense"}, traced: true},
	} {
		options, spans := tracing(t, test.all)
		g := start(t, options, toApp, backend)
		g.get("/", test.fields...)
		got := (<-requests).Header["Traceparent"]
		if len(got) != 1 || strings.HasSuffix(got[0], "-01") != test.traced || got[0] == parent || got[0] == unasked {
			t.Errorf("%+v: the backend got traceparent %q", test, got)
		}
		if test.traced {
			eventually(t, "the span ends", func() bool { return len(spans.Ended()) == 1 })
		}
	}
}

func TestASpanTellsWhatWentWrong(t *testing.T) {
	options, spans := tracing(t, true)
	g := start(t, options, `[{name: none, path: /none, backendService: {name: none, port: 80}}]`)
	g.get("/none")
	g.get("/elsewhere")
	eventually(t, "two spans end", func() bool { return len(spans.Ended()) == 2 })
	failed, unknown := spans.Ended()[0], spans.Ended()[1]
	want(t, "status", failed.Status().Code, codes.Error)
	if text := fmt.Sprint(failed.Attributes()); !strings.Contains(text, "503") || !strings.Contains(text, failed.Status().Description) {
		t.Errorf("got %s", text)
	}
	want(t, "name where no route matches", unknown.Name(), "-")
	want(t, "status where no route matches", unknown.Status().Code, codes.Unset)
}

func TestWithoutATracerTheClientsTraceGoesOn(t *testing.T) {
	backend, requests := recording(t)
	g := start(t, Options{}, toApp, backend)
	g.get("/", "Traceparent", parent)
	want(t, "traceparent", join((<-requests).Header["Traceparent"]), parent)
}
