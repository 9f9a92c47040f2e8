package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/peers"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// values returns the metrics of a registry, by name and label values.
func values(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			found[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() // it is one of them
		}
	}
	return found
}

func certificateUntil(t *testing.T, secret string, end time.Time) proxy.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{secret}, NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return proxy.Certificate{Certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, Secret: secret}
}

func TestMetricsSayWhatIsServed(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	shared := peers.NewShared(peers.SharedOptions{Clock: clock.RealClock{}})
	handler, certificates, board := proxy.New(proxy.Options{}), new(proxy.Certificates), document.NewBoard(clock.RealClock{}, "1")
	caught := panics.NewLog(slog.New(slog.DiscardHandler), clock.RealClock{})
	registry.MustRegister(newStates(handler, certificates, board, shared, caught))
	want := func(when string, wanted map[string]float64) {
		t.Helper()
		if diff := cmp.Diff(wanted, values(t, registry)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", when, diff)
		}
	}
	want("before the first table", map[string]float64{
		"slipway_gateway_generation": 0, "slipway_gateway_configuration_rejected": 0, "slipway_gateway_view_current": 1,
		"slipway_gateway_panics_total": 0,
	})

	handler.Set(proxy.Config{Table: &table.Table{Backends: []*model.Backend{
		{ID: "app:80", Service: "app", Port: 80, Endpoints: []string{"a:1", "b:1"}},
		{ID: "none:80", Service: "none", Port: 80, Index: 1},
	}}})
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	one, other := certificateUntil(t, "one", end), certificateUntil(t, "other", end.Add(time.Hour))
	if err := certificates.Set([]proxy.Certificate{one, other, one}); err != nil {
		t.Fatal(err)
	}
	board.Publish(document.Document{
		Generation: 3, Rejected: &document.Rejected{Generation: 4}, View: &document.View{Since: end},
		Problems: []document.Problem{{Reason: "NoEndpoints"}, {Reason: "NoEndpoints", Route: 1}, {Reason: "InvalidRegex"}},
	})
	caught.Report("serve a request", "a defect", nil)
	want("served, with everything wrong", map[string]float64{
		"slipway_gateway_generation": 3, "slipway_gateway_configuration_rejected": 1, "slipway_gateway_view_current": 0, "slipway_gateway_panics_total": 1,
		"slipway_gateway_problems NoEndpoints": 2, "slipway_gateway_problems InvalidRegex": 1,
		"slipway_gateway_endpoints 80 app available": 2, "slipway_gateway_endpoints 80 app ejected": 0, "slipway_gateway_endpoints 80 app unhealthy": 0,
		"slipway_gateway_endpoints 80 none available": 0, "slipway_gateway_endpoints 80 none ejected": 0, "slipway_gateway_endpoints 80 none unhealthy": 0,
		"slipway_gateway_certificate_expiry_timestamp_seconds one":   float64(end.Unix()),
		"slipway_gateway_certificate_expiry_timestamp_seconds other": float64(end.Add(time.Hour).Unix()),
	})

	handler.Set(proxy.Config{Table: &table.Table{}})
	if err := certificates.Set(nil); err != nil {
		t.Fatal(err)
	}
	board.Publish(document.Document{Generation: 5, View: &document.View{Current: true}})
	want("well again", map[string]float64{
		"slipway_gateway_generation": 5, "slipway_gateway_configuration_rejected": 0, "slipway_gateway_view_current": 1,
		"slipway_gateway_panics_total": 1,
	})
}

// Without a limit that replicas share there is no series of it.
func TestMetricsSayHowLimitsAreShared(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	shared := peers.NewShared(peers.SharedOptions{Address: "127.0.0.1:0", Clock: clock.RealClock{}})
	registry.MustRegister(newStates(proxy.New(proxy.Options{}), new(proxy.Certificates), document.NewBoard(clock.RealClock{}, "1"), shared, panics.NewLog(slog.New(slog.DiscardHandler), clock.RealClock{})))
	number := func(name string) (series int, sum float64) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() != name {
				continue
			}
			for _, m := range family.GetMetric() {
				series, sum = series+1, sum+m.GetCounter().GetValue()
			}
		}
		return series, sum
	}
	if series, _ := number("slipway_gateway_shared_limit_requests_total"); series != 0 {
		t.Errorf("without a shared limit there are %d series", series)
	}
	shared.Set(t.Context(), peers.Settings{Wanted: true})
	shared.Take(t.Context(), &quota.Subject{Limit: quota.NewLimit(1, time.Second, 1)})
	if series, sum := number("slipway_gateway_shared_limit_requests_total"); series != 5 || sum != 1 {
		t.Errorf("there are %d series with %v requests, want 5 with 1", series, sum)
	}
}
