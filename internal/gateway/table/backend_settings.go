package table

import "github.com/slipway-dev/slipway/internal/gateway/model"

// replace puts the settings in the place of what holds for all rules. Protocol and TLS stay: they belong to the Service.
func replace(own *model.BackendSettings, in model.Settings, transport model.Transport) model.Settings {
	if own == nil {
		return in
	}
	in.Limits, in.HealthCheck = &own.Limits, own.HealthCheck
	if transport != model.TransportHTTP {
		in.HealthCheck = nil
	}
	return in
}

// groupOf is the name of the group. Empty: there are no settings.
func groupOf(own *model.BackendSettings) string {
	if own == nil {
		return ""
	}
	return own.Group
}
