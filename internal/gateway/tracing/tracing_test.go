package tracing

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestSpansReachTheCollector(t *testing.T) {
	type request struct {
		path string
		body []byte
	}
	requests := make(chan request, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- request{r.URL.Path, body}
	}))
	defer collector.Close()
	for endpoint, path := range map[string]string{collector.URL: "/v1/traces", collector.URL + "/other/traces": "/other/traces"} {
		provider, err := New(t.Context(), Options{Endpoint: endpoint, SamplePercent: 100, Version: "1.2.3", Gateway: "edge", Namespace: "shop", Instance: "edge-0"})
		if err != nil {
			t.Fatal(err)
		}
		_, span := provider.Tracer("test").Start(t.Context(), "the-route")
		span.End()
		if err := provider.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := <-requests
		if got.path != path {
			t.Errorf("got path %s, want %s", got.path, path)
		}
		for _, part := range []string{"the-route", "slipway-gateway", "1.2.3", "edge", "shop", "edge-0"} {
			if !bytes.Contains(got.body, []byte(part)) {
				t.Errorf("%s is not in %q", part, got.body)
			}
		}
	}
}

// Who looks for the spans of a Gateway must not find those of an APIGateway of the same name.
func TestSpansNameTheKindOfTheirGateway(t *testing.T) {
	bodies := make(chan []byte, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- body
	}))
	defer collector.Close()
	for kind, want := range map[string]string{"APIGateway": "slipway.apigateway", "Gateway": "slipway.gateway"} {
		provider, err := New(t.Context(), Options{Endpoint: collector.URL, SamplePercent: 100, Kind: kind, Gateway: "edge"})
		if err != nil {
			t.Fatal(err)
		}
		_, span := provider.Tracer("test").Start(t.Context(), "the-route")
		span.End()
		if err := provider.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if body := <-bodies; !bytes.Contains(body, []byte(want+"\x12")) {
			t.Errorf("of kind %s there is no attribute %s in %q", kind, want, body)
		}
	}
}

func TestNothingIsTracedThatIsNotSampled(t *testing.T) {
	provider, err := New(t.Context(), Options{Endpoint: "http://127.0.0.1:1", SamplePercent: 0})
	if err != nil {
		t.Fatal(err)
	}
	_, span := provider.Tracer("test").Start(t.Context(), "the-route")
	if span.IsRecording() {
		t.Error("a request is traced at 0 percent")
	}
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnEndpointThatIsNoAddressIsAnError(t *testing.T) {
	if _, err := New(t.Context(), Options{Endpoint: "collector:4318"}); err == nil {
		t.Error("no error for an endpoint without scheme")
	}
}
