//go:build apitest

package apigateway_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// expressions is an APIGateway with 1,000 of them, the last of which does not compile.
func (f *fixture) expressions(name string) *slipwayv1alpha1.APIGateway {
	return f.gateway(func(g *slipwayv1alpha1.APIGateway) {
		g.Name, g.Spec.Routes = name, nil
		for i := range 999 {
			g.Spec.Routes = append(g.Spec.Routes, route(f.ownHost(name), fmt.Sprintf(`/%d/(?:[^/]+/){3}[A-Za-z0-9_.~]+(?:-\d{2,4})*`, i), "a"))
		}
		g.Spec.Routes = append(g.Spec.Routes, route(f.ownHost(name), "/(", "a"))
		for i := range g.Spec.Routes {
			g.Spec.Routes[i].PathType = slipwayv1alpha1.PathRegularExpression
		}
	})
}

// onceOnly hides when to come again.
type onceOnly struct{ next http.RoundTripper }

func (o onceOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

// What is refused alone is refused among many, however much there is to judge: an answer that comes too late would let it in.
// Another namespace has its answers meanwhile. And without a webhook the same is told afterwards, in the same words.
func TestTheWebhookRefusesManyAtOnceAsItRefusesOne(t *testing.T) {
	f := newFixture(t)
	other := &fixture{T: t, namespace: env.Namespace(t), cluster: f.cluster}
	port := environment.FreePort(t)
	env.StartOperatorWith(t, func(_ *rest.Config, options *environment.Options) {
		options.GatewayAdminPort = f.cluster.Gateways.Port
		options.WebhookPort, options.WebhookHost = port, "127.0.0.1"
	})
	// Nobody asks the webhook yet.
	bypassing := f.expressions("bypassing")
	f.create(bypassing)
	env.Webhooks(t, f.namespace, port, other.namespace)
	small := other.gateway(func(g *slipwayv1alpha1.APIGateway) {
		g.Spec.Routes = []slipwayv1alpha1.Route{route("small.example.com", "/(", "a")}
		g.Spec.Routes[0].PathType = slipwayv1alpha1.PathRegularExpression
	})
	ask := func() time.Duration {
		start := time.Now()
		if err := other.dry(small); !apierrors.IsInvalid(err) {
			t.Errorf("another namespace is answered: %v", err)
		}
		return time.Since(start)
	}
	environment.Eventually(t, func() error {
		if err := other.dry(small); !apierrors.IsInvalid(err) {
			return fmt.Errorf("not refused yet: %w", err)
		}
		return nil
	})
	var alone, among []time.Duration
	for range 20 {
		alone = append(alone, ask())
	}

	// Otherwise the client would come again by itself.
	config := rest.CopyConfig(env.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return onceOnly{next} })
	once, err := client.New(config, client.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	refused, later := 0, 0
	for many := 44; refused == 0; many /= 2 { // a slow machine judges none of so many in time
		if many == 0 {
			t.Fatal("not even one is looked at")
		}
		answers := make(chan error)
		for i := range many {
			gateway := f.expressions(fmt.Sprintf("many-%d-%d", many, i))
			go func() { answers <- once.Create(t.Context(), gateway, client.DryRunAll) }()
		}
		for left := many; left > 0; {
			select {
			case err := <-answers:
				left--
				switch {
				case apierrors.IsInvalid(err):
					refused++
				case apierrors.IsTooManyRequests(err):
					later++
				case apierrors.IsTimeout(err): // of the API server, on a slow machine: it is not let in
				default:
					t.Errorf("one is answered: %v", err)
				}
			default:
				among = append(among, ask())
			}
		}
	}
	slices.Sort(alone)
	slices.Sort(among)
	t.Logf("%d refused, %d told to try again; another namespace waits %v alone and %v among them (the middle ones), %v at most",
		refused, later, alone[len(alone)/2], among[len(among)/2], among[len(among)-1])

	reported := f.waitNamed("bypassing", func(g *slipwayv1alpha1.APIGateway) error {
		return has(g, slipwayv1alpha1.ConditionAccepted, metav1.ConditionFalse, slipwayv1alpha1.ReasonInvalidRegex)
	})
	const words = `path: the regular expression "/(" does not compile`
	if list := reported.Status.Routes.NotLive; !slices.ContainsFunc(list, func(r slipwayv1alpha1.RouteNotLive) bool {
		return r.Reason == slipwayv1alpha1.ReasonInvalidRegex && len(r.Message) >= len(words) && r.Message[:len(words)] == words
	}) {
		t.Errorf("no route says %q", words)
	}
}
