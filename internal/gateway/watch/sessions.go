package watch

import (
	"fmt"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/quota"
	"github.com/slipway-dev/slipway/internal/gateway/revision"
)

// addSessionKey adds the key by which all replicas choose the endpoints of sessions alike. It returns the routes that have
// sessions while there is none: the gateway makes a key of its own then.
func (s *Source) addSessionKey(t *target, config *proxy.Config) (problems []revision.Problem) {
	if !t.sessions {
		return nil
	}
	name := quota.SecretName(s.options.Name)
	secret, _ := s.secrets.get(name)
	if config.SessionKey = proxy.NewSessionKey(secret.data[quota.SecretKey], string(t.uid)); config.SessionKey != nil {
		return nil
	}
	for _, route := range config.Table.Routes {
		if route.Affinity == nil {
			continue
		}
		problems = append(problems, revision.Problem{
			Route: route.Index, Name: route.Name, Field: fmt.Sprintf("spec.routes[%d]", route.Index), Reason: slipwayv1alpha1.ReasonSessionsNotShared,
			Message: fmt.Sprintf("sessionAffinity: each replica chooses endpoints by itself meanwhile, because Secret %q does not exist or has no key of %d bytes", name, quota.SecretBytes),
		})
	}
	return problems
}
