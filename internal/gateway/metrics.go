package gateway

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/peers"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/metric"
)

// StateMetrics describes the metrics of the served configuration. Their values are computed
// at each scrape, so that nothing must be kept up to date.
func StateMetrics() []metric.Definition {
	return []metric.Definition{
		{Name: "slipway_gateway_generation", Type: metric.Gauge, Help: "Generation of the spec that is served; 0 before the first. A gateway that runs from a file counts the contents of the file."},
		{Name: "slipway_gateway_configuration_rejected", Type: metric.Gauge, Help: "1 while a newer generation cannot be served at all and the last good one is served instead, otherwise 0."},
		{Name: "slipway_gateway_problems", Type: metric.Gauge, Labels: []string{"reason"}, Help: "Routes, certificates and health checks that are not served as written, by reason. Without a problem there is no series."},
		{Name: "slipway_gateway_view_current", Type: metric.Gauge, Help: "1 while the gateway receives every change of the cluster, 0 while what it serves may be stale. Always 1 for a gateway that runs from a file."},
		{Name: "slipway_gateway_endpoints", Type: metric.Gauge, Labels: []string{"service", "port", "state"}, Help: "Endpoints of a backend, by Service, port and state: available, ejected (requests to it failed) or unhealthy (its health checks fail)."},
		{Name: "slipway_gateway_certificate_expiry_timestamp_seconds", Type: metric.Gauge, Labels: []string{"secret"}, Help: "When a certificate that is served expires, by the name of its Secret, in seconds since 1970."},
		{Name: "slipway_gateway_shared_limit_replicas", Type: metric.Gauge, Labels: []string{"state"}, Help: "Other replicas of the gateway with which rate limits of count Gateway are counted, by state: known, or reached in both directions. Without such a limit there is no series."},
		{Name: "slipway_gateway_shared_limit_requests_total", Type: metric.Counter, Labels: []string{"decision"}, Help: "Requests that rate limits of count Gateway have decided about: allowed or refused by the count of all replicas, or decided by this replica with its part of the limit because the replica that counts was not reached (unreached), did not answer in 20 ms (late), or had too much to answer (full)."},
		{Name: "slipway_gateway_shared_limit_lease_requests_total", Type: metric.Counter, Help: "Times that this replica has asked another one for tokens of a rate limit of count Gateway."},
		{Name: "slipway_gateway_shared_limit_rejected_connections_total", Type: metric.Counter, Help: "Connections to the port for other replicas that ended before both sides had proven that they are of the same gateway: those of others, and those of replicas that took longer than a second."},
		{Name: "slipway_gateway_panics_total", Type: metric.Counter, Help: "Panics that were caught, each a bug in the gateway: one request, connection or datagram has ended, or one attempt of a background job. The log has the stack. Panics of making a table are not among them (slipway_gateway_configuration_rejected). Should stay 0."},
	}
}

// states collects StateMetrics.
type states struct {
	handler      *proxy.Handler
	certificates *proxy.Certificates
	board        *document.Board
	shared       *peers.Shared
	panics       *panics.Log
	descriptions []*prometheus.Desc
}

func newStates(handler *proxy.Handler, certificates *proxy.Certificates, board *document.Board, shared *peers.Shared, panics *panics.Log) *states {
	s := &states{handler: handler, certificates: certificates, board: board, shared: shared, panics: panics}
	for _, d := range StateMetrics() {
		s.descriptions = append(s.descriptions, prometheus.NewDesc(d.Name, d.Help, d.Labels, nil))
	}
	return s
}

// Describe implements prometheus.Collector.
func (s *states) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range s.descriptions {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (s *states) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(definition int, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(s.descriptions[definition], prometheus.GaugeValue, value, labels...)
	}
	doc := s.board.Current()
	gauge(0, float64(doc.Generation))
	gauge(1, oneIf(doc.Rejected != nil))
	problems := map[string]int{}
	for _, problem := range doc.Problems {
		problems[problem.Reason]++
	}
	for reason, count := range problems {
		gauge(2, float64(count), reason)
	}
	gauge(3, oneIf(!doc.Stale()))
	for _, backend := range s.handler.BackendStates() {
		port := strconv.Itoa(int(backend.Port))
		gauge(4, float64(backend.Available), backend.Service, port, "available")
		gauge(4, float64(backend.Ejected), backend.Service, port, "ejected")
		gauge(4, float64(backend.Unhealthy), backend.Service, port, "unhealthy")
	}
	for secret, end := range s.certificates.Expiries() {
		gauge(5, float64(end.Unix()), secret)
	}
	metrics <- prometheus.MustNewConstMetric(s.descriptions[10], prometheus.CounterValue, float64(s.panics.Count()))
	s.collectShared(metrics)
}

// collectShared collects what is known of limits that replicas share, while there are some.
func (s *states) collectShared(metrics chan<- prometheus.Metric) {
	figures := s.shared.Figures()
	if !figures.Wanted {
		return
	}
	send := func(definition int, kind prometheus.ValueType, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(s.descriptions[definition], kind, value, labels...)
	}
	send(6, prometheus.GaugeValue, float64(figures.Known), "known")
	send(6, prometheus.GaugeValue, float64(figures.Reached), "reached")
	for decision, requests := range map[string]uint64{
		"allowed": figures.Granted, "refused": figures.Refused,
		"unreached": figures.Unreached, "late": figures.Late, "full": figures.Full,
	} {
		send(7, prometheus.CounterValue, float64(requests), decision)
	}
	send(8, prometheus.CounterValue, float64(figures.Asks))
	send(9, prometheus.CounterValue, float64(figures.RejectedConnections))
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
