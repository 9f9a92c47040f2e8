package address

import (
	"net/netip"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Setting is that of clientAddresses.
var Setting = feature.Setting[*Rule, *Addresses]{
	Name:        "clientAddresses",
	Asked:       func(in *slipwayv1alpha1.GatewayPolicySettings) bool { return in.ClientAddresses != nil },
	Read:        read,
	Compile:     compile,
	Covers:      feature.Restricts,
	Connections: true,
}

func read(in *slipwayv1alpha1.GatewayPolicySettings, _ feature.Source) (*Rule, *model.Fault) {
	return &Rule{Allow: feature.Words(in.ClientAddresses.Allow), Deny: feature.Words(in.ClientAddresses.Deny)}, nil
}

func compile(rule *Rule, _ feature.Rule) (*Addresses, *model.Fault) {
	addresses := &Addresses{}
	for _, list := range []struct {
		field string
		texts []string
		into  *[]netip.Prefix
	}{
		{"clientAddresses.allow", rule.Allow, &addresses.allow},
		{"clientAddresses.deny", rule.Deny, &addresses.deny},
	} {
		for _, text := range list.texts {
			prefix, f := parseRange(list.field, text)
			if f != nil {
				return nil, f
			}
			*list.into = append(*list.into, prefix)
		}
	}
	if len(addresses.allow)+len(addresses.deny) == 0 {
		return nil, model.Invalid("clientAddresses: set at least one of allow and deny")
	}
	return addresses, nil
}
