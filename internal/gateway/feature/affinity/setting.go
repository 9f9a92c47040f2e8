package affinity

import (
	"net/textproto"
	"strings"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Setting is that of sessionAffinity.
var Setting = feature.Setting[*Policy, *Policy]{
	Name:     "sessionAffinity",
	Asked:    func(in *slipwayv1alpha1.GatewayPolicySettings) bool { return in.SessionAffinity != nil },
	Read:     read,
	Compile:  compile,
	Covers:   feature.Nothing,
	Off:      func(in *slipwayv1alpha1.GatewayPolicySettings) bool { return in.SessionAffinity.None != nil },
	Backends: true,
}

func read(settings *slipwayv1alpha1.GatewayPolicySettings, _ feature.Source) (*Policy, *model.Fault) {
	in := settings.SessionAffinity
	ways := 0
	for _, is := range []bool{in.Cookie != nil, in.Header != nil, in.ClientAddress != nil, in.None != nil} {
		if is {
			ways++
		}
	}
	switch {
	case ways != 1:
		return nil, model.Invalid("sessionAffinity: exactly one of cookie, header, clientAddress and none must be set")
	case in.None != nil:
		return &Policy{By: None}, nil
	case in.Header != nil:
		return &Policy{By: ByHeader, Name: in.Header.Name, NameField: "sessionAffinity.header.name"}, nil
	case in.ClientAddress != nil:
		return &Policy{By: ByAddress}, nil
	}
	lifetime := feature.Value(in.Cookie.LifetimeSeconds, 0)
	if in.Cookie.LifetimeSeconds != nil && lifetime < 1 {
		return nil, model.Invalid("sessionAffinity.cookie.lifetimeSeconds: %d is less than 1", lifetime)
	}
	return &Policy{
		By: ByCookie, Name: in.Cookie.Name, NameField: "sessionAffinity.cookie.name",
		Lifetime: time.Duration(lifetime) * time.Second, LifetimeField: "sessionAffinity.cookie.lifetimeSeconds",
	}, nil
}

func compile(asked *Policy, of feature.Rule) (*Policy, *model.Fault) {
	policy := *asked
	switch policy.By {
	case ByCookie:
		if policy.Name != "" && (!fieldname.IsToken(policy.Name) || len(policy.Name) > maxSessionName) {
			return nil, model.Invalid(
				"%s: %q cannot be the name of a cookie of at most %d characters", policy.NameField, policy.Name, maxSessionName)
		}
		if strings.Contains(strings.ToLower(policy.Name), feature.LoginCookies) {
			return nil, model.Invalid("%s: %q is a name of cookies of log-ins", policy.NameField, policy.Name)
		}
		if policy.Lifetime < 0 || policy.Lifetime > maxSessionLifetime || policy.Lifetime%time.Second != 0 {
			return nil, model.Invalid("%s: %v is not from 1 second to 400 days, in whole seconds", policy.LifetimeField, policy.Lifetime)
		}
	case ByToken, ByHeader:
		name := textproto.CanonicalMIMEHeaderKey(policy.Name)
		if !fieldname.IsToken(name) || len(name) > maxSessionName {
			return nil, model.Invalid(
				"%s: %q cannot be the name of a header of at most %d characters", policy.NameField, policy.Name, maxSessionName)
		}
		if fieldname.ForbiddenTrailer(name) && name != "Authorization" || name == "Cookie" || policy.By == ByToken && !isFreeHeader(name) {
			return nil, model.Invalid("%s: %s has a meaning of its own", policy.NameField, name)
		}
		policy.Name = name
	case ByAddress:
	case None:
		return nil, nil
	default:
		return nil, model.Invalid("sessionAffinity: exactly one of cookie, header, clientAddress and none must be set")
	}
	if len(of.Backends) > 0 {
		policy.Scope = of.Backends[0].ID()
	}
	return &policy, nil
}
