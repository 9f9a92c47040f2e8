package routes

import (
	"fmt"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// policy takes over a policy of the spec. An invalid policy is ignored as a whole.
func (c *compiler) policy(index int) {
	spec := &c.in.BackendPolicies[index]
	name := backendName(spec.Name, spec.Port)
	report := func(reason, message string) {
		c.problems = append(c.problems, table.Problem{Index: -1, List: "backendPolicies", Route: name.String(), Reason: reason, Message: message})
	}
	_, taken := c.settings[name]
	field, unknown := c.in.UnknownPolicies[index]
	protocol, known := protocolOf(spec.Protocol)
	limits := limitsOf(spec)
	switch wrong := limits.Wrong(); {
	case unknown:
		report(slipwayv1alpha1.ReasonImageIncompatible, fmt.Sprintf("%s: this version of the gateway does not know the field", field))
	case taken:
		report(slipwayv1alpha1.ReasonInvalid, "there is an earlier policy of this port of the Service")
	case !known:
		report(slipwayv1alpha1.ReasonInvalid, fmt.Sprintf("protocol: %q is not one of HTTP1, H2C and GRPC", spec.Protocol))
	case wrong != "":
		report(slipwayv1alpha1.ReasonInvalid, wrong)
	default:
		c.settings[name] = table.Settings{Protocol: protocol, Limits: &limits}
	}
}

// protocolOf returns the protocol that a policy declares. It is nil if it declares none.
func protocolOf(name slipwayv1alpha1.BackendProtocol) (protocol *table.Protocol, known bool) {
	switch name {
	case "":
		return nil, true
	case slipwayv1alpha1.BackendHTTP1:
		return new(table.ProtocolHTTP1), true
	case slipwayv1alpha1.BackendH2C:
		return new(table.ProtocolH2C), true
	case slipwayv1alpha1.BackendGRPC:
		return new(table.ProtocolGRPC), true
	}
	return nil, false
}

func limitsOf(spec *slipwayv1alpha1.BackendPolicy) table.Limits {
	limits := table.DefaultLimits()
	limits.Connections = int(value(spec.MaxConnections, int32(limits.Connections)))
	limits.Pending = int(value(spec.MaxPendingRequests, int32(limits.Pending)))
	limits.Requests = int(value(spec.MaxRequests, int32(limits.Requests)))
	return limits
}
