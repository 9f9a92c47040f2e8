package cors

import (
	"net/http"
	"strconv"
	"strings"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Setting is that of cors.
var Setting = feature.Setting[*Rule, *Policy]{
	Name:    "cors",
	Asked:   func(in *slipwayv1alpha1.GatewayPolicySettings) bool { return in.CORS != nil },
	Read:    read,
	Compile: compile,
	Covers:  feature.Widens,
}

func read(settings *slipwayv1alpha1.GatewayPolicySettings, _ feature.Source) (*Rule, *model.Fault) {
	in := settings.CORS
	return &Rule{
		AllowOrigins: feature.Words(in.AllowOrigins), AllowMethods: feature.Words(in.AllowMethods),
		AllowHeaders: feature.Words(in.AllowHeaders), ExposeHeaders: feature.Words(in.ExposeHeaders),
		AllowCredentials: in.AllowCredentials, MaxAgeSeconds: in.MaxAgeSeconds,
	}, nil
}

func compile(in *Rule, of feature.Rule) (*Policy, *model.Fault) {
	methods := in.AllowMethods
	if len(methods) == 0 {
		methods = of.Methods
	}
	if len(methods) == 0 {
		methods = []string{http.MethodGet, http.MethodHead, http.MethodPost}
	}
	maxAge := int32(defaultMaxAgeSeconds)
	if in.MaxAgeSeconds != nil {
		maxAge = *in.MaxAgeSeconds
	}
	policy := &Policy{
		AllowMethods: strings.Join(methods, ", "), AllowHeaders: strings.Join(in.AllowHeaders, ", "),
		ExposeHeaders: strings.Join(in.ExposeHeaders, ", "), AllowCredentials: in.AllowCredentials,
		MaxAge: strconv.Itoa(int(maxAge)), origins: map[string]bool{},
	}
	if !fieldname.IsValue(policy.AllowMethods + policy.AllowHeaders + policy.ExposeHeaders) {
		return nil, model.Invalid("cors: a method or header holds a control character")
	}
	for _, origin := range in.AllowOrigins {
		scheme, rest, wildcard := strings.Cut(origin, "*")
		switch {
		case origin == "*":
			policy.any = true
		case wildcard:
			policy.wildcards = append(policy.wildcards, originWildcard{scheme, rest})
		default:
			policy.origins[origin] = true
		}
	}
	if in.Wildcards {
		policy.allowWildcards(in, methods)
	} else if policy.any && policy.AllowCredentials {
		return nil, model.Invalid("cors: allowCredentials needs origins by name in allowOrigins, not '*'")
	}
	return policy, nil
}
