package table

import (
	"fmt"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// These are the defaults of a health check.
const (
	defaultCheckPeriod  = 10
	defaultCheckTimeout = 1
	defaultHealthy      = 1
	defaultUnhealthy    = 3
)

// healthCheck sets the health check of a backend. An invalid check is ignored, because its
// results could keep requests away from healthy endpoints.
func (c *compiler) healthCheck(index int) {
	spec := &c.in.HealthChecks[index]
	id := backendID(string(spec.Name), spec.Port)
	report := func(reason, message string) {
		c.problems = append(c.problems, Problem{Index: -1, List: "healthChecks", Route: id, Reason: reason, Message: message})
	}
	if field, unknown := c.in.UnknownChecks[index]; unknown {
		report(slipwayv1alpha1.ReasonImageIncompatible, fmt.Sprintf("%s: this version of the gateway does not know the field", field))
		return
	}
	check, wrong := newHealthCheck(spec)
	if wrong != "" {
		report(slipwayv1alpha1.ReasonInvalid, wrong)
		return
	}
	b := c.backends[id]
	if b == nil {
		return // no route names it
	}
	if b.HealthCheck != nil {
		report(slipwayv1alpha1.ReasonInvalid, "there is an earlier health check of this port of the Service")
		return
	}
	b.HealthCheck = check
}

// newHealthCheck returns a check, or what is wrong with it. The API server would have
// refused an invalid one.
func newHealthCheck(spec *slipwayv1alpha1.BackendHealthCheck) (check *HealthCheck, wrong string) {
	seconds := func(in *int32, fallback int32) time.Duration { return time.Duration(value(in, fallback)) * time.Second }
	check = &HealthCheck{
		Path:      orDefault(string(spec.Path), "/"),
		Host:      string(spec.Host),
		Period:    seconds(spec.PeriodSeconds, defaultCheckPeriod),
		Timeout:   seconds(spec.TimeoutSeconds, defaultCheckTimeout),
		Healthy:   int(value(spec.HealthyThreshold, defaultHealthy)),
		Unhealthy: int(value(spec.UnhealthyThreshold, defaultUnhealthy)),
	}
	if _, err := parseSpecPath(check.Path); err != nil {
		return nil, fmt.Sprintf("path: %q cannot be a path: %v", check.Path, err)
	}
	if check.Host != "" && !isHostName(check.Host) {
		return nil, fmt.Sprintf("host: %q is not a lower case DNS name", check.Host)
	}
	if check.Period <= 0 || check.Timeout <= 0 || check.Healthy < 1 || check.Unhealthy < 1 {
		return nil, "periodSeconds, timeoutSeconds, healthyThreshold and unhealthyThreshold must be at least 1"
	}
	return check, ""
}
