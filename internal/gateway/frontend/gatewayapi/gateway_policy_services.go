package gatewayapi

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// ServicesOfGatewayPolicy are the Services that a policy has asked about requests, each once. They are in its namespace, as its
// targets are, so nobody else has to permit it. Input.Services needs them.
func ServicesOfGatewayPolicy(policy *slipwayv1alpha1.GatewayPolicy) []types.NamespacedName {
	var names []types.NamespacedName
	for _, auth := range AuthsOf(policy) {
		if auth.External == nil {
			continue
		}
		name := types.NamespacedName{Namespace: policy.Namespace, Name: string(auth.External.BackendService.Name)}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// asked is what is known of the Service that a stanza has asked about requests.
type asked struct {
	// lack is why it gives no answers. Nil: it may give some.
	lack *fault
	// barred is why it must not be reached at all.
	barred *model.Fault
}

// judgeAsked finds out whether the Service can be asked that a stanza names.
func (b *builder) judgeAsked(p *GatewayPolicy, which stanza, in *slipwayv1alpha1.ExternalAuth) asked {
	name := types.NamespacedName{Namespace: p.Name.Namespace, Name: string(in.BackendService.Name)}
	number := in.BackendService.Port
	says := func(f *fault, becomes string) *fault {
		return &fault{reason: f.reason, message: fmt.Sprintf("spec.%s.auth.external.backendService: %s; requests are %s", which, f.message, becomes)}
	}
	if f := b.secure(name, number, model.TransportHTTP); f != nil {
		return asked{lack: says(f, "answered with 503"), barred: &model.Fault{Reason: f.reason, Message: f.message}}
	}
	becomes := "answered with 503"
	if in.OnFailure == slipwayv1alpha1.AuthFailureLetIn {
		becomes = "let in"
	}
	service, exists := b.in.Services[name]
	port, hasPort := service.Ports[number]
	secure := b.policyFor(name, port.Name) != nil
	var f *fault
	switch {
	case !exists:
		f = faultf(slipwayv1alpha1.ReasonBackendNotFound, "Service %q does not exist", name.Name)
	case service.External:
		f = faultf(slipwayv1alpha1.ReasonUnsupportedService, "Service %q is of type ExternalName, which is not followed", name.Name)
	case !hasPort:
		f = faultf(slipwayv1alpha1.ReasonPortNotFound, "Service %q has no port %d", name.Name, number)
	case !table.Speaks(port.AppProtocol, secure):
		f = faultf(slipwayv1alpha1.ReasonUnsupportedProtocol, "port %d of Service %q has appProtocol %q, which is not supported%s",
			number, name.Name, port.AppProtocol, withoutPolicy(port.AppProtocol, secure))
	default:
		return asked{}
	}
	return asked{lack: says(f, becomes)}
}

// anonymous reports whether auth does not say who the client is, as rateLimit.per Key needs it.
func anonymous(auth *slipwayv1alpha1.Auth) bool {
	return auth != nil && auth.External != nil && auth.External.IdentityHeader == ""
}

// countsKeys reports whether a rate limit is for each client that auth has found.
func countsKeys(limit *slipwayv1alpha1.RateLimit) bool {
	return limit != nil && limit.Per == slipwayv1alpha1.RateLimitPerKey
}
