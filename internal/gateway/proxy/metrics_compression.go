package proxy

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// watchEncoders registers the number of encoders in use.
func (m *metrics) watchEncoders(registerer prometheus.Registerer, inUse func() int) {
	if registerer == nil {
		return
	}
	registerer.MustRegister(newGauge("compression_encoders", func() float64 { return float64(inUse()) }))
}

// compressed counts the bytes of a body that was compressed.
func (m *metrics) compressed(s *state, route *table.Route, in, out int64) {
	r := m.of(s, route)
	r.compressedIn.Add(float64(in))
	r.compressedOut.Add(float64(out))
}
