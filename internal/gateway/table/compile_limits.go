package table

import (
	"fmt"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// These are the defaults of a backend.
const (
	defaultMaxConnections = 4096
	defaultMaxPending     = 1024
	defaultMaxRequests    = 8192
)

// policy is a valid BackendPolicy. The zero value sets nothing.
type policy struct {
	slipwayv1alpha1.BackendPolicy
}

// policy takes over a policy of the spec. An invalid policy is ignored as a whole.
func (c *compiler) policy(index int) {
	spec := c.in.BackendPolicies[index]
	id := backendID(string(spec.Name), spec.Port)
	report := func(reason, message string) {
		c.problems = append(c.problems, Problem{Index: -1, List: "backendPolicies", Route: id, Reason: reason, Message: message})
	}
	_, taken := c.policies[id]
	field, unknown := c.in.UnknownPolicies[index]
	limits := policy{spec}.limits()
	switch {
	case unknown:
		report(slipwayv1alpha1.ReasonImageIncompatible, fmt.Sprintf("%s: this version of the gateway does not know the field", field))
	case taken:
		report(slipwayv1alpha1.ReasonInvalid, "there is an earlier policy of this port of the Service")
	case !isProtocol(spec.Protocol):
		report(slipwayv1alpha1.ReasonInvalid, fmt.Sprintf("protocol: %q is not one of HTTP1, H2C and GRPC", spec.Protocol))
	case limits.Connections < 1 || limits.Pending < 0 || limits.Requests < 1:
		report(slipwayv1alpha1.ReasonInvalid, "maxConnections and maxRequests must be at least 1, maxPendingRequests at least 0")
	default:
		c.policies[id] = policy{spec}
	}
}

func isProtocol(name slipwayv1alpha1.BackendProtocol) bool {
	switch name {
	case "", slipwayv1alpha1.BackendHTTP1, slipwayv1alpha1.BackendH2C, slipwayv1alpha1.BackendGRPC:
		return true
	}
	return false
}

// protocolOf returns the protocol of a backend whose Service has an appProtocol.
func (p policy) protocolOf(appProtocol string) (protocol Protocol, supported bool) {
	switch p.Protocol {
	case slipwayv1alpha1.BackendHTTP1:
		return ProtocolHTTP1, true
	case slipwayv1alpha1.BackendH2C:
		return ProtocolH2C, true
	case slipwayv1alpha1.BackendGRPC:
		return ProtocolGRPC, true
	}
	return protocolOf(appProtocol)
}

func (p policy) limits() Limits {
	return Limits{
		Connections: int(value(p.MaxConnections, defaultMaxConnections)),
		Pending:     int(value(p.MaxPendingRequests, defaultMaxPending)),
		Requests:    int(value(p.MaxRequests, defaultMaxRequests)),
	}
}
