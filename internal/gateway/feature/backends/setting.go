// Package backends has settings of the backends of some rules: how many requests they get at once, and how their health is checked. It
// is pure: package upstream holds to them.
package backends

import (
	"cmp"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Setting is that of backends.
var Setting = feature.Setting[*model.BackendSettings, *model.BackendSettings]{
	Name:        "backends",
	Asked:       func(in *slipwayv1alpha1.GatewayPolicySettings) bool { return in.Backends != nil },
	Read:        read,
	Compile:     compile,
	Covers:      feature.Nothing,
	Connections: true, // the limits
	IdleThere: func(in *slipwayv1alpha1.GatewayPolicySettings) string {
		if in.Backends.HealthCheck != nil {
			return "backends.healthCheck"
		}
		return ""
	},
}

// These are the defaults of a health check.
const (
	defaultCheckPeriod  = 10
	defaultCheckTimeout = 1
	defaultHealthy      = 1
	defaultUnhealthy    = 3
)

func read(in *slipwayv1alpha1.GatewayPolicySettings, _ feature.Source) (*model.BackendSettings, *model.Fault) {
	spec := in.Backends
	made := &model.BackendSettings{Group: "policy", Limits: Limits(spec.MaxConnections, spec.MaxPendingRequests, spec.MaxRequests)}
	if in := spec.HealthCheck; in != nil {
		made.HealthCheck = HealthCheck(&slipwayv1alpha1.BackendHealthCheck{
			Path: in.Path, Host: in.Host, PeriodSeconds: in.PeriodSeconds, TimeoutSeconds: in.TimeoutSeconds,
			HealthyThreshold: in.HealthyThreshold, UnhealthyThreshold: in.UnhealthyThreshold,
		})
	}
	return made, nil
}

// Limits are the limits of a backend, with the defaults for those that are not set.
func Limits(connections, pending, requests *int32) model.Limits {
	limits := model.DefaultLimits()
	limits.Connections = int(feature.Value(connections, int32(limits.Connections)))
	limits.Pending = int(feature.Value(pending, int32(limits.Pending)))
	limits.Requests = int(feature.Value(requests, int32(limits.Requests)))
	return limits
}

// HealthCheck is the health check that a spec asks for, with its defaults.
func HealthCheck(spec *slipwayv1alpha1.BackendHealthCheck) *model.HealthCheck {
	seconds := func(in *int32, fallback int32) time.Duration {
		return time.Duration(feature.Value(in, fallback)) * time.Second
	}
	return &model.HealthCheck{
		Path:      cmp.Or(string(spec.Path), "/"),
		Host:      string(spec.Host),
		Period:    seconds(spec.PeriodSeconds, defaultCheckPeriod),
		Timeout:   seconds(spec.TimeoutSeconds, defaultCheckTimeout),
		Healthy:   int(feature.Value(spec.HealthyThreshold, defaultHealthy)),
		Unhealthy: int(feature.Value(spec.UnhealthyThreshold, defaultUnhealthy)),
	}
}

// compile refuses settings that cannot hold.
func compile(own *model.BackendSettings, of feature.Rule) (*model.BackendSettings, *model.Fault) {
	if own.Group == "" {
		return nil, model.Invalid("backends: the group has no name")
	}
	if wrong := own.Limits.Wrong(); wrong != "" {
		return nil, model.Invalid("backends: %s", wrong)
	}
	if own.HealthCheck == nil {
		return own, nil
	}
	if wrong := of.Checks.HealthCheck(own.HealthCheck); wrong != "" {
		return nil, model.Invalid("backends.healthCheck: %s", wrong)
	}
	return own, nil
}
