package serve

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/oidc"
	"github.com/slipway-dev/slipway/internal/gateway/telemetry"
)

// metrics count how clients prove who they are.
type metrics struct {
	fetches   *prometheus.CounterVec
	passwords [len(verdicts)]prometheus.Counter
	// logins and renewals are indexed by oidc.Kind. begun are log-ins that were begun.
	logins, renewals [oidc.Kinds]prometheus.Counter
	begun            prometheus.Counter
	external         *externalMetrics
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{fetches: telemetry.NewCounter("jwks_fetches_total"), external: newExternalMetrics(registerer)}
	for _, result := range []string{telemetry.ResultOK, telemetry.ResultError} {
		m.fetches.WithLabelValues(result)
	}
	passwords := telemetry.NewCounter("password_checks_total")
	for verdict, name := range verdicts {
		m.passwords[verdict] = passwords.WithLabelValues(name)
	}
	logins, renewals := telemetry.NewCounter("oidc_logins_total"), telemetry.NewCounter("oidc_refreshes_total")
	m.begun = logins.WithLabelValues("begun")
	for kind := range oidc.Kinds {
		m.logins[kind], m.renewals[kind] = logins.WithLabelValues(kind.String()), renewals.WithLabelValues(kind.String())
	}
	telemetry.Register(registerer, m.fetches, passwords, logins, renewals)
	return m
}

// fetched counts a fetch of public keys.
func (m *metrics) fetched(err error) {
	result := telemetry.ResultOK
	if err != nil {
		result = telemetry.ResultError
	}
	m.fetches.WithLabelValues(result).Inc()
}

// renewed counts a request to a provider to renew a session.
func (m *metrics) renewed(kind oidc.Kind) { m.renewals[kind].Inc() }
