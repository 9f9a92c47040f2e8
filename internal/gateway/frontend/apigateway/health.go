package apigateway

import (
	"fmt"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature/backends"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// healthCheck sets the health check of a backend. An invalid check is ignored, because its
// results could keep requests away from healthy endpoints.
func (c *compiler) healthCheck(index int) {
	spec := &c.in.HealthChecks[index]
	name := backendName(spec.Name, spec.Port)
	report := func(reason, message string) {
		c.checked[index] = model.Problem{Index: -1, List: "healthChecks", Route: name.String(), Reason: reason, Message: message}
	}
	if field, unknown := c.in.UnknownChecks[index]; unknown {
		report(slipwayv1alpha1.ReasonImageIncompatible, fmt.Sprintf("%s: this version of the gateway does not know the field", field))
		return
	}
	check := backends.HealthCheck(spec)
	if wrong := c.checks.HealthCheck(check); wrong != "" {
		report(slipwayv1alpha1.ReasonInvalid, wrong)
		return
	}
	settings := c.settings[name]
	if settings.HealthCheck != nil {
		c.repeated = append(c.repeated, index)
		return
	}
	settings.HealthCheck = check
	c.settings[name] = settings
}

// problemsOfChecks returns the problems of the health checks. A repeated one is a problem
// only if a route names the backend.
func (c *compiler) problemsOfChecks(compiled *table.Table) []model.Problem {
	named := map[string]bool{}
	for _, b := range compiled.Backends {
		named[b.ID] = true
	}
	for _, index := range c.repeated {
		spec := &c.in.HealthChecks[index]
		if id := backendName(spec.Name, spec.Port).String(); named[id] {
			c.checked[index] = model.Problem{
				Index: -1, List: "healthChecks", Route: id, Reason: slipwayv1alpha1.ReasonInvalid,
				Message: "there is an earlier health check of this port of the Service",
			}
		}
	}
	var problems []model.Problem
	for i := range c.in.HealthChecks {
		if p, wrong := c.checked[i]; wrong {
			problems = append(problems, p)
		}
	}
	return problems
}
