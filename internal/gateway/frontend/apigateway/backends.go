package apigateway

import (
	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// backendSettings are those of a GatewayPolicy. Whoever inherits them names the group.
func backendSettings(spec *slipwayv1alpha1.BackendSettings) *model.BackendSettings {
	made := &model.BackendSettings{Group: "policy", Limits: limitsOf(&slipwayv1alpha1.BackendPolicy{
		MaxConnections: spec.MaxConnections, MaxPendingRequests: spec.MaxPendingRequests, MaxRequests: spec.MaxRequests,
	})}
	if in := spec.HealthCheck; in != nil {
		made.HealthCheck = newHealthCheck(&slipwayv1alpha1.BackendHealthCheck{
			Path: in.Path, Host: in.Host, PeriodSeconds: in.PeriodSeconds, TimeoutSeconds: in.TimeoutSeconds,
			HealthyThreshold: in.HealthyThreshold, UnhealthyThreshold: in.UnhealthyThreshold,
		})
	}
	return made
}
