package gatewayapi

import (
	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// maxChecked bounds the ports of Services that the policies of one namespace have checked, each counted once for each of them. The
// pods are those of the Gateway, so its own namespace has no bound.
const maxChecked = 128

// boundHealthChecks takes the health checks away from policies that have more checked than their namespace may. It keeps those that
// come first in the order of precedence.
func (b *builder) boundHealthChecks(rules []Rule) {
	checked := checkedPorts(rules)
	if len(checked) == 0 {
		return
	}
	unchecked, count := map[string]bool{}, map[string]int{} // by group, and by namespace
	for _, p := range b.gatewayPolicies {
		if p.Name.Namespace == b.in.Gateway.Namespace {
			continue
		}
		for which := range stanzas {
			ports := len(checked[p.group(which)])
			if count[p.Name.Namespace] += ports; ports > 0 && count[p.Name.Namespace] > maxChecked {
				unchecked[p.group(which)] = true
				p.unchecked = faultf(slipwayv1alpha1.ReasonPolicyTooManyHealthChecks,
					"spec.%s.backends.healthCheck: nobody is checked, because the policies of a namespace may have %d ports of Services checked, and all of them have more", which, maxChecked)
			}
		}
	}
	for i := range rules {
		of := &rules[i].Rule
		if own := of.BackendSettings; own != nil && unchecked[own.Group] {
			without := *own
			without.HealthCheck = nil
			of.BackendSettings = &without
		}
	}
}

// checkedPorts are the ports of Services that rules have checked, by group.
func checkedPorts(rules []Rule) map[string]map[model.BackendName]bool {
	checked := map[string]map[model.BackendName]bool{}
	for i := range rules {
		of := &rules[i].Rule
		if of.BackendSettings == nil || of.BackendSettings.HealthCheck == nil || of.Transport != model.TransportHTTP {
			continue
		}
		ports := checked[of.BackendSettings.Group]
		if ports == nil {
			ports = map[model.BackendName]bool{}
			checked[of.BackendSettings.Group] = ports
		}
		for n := range of.Backends {
			to := &of.Backends[n]
			ports[model.BackendName{ServiceName: model.ServiceName{Namespace: to.Namespace, Name: to.Service}, Port: to.Port}] = true
		}
		for n := range of.Mirrors {
			to := &of.Mirrors[n]
			ports[model.BackendName{ServiceName: model.ServiceName{Namespace: to.Namespace, Name: to.Service}, Port: to.Port}] = true
		}
	}
	return checked
}
