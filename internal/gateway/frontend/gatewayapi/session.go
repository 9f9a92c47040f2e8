package gatewayapi

import (
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/feature/affinity"
)

// session reads the sessionPersistence of a rule. A pod keeps nothing of a session, so nobody but the client can end one.
func (r *rule) session(spec *gatewayv1.SessionPersistence) *fault {
	if spec == nil {
		return nil
	}
	field := r.field + ".sessionPersistence"
	made := affinity.Policy{
		Name: value(spec.SessionName, ""), NameField: "sessionPersistence.sessionName", LifetimeField: "sessionPersistence.absoluteTimeout",
	}
	config := value(spec.CookieConfig, gatewayv1.CookieConfig{})
	lifetime := value(config.LifetimeType, gatewayv1.SessionCookieLifetimeType)
	switch kind := value(spec.Type, gatewayv1.CookieBasedSessionPersistence); kind {
	case gatewayv1.CookieBasedSessionPersistence:
	case gatewayv1.HeaderBasedSessionPersistence:
		made.By = affinity.ByToken
		if made.Name == "" {
			made.Name = defaultSessionHeader
		}
		if lifetime != gatewayv1.SessionCookieLifetimeType {
			return unsupportedf("%s.cookieConfig: it is for type Cookie", field)
		}
	default:
		return unsupportedf("%s.type: %q is not supported", field, kind)
	}
	switch lifetime {
	case gatewayv1.SessionCookieLifetimeType:
		if spec.AbsoluteTimeout != nil {
			return unsupportedf("%s.absoluteTimeout: it is supported only with cookieConfig.lifetimeType Permanent, where the client keeps it", field)
		}
	case gatewayv1.PermanentCookieLifetimeType:
		if spec.AbsoluteTimeout == nil {
			return unsupportedf("%s.absoluteTimeout: lifetimeType Permanent needs it", field)
		}
		after, err := time.ParseDuration(string(*spec.AbsoluteTimeout))
		if err != nil || after < time.Second {
			return unsupportedf("%s.absoluteTimeout: %q is not a duration of at least 1s", field, *spec.AbsoluteTimeout)
		}
		made.Lifetime = after.Truncate(time.Second)
	default:
		return unsupportedf("%s.cookieConfig.lifetimeType: %q is not supported", field, lifetime)
	}
	r.action.Affinity = &made
	return nil
}

// defaultSessionHeader is the header of a session that has no name.
const defaultSessionHeader = "Slipway-Session"
