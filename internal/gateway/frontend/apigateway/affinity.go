package apigateway

import (
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// addAffinity adds which requests get the same endpoint. The table checks the rest.
func addAffinity(rule *table.Rule, spec *slipwayv1alpha1.Route) *model.Fault {
	in := spec.SessionAffinity
	if in == nil {
		return nil
	}
	if spec.Redirect != nil || spec.DirectResponse != nil {
		return invalid("sessionAffinity needs backendService or backends")
	}
	var f *model.Fault
	rule.Affinity, f = affinityOf(in)
	return f
}

func affinityOf(in *slipwayv1alpha1.SessionAffinity) (*table.Affinity, *model.Fault) {
	ways := 0
	for _, is := range []bool{in.Cookie != nil, in.Header != nil, in.ClientAddress != nil, in.None != nil} {
		if is {
			ways++
		}
	}
	switch {
	case ways != 1:
		return nil, invalid("sessionAffinity: exactly one of cookie, header, clientAddress and none must be set")
	case in.None != nil:
		return &table.Affinity{By: table.AffinityNone}, nil
	case in.Header != nil:
		return &table.Affinity{By: table.AffinityByHeader, Name: in.Header.Name, NameField: "sessionAffinity.header.name"}, nil
	case in.ClientAddress != nil:
		return &table.Affinity{By: table.AffinityByAddress}, nil
	}
	lifetime := value(in.Cookie.LifetimeSeconds, 0)
	if in.Cookie.LifetimeSeconds != nil && lifetime < 1 {
		return nil, invalid("sessionAffinity.cookie.lifetimeSeconds: %d is less than 1", lifetime)
	}
	return &table.Affinity{
		By: table.AffinityByCookie, Name: in.Cookie.Name, NameField: "sessionAffinity.cookie.name",
		Lifetime: time.Duration(lifetime) * time.Second, LifetimeField: "sessionAffinity.cookie.lifetimeSeconds",
	}, nil
}
