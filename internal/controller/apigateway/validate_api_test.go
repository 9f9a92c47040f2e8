//go:build apitest

package apigateway_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// dry asks the API server what it would say to a change.
func (f *fixture) dry(gateway *slipwayv1alpha1.APIGateway) error {
	gateway = gateway.DeepCopy()
	if gateway.ResourceVersion == "" {
		return env.Client.Create(f.Context(), gateway, client.DryRunAll)
	}
	// The operator writes status meanwhile.
	var answer error
	environment.Eventually(f, func() error {
		latest := &slipwayv1alpha1.APIGateway{}
		if err := f.get(gateway.Name, latest); err != nil {
			return err
		}
		gateway.ResourceVersion = latest.ResourceVersion
		if answer = env.Client.Update(f.Context(), gateway, client.DryRunAll); apierrors.IsConflict(answer) {
			return answer
		}
		return nil
	})
	return answer
}

func TestTheWebhookRefusesWhatTheSchemaCannotSee(t *testing.T) {
	f := newFixture(t)
	port := environment.FreePort(t)
	env.Webhooks(t, f.namespace, port)
	bad := f.gateway(func(g *slipwayv1alpha1.APIGateway) {
		g.Name = "bad"
		g.Spec.Routes = []slipwayv1alpha1.Route{route("bad.example.com", "/(", "a"), route("bad.example.com", "/ok", "a")}
		g.Spec.Routes[0].PathType = slipwayv1alpha1.PathRegularExpression
	})
	// Nobody answers yet, and nothing is held up: what is wrong comes in.
	f.create(bad)
	env.StartOperatorWith(t, func(_ *rest.Config, options *environment.Options) {
		options.GatewayAdminPort = f.cluster.Gateways.Port
		options.WebhookPort, options.WebhookHost = port, "127.0.0.1"
	})
	// The operator works in all namespaces, so what other tests have left must not have the host.
	const host = "webhook.example.com"
	ownHost := func(g *slipwayv1alpha1.APIGateway) {
		for i := range g.Spec.Routes {
			g.Spec.Routes[i].Host = host
		}
	}
	f.create(f.gateway(ownHost))
	f.waitFor(slipwayv1alpha1.ConditionAccepted, metav1.ConditionTrue, "")

	expression := bad.DeepCopy()
	expression.ResourceVersion, expression.Name, expression.Spec.Routes[0].Host = "", "other", "other.example.com"
	// As soon as the API server trusts the operator.
	environment.Eventually(t, func() error {
		if err := f.dry(expression); !apierrors.IsInvalid(err) {
			return fmt.Errorf("the answer is %w", errors.Join(err, errors.New("not refused")))
		}
		return nil
	})
	change := func(from *slipwayv1alpha1.APIGateway, how func(*slipwayv1alpha1.APIGateway)) *slipwayv1alpha1.APIGateway {
		latest := &slipwayv1alpha1.APIGateway{}
		if err := f.get(from.Name, latest); err != nil {
			t.Fatal(err)
		}
		how(latest)
		return latest
	}
	named := func(g *slipwayv1alpha1.APIGateway) { g.Name = "another" }
	tests := map[string]struct {
		gateway *slipwayv1alpha1.APIGateway
		want    string // empty: it is accepted
	}{
		"an expression": {expression, "spec.routes[0]: Invalid value: path: the regular expression \"/(\" does not compile"},
		"a host that is taken": {
			f.gateway(named, ownHost),
			fmt.Sprintf("spec.routes[0]: Invalid value: host: %q belongs to APIGateway \"%s/edge\", which is exposed at the same place and had it first", host, f.namespace),
		},
		"a host that is taken elsewhere": {f.gateway(named, ownHost, func(g *slipwayv1alpha1.APIGateway) {
			g.Spec.Expose = &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeClusterIP}
		}), ""},
		"an older one that takes a host by an edit": {change(bad, func(g *slipwayv1alpha1.APIGateway) {
			g.Spec.Routes[1].Host = host
		}), "belongs to APIGateway"},
		"what was wrong before": {change(bad, func(g *slipwayv1alpha1.APIGateway) { g.Spec.Routes[1].Path = "/other" }), ""},
		"a label":               {change(bad, func(g *slipwayv1alpha1.APIGateway) { g.Labels = map[string]string{"a": "b"} }), ""},
		"its own hosts":         {change(f.gateway(), func(g *slipwayv1alpha1.APIGateway) { g.Spec.Routes[1].Path = "/other" }), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := f.dry(tc.gateway)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("the answer is %v, want one that says %q", err, tc.want)
			}
		})
	}
}
