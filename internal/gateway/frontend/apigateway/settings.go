package apigateway

import (
	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/feature/address"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// settingsOf are the settings of a route as a policy would have them. maxBodyBytes is none: a file may say 0, which is no limit.
func settingsOf(spec *slipwayv1alpha1.Route) slipwayv1alpha1.GatewayPolicySettings {
	return slipwayv1alpha1.GatewayPolicySettings{
		ClientAddresses: spec.ClientAddresses, Auth: spec.Auth, RateLimit: spec.RateLimit, CORS: spec.CORS,
		SessionAffinity: spec.SessionAffinity, Compression: spec.Compression, Cache: spec.Cache,
		Maintenance: spec.Maintenance,
	}
}

// source is what a route may refer to.
func (c *compiler) source() feature.Source {
	return feature.Source{Secrets: c.in.Secrets, Unreadable: c.in.Unreadable, Checks: c.checks}
}

// readAfter is what is read of a route after a setting. The order is seen where a route has two faults.
var readAfter = map[string]func(*table.Rule, *slipwayv1alpha1.Route) *model.Fault{
	address.Setting.Name:   addTimeouts,
	ratelimit.Setting.Name: addRetries,
}

// addSettings adds what can be wrong before the table sees it. A route with a fault serves
// nothing.
func (c *compiler) addSettings(rule *table.Rule, spec *slipwayv1alpha1.Route) *model.Fault {
	c.asked = settingsOf(spec)
	in, from := &c.asked, c.source()
	for _, setting := range list.ForRoutes {
		if f := c.refused(setting, spec, in); f != nil {
			return f
		}
		if f := setting.Read(&rule.Settings, in, from); f != nil {
			return f
		}
		if read := readAfter[setting.Name]; read != nil {
			if f := read(rule, spec); f != nil {
				return f
			}
		}
	}
	return nil
}

// refused is why a route cannot have a setting at all.
func (c *compiler) refused(setting *list.Entry, spec *slipwayv1alpha1.Route, in *slipwayv1alpha1.GatewayPolicySettings) *model.Fault {
	switch {
	case !setting.Asked(in):
		return nil
	case setting.Name == address.Setting.Name && c.in.BelievesEverybody: // a header that everybody may send must not open a list
		return model.Invalid("clientAddresses: spec.trustedProxies is not set, so everything in the cluster may say in X-Forwarded-For " +
			"which address it has: name there the proxies in front of the gateway, or choose an expose.type by which clients reach the " +
			"gateway directly")
	case setting.Backends && (spec.Redirect != nil || spec.DirectResponse != nil):
		return model.Invalid("%s needs backendService or backends", setting.Name)
	}
	return nil
}
