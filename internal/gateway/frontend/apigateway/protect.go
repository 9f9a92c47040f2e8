package apigateway

import (
	"net/http"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// Authentication is what a rule of another front end asks of its clients, with the contents of
// Secrets by name. Services are in the namespace. It is checked as the table checks it. With a fault, nobody may be let in.
func Authentication(namespace string, spec *slipwayv1alpha1.Auth, secrets map[string]map[string][]byte, unreadable map[string]bool) (*table.Auth, *model.Fault) {
	c := &compiler{in: Input{Secrets: secrets, Unreadable: unreadable}}
	alone := table.Rule{Direct: &model.DirectResponse{StatusCode: http.StatusOK}}
	if f := c.addAuth(&alone, &slipwayv1alpha1.Route{Auth: spec}); f != nil {
		return nil, f
	}
	if f, _ := table.Check(&alone); f != nil {
		return nil, f
	}
	if external := alone.Auth.External; external != nil {
		external.Ref.Namespace = namespace
	}
	return alone.Auth, nil
}

// Restrict adds the settings of a GatewayPolicy to a rule of another front end, but for auth. With
// a fault, the rule must not be served.
func Restrict(rule *table.Rule, spec *slipwayv1alpha1.GatewayPolicySettings) *model.Fault {
	if spec.ClientAddresses != nil {
		rule.ClientAddresses = addressRule(spec.ClientAddresses)
	}
	if spec.CORS != nil {
		rule.CORS = corsRule(spec.CORS)
	}
	if spec.MaxBodyBytes != nil {
		if rule.MaxBodyBytes = *spec.MaxBodyBytes; rule.MaxBodyBytes < 1 {
			return invalid("maxBodyBytes: %d is less than 1", rule.MaxBodyBytes)
		}
	}
	if spec.Backends != nil {
		rule.BackendSettings = backendSettings(spec.Backends)
	}
	if spec.SessionAffinity != nil {
		var f *model.Fault
		if rule.Affinity, f = affinityOf(spec.SessionAffinity); f != nil {
			return f
		}
	}
	if f := addCompression(rule, spec.Compression); f != nil {
		return f
	}
	if f := addCache(rule, spec.Cache); f != nil {
		return f
	}
	return addRateLimit(rule, &slipwayv1alpha1.Route{RateLimit: spec.RateLimit})
}
