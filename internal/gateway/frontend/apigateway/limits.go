package apigateway

import (
	"fmt"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature/backends"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// policy takes over a policy of the spec. An invalid policy is ignored as a whole, unless it asks for
// TLS: then the backend is not reached, because without the policy requests would be sent in another way than was meant.
func (c *compiler) policy(index int) {
	spec := &c.in.BackendPolicies[index]
	name := backendName(spec.Name, spec.Port)
	settings, f := c.policySettings(index)
	if f == nil {
		c.settings[name] = settings
		return
	}
	c.problems = append(c.problems, model.Problem{Index: -1, List: "backendPolicies", Route: name.String(), Reason: f.Reason, Message: f.Message})
	if spec.TLS != nil {
		c.settings[name] = model.Settings{Fault: &model.Fault{
			Reason:  f.Reason,
			Message: fmt.Sprintf("port %d of Service %q is not reached, because its policy in spec.backendPolicies cannot be used: %s", name.Port, name.Name, f.Message),
		}}
	}
}

// policySettings are what a policy says. With a fault it cannot be used.
func (c *compiler) policySettings(index int) (model.Settings, *model.Fault) {
	spec := &c.in.BackendPolicies[index]
	_, taken := c.settings[backendName(spec.Name, spec.Port)]
	field, unknown := c.in.UnknownPolicies[index]
	protocol, known := protocolOf(spec.Protocol)
	limits := backends.Limits(spec.MaxConnections, spec.MaxPendingRequests, spec.MaxRequests)
	wrong := limits.Wrong()
	switch {
	case unknown:
		return model.Settings{}, &model.Fault{Reason: slipwayv1alpha1.ReasonImageIncompatible, Message: fmt.Sprintf("%s: this version of the gateway does not know the field", field)}
	case taken:
		wrong = "there is an earlier policy of this port of the Service"
	case !known:
		wrong = fmt.Sprintf("protocol: %q is not one of HTTP1, H2C and GRPC", spec.Protocol)
	}
	if wrong != "" {
		return model.Settings{}, &model.Fault{Reason: slipwayv1alpha1.ReasonInvalid, Message: wrong}
	}
	settings := model.Settings{Protocol: protocol, Limits: &limits}
	if spec.TLS == nil {
		return settings, nil
	}
	var f *model.Fault
	settings.TLS, f = c.backendTLS(spec.TLS)
	return settings, f
}

// protocolOf returns the protocol that a policy declares. It is nil if it declares none.
func protocolOf(name slipwayv1alpha1.BackendProtocol) (protocol *model.Protocol, known bool) {
	switch name {
	case "":
		return nil, true
	case slipwayv1alpha1.BackendHTTP1:
		return new(model.ProtocolHTTP1), true
	case slipwayv1alpha1.BackendH2C:
		return new(model.ProtocolH2C), true
	case slipwayv1alpha1.BackendGRPC:
		return new(model.ProtocolGRPC), true
	}
	return nil, false
}
