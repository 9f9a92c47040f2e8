package proxy

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"
)

// While a window is open, nothing behind the route is asked, and clients are told when to come again.
func TestARouteIsClosedWhileAWindowIsOpen(t *testing.T) {
	const routes = `
- {path: /shop, backendService: {name: app, port: 80}, maintenance: {windows: [{schedule: "0 2 * * *", duration: 2h}], body: "<p>back soon", contentType: text/html}}
- {path: /plain, backendService: {name: app, port: 80}, maintenance: {windows: [{schedule: "0 2 * * *", duration: 2h}]}}
- {path: /old, redirect: {path: /shop}, maintenance: {}}
- {path: /open, backendService: {name: app, port: 80}}
`
	// Deadlines of connections are by this clock, so it must not be behind.
	clock := clocktesting.NewFakePassiveClock(time.Now().UTC().AddDate(0, 0, 2).Truncate(24 * time.Hour).Add(2*time.Hour - time.Second))
	backend, requests := recording(t)
	registry := prometheus.NewRegistry()
	g := start(t, Options{Clock: clock, Metrics: registry}, routes, backend)
	ask := func(path string) string {
		t.Helper()
		response, body := g.get(path)
		if response.StatusCode == http.StatusOK {
			<-requests
			return "200"
		}
		return status(response) + " " + response.Header.Get("Retry-After") + " " + response.Header.Get("Content-Type") + " " + body
	}
	want(t, "before", ask("/shop"), "200")
	clock.SetTime(clock.Now().Add(time.Second))
	want(t, "with a body", ask("/shop"), "503 7200 text/html <p>back soon")
	want(t, "without one", ask("/plain"), "503 7200 text/plain; charset=utf-8 Service Unavailable\n")
	want(t, "until it is taken away", ask("/old"), "503  text/plain; charset=utf-8 Service Unavailable\n")
	want(t, "another route", ask("/open"), "200")
	clock.SetTime(clock.Now().Add(2*time.Hour - 500*time.Millisecond))
	want(t, "at the end", ask("/plain"), "503 1 text/plain; charset=utf-8 Service Unavailable\n")
	clock.SetTime(clock.Now().Add(500 * time.Millisecond))
	want(t, "after", ask("/shop"), "200")
	clock.SetTime(clock.Now().Add(-time.Hour))
	want(t, "when the clock is set back", ask("/plain"), "503 3600 text/plain; charset=utf-8 Service Unavailable\n")
	none(t, "the backend", requests)
	for labels, count := range map[string]float64{"/plain maintenance": 3, "/plain 5xx": 0, "/old maintenance": 1, "/shop maintenance": 1, "/shop 2xx": 2} {
		eventually(t, "counted as "+labels, func() bool { return series(t, registry)["slipway_gateway_requests_total "+labels] == count })
	}
}

// 9. Who is not let in learns nothing of it. A page of another origin can read it, and neither limits nor keys are asked before it.
func TestMaintenanceComesAfterAddressesAndBeforeLimitsAndAuth(t *testing.T) {
	g, requests := startOrdered(t, "maintenance: {}, clientAddresses: {deny: [127.0.0.1]}")
	want(t, "from elsewhere", g.statuses(http.MethodGet, nil), "403")
	none(t, "the backend", requests)
	g, requests = startOrdered(t, "maintenance: {}, rateLimit: {requests: 1, period: 1h}, "+ofKeys+", "+ofPages)
	want(t, "preflight", g.statuses(http.MethodOptions, preflight), "204")
	for range 3 {
		response, _ := g.get("/", "Origin", "https://page.example")
		want(t, "status", response.StatusCode, http.StatusServiceUnavailable)
		want(t, "who may read it", response.Header.Get("Access-Control-Allow-Origin"), "*")
	}
	none(t, "the backend", requests)
}

// A path that a backend could read as that of a closed route does not get around it.
func TestNoReadingGetsAroundMaintenance(t *testing.T) {
	backend, requests := recording(t)
	g := start(t, Options{}, `
- {path: /open, backendService: {name: app, port: 80}}
- {path: /shop, backendService: {name: app, port: 80}, maintenance: {}}
`, backend)
	response, _ := g.get("/open/..%2fshop")
	want(t, "status", response.StatusCode, http.StatusBadRequest)
	none(t, "the backend", requests)
}

// panickyWriter has a defect: it panics when an answer begins.
type panickyWriter struct{ http.ResponseWriter }

func (panickyWriter) WriteHeader(int) { panic("a defect") }

// What is planned pages nobody. A panic meanwhile was not planned.
func TestAPanicWhileARouteIsClosedIsAnError(t *testing.T) {
	backend, _ := recording(t)
	registry := prometheus.NewPedanticRegistry()
	report, doing := reported()
	const closed = `[{name: a, backendService: {name: app, port: 80}, maintenance: {}}]`
	g := start(t, Options{Metrics: registry, Panics: report}, closed, backend)
	response, _ := g.get("/")
	want(t, "while it is closed", response.StatusCode, 503)
	func() {
		defer func() { _ = recover() }() // net/http ends the request
		g.handler.ServeHTTP(panickyWriter{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/", nil))
	}()
	want(t, "told", <-doing, "serve a request")
	counted := series(t, registry)
	want(t, "planned answers", counted["slipway_gateway_requests_total a maintenance"], 1.0)
	want(t, "errors", counted["slipway_gateway_requests_total a 5xx"], 1.0)
}
