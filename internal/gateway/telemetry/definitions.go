package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/metric"
)

// Definitions describes the metrics. The routes of the table bound their labels. Nothing
// that a client sends becomes a label.
func Definitions() []metric.Definition {
	return []metric.Definition{
		{Name: "slipway_gateway_requests_total", Type: metric.Counter, Labels: []string{"route", "status"}, Help: "Requests answered, by route and class of status. The route is - if none matched, and the status maintenance while the route is closed."},
		{Name: "slipway_gateway_request_duration_seconds", Type: metric.Histogram, Labels: []string{"route"}, Help: "Time from the arrival of a request to the end of its response, in seconds."},
		{Name: "slipway_gateway_upstream_errors_total", Type: metric.Counter, Labels: []string{"route", "kind"}, Help: "Requests that got no response from their backend, by route and kind of error."},
		{Name: "slipway_gateway_health_checks_total", Type: metric.Counter, Labels: []string{"service", "port", "result"}, Help: "Health checks of the endpoints of a backend, by Service, port and result: ok or error."},
		{Name: "slipway_gateway_retries_total", Type: metric.Counter, Labels: []string{"route"}, Help: "Times that a request was sent to its backend again, by route."},
		{Name: "slipway_gateway_retry_budget_exhausted_total", Type: metric.Counter, Labels: []string{"route"}, Help: "Requests that were not sent again because their Service had used up its retries, by route."},
		{Name: "slipway_gateway_jwks_fetches_total", Type: metric.Counter, Labels: []string{"result"}, Help: "Fetches of the public keys (JWKS) that tokens are checked with, and of what OpenID Connect providers publish, by result: ok or error."},
		{Name: "slipway_gateway_password_checks_total", Type: metric.Counter, Labels: []string{"result"}, Help: "Password checks of basic authentication, by result: right, wrong, client_busy (429: its address has too many waiting), busy (503: the queue is full, or the wait was too long), timeout, canceled."},
		{Name: "slipway_gateway_access_log_lines_dropped_total", Type: metric.Counter, Help: "Lines of the access log that were dropped because the output did not take them."},
		{Name: "slipway_gateway_connections", Type: metric.Gauge, Help: "Connections of clients that are open."},
		{Name: "slipway_gateway_connections_refused_total", Type: metric.Counter, Labels: []string{"limit"}, Help: "Connections of clients that were closed at once, by the limit: max, max_per_client, or proxy_protocol for those without the header that they must begin with."},
		{Name: "slipway_gateway_streams_total", Type: metric.Counter, Labels: []string{"route", "result"}, Help: "Connections whose bytes were forwarded (TLS, TCP) and sessions of datagrams (UDP) that have ended, by route and result: ok, or the failure in the access log. The route is - if none matched."},
		{Name: "slipway_gateway_stream_bytes_total", Type: metric.Counter, Labels: []string{"route", "direction"}, Help: "Bytes of these connections and sessions, by route and direction: received from clients, or sent to them. They are counted at the end."},
		{Name: "slipway_gateway_datagram_sessions", Type: metric.Gauge, Help: "Sessions of datagrams that are open."},
		{Name: "slipway_gateway_datagrams_dropped_total", Type: metric.Counter, Labels: []string{"reason"}, Help: "Datagrams that were thrown away, by reason: max and max_per_client for the limits of clients, and otherwise the failure in the words of the access log."},
		{Name: "slipway_gateway_external_auth_total", Type: metric.Counter, Labels: []string{"route", "result"}, Help: "Questions to Services that decide who comes in (auth.external), by route and result: allowed, refused, let_in (onFailure: LetIn, without an answer that counts), error (503 without such an answer, or a request that nobody can be asked about), canceled."},
		{Name: "slipway_gateway_external_auth_duration_seconds", Type: metric.Histogram, Labels: []string{"route"}, Help: "Time that such a question took, in seconds."},
		{Name: "slipway_gateway_compression_bytes_total", Type: metric.Counter, Labels: []string{"route", "direction"}, Help: "Bytes of the bodies of responses that were compressed, by route and direction: in for what the backend sent, out for what the client got. They are counted at the end."},
		{Name: "slipway_gateway_compression_busy_total", Type: metric.Counter, Help: "Responses that were sent uncompressed because too many others were being compressed, or too many of their client or route."},
		{Name: "slipway_gateway_compression_encoders", Type: metric.Gauge, Help: "Responses that are being compressed, at most 64. Each has an encoder until it ends."},
		{Name: "slipway_gateway_oidc_logins_total", Type: metric.Counter, Labels: []string{"result"}, Help: "Log-ins at OpenID Connect providers, by result: begun (sent to the provider), and of those that came back ok, state (not begun by this browser, or too long ago), refused (by the provider), token (the ID token is not valid), client (the provider does not take the client or its secret), unavailable (the provider gave no answer that counts), busy (too many others were under way), too_large (for cookies)."},
		{Name: "slipway_gateway_oidc_refreshes_total", Type: metric.Counter, Labels: []string{"result"}, Help: "Requests to OpenID Connect providers to renew a session, by result, in the words of the log-ins."},
		{Name: "slipway_gateway_cache_requests_total", Type: metric.Counter, Labels: []string{"route", "result"}, Help: "Requests of routes with a cache, by route and result: hit (answered by the cache), miss, stale (there was one, and the backend was asked for a newer one, or to confirm it), bypass (never answered by the cache), absent (the client wanted a stored response only, and there was none)."},
		{Name: "slipway_gateway_cache_bytes", Type: metric.Gauge, Help: "Bytes of responses that are stored, being stored or being given, with what the cache needs for itself."},
		{Name: "slipway_gateway_cache_evictions_total", Type: metric.Counter, Help: "Stored responses that were removed to make room for others."},
	}
}

// defined is what Definitions has of a metric. name is the part after slipway_gateway_.
func defined(name string) metric.Definition {
	return metric.Named(Definitions(), "slipway_gateway_"+name)
}

// NewCounter returns a counter of Definitions. name is the part after slipway_gateway_.
func NewCounter(name string) *prometheus.CounterVec {
	definition := defined(name)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: definition.Name, Help: definition.Help}, definition.Labels)
}

// NewCounterFunc returns a counter of Definitions without labels, whose value is asked for.
func NewCounterFunc(name string, value func() float64) prometheus.CounterFunc {
	definition := defined(name)
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: definition.Name, Help: definition.Help}, value)
}

// NewHistogram returns a histogram of Definitions. name is the part after slipway_gateway_.
func NewHistogram(name string, buckets []float64) *prometheus.HistogramVec {
	definition := defined(name)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: definition.Name, Help: definition.Help, Buckets: buckets}, definition.Labels)
}

// NewGauge returns a gauge of Definitions without labels, whose value is asked for.
func NewGauge(name string, value func() float64) prometheus.GaugeFunc {
	definition := defined(name)
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: definition.Name, Help: definition.Help}, value)
}

// Register registers collectors. Nil: nothing is exported.
func Register(registerer prometheus.Registerer, collectors ...prometheus.Collector) {
	if registerer != nil {
		registerer.MustRegister(collectors...)
	}
}
