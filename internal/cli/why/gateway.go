package why

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
)

// gatewayFindings are the findings of an APIGateway.
type gatewayFindings struct {
	findings
	object  *slipwayv1alpha1.APIGateway
	config  []configFinding
	ingress *networkingv1.Ingress
	// services are the namespace's Services by name. slices are their EndpointSlices by the
	// name of the Service. Nil means that the user may not read them.
	services map[string]*corev1.Service
	slices   map[string][]discoveryv1.EndpointSlice
	// backendPods are the pods of Services of routes without a ready endpoint, by the name
	// of the Service.
	backendPods map[string][]corev1.Pod
}

// maxBackends bounds for how many Services without ready endpoints the pods are read.
const maxBackends = 20

// gatewaySecrets lists the certificates and pull secrets that a gateway needs. The Secrets
// of routes are reported by the status of the route.
func gatewaySecrets(spec slipwayv1alpha1.APIGatewaySpec) []configUse {
	var uses []configUse
	for i := range spec.TLS {
		uses = append(uses, configUse{
			kind: kindSecret, name: spec.TLS[i].SecretRef.Name, field: fmt.Sprintf("spec.tls[%d].secretRef", i),
			keys: []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
		})
	}
	for i := range spec.ImagePullSecrets {
		uses = append(uses,
			configUse{kind: kindSecret, name: spec.ImagePullSecrets[i].Name, field: fmt.Sprintf("spec.imagePullSecrets[%d]", i)})
	}
	return uses
}

// getAPIGateway reads an APIGateway.
func getAPIGateway(ctx context.Context, c *command.Clients, name string) (*slipwayv1alpha1.APIGateway, error) {
	gateway, err := c.Slipway.SlipwayV1alpha1().APIGateways(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	return gateway, c.NotGot(err, command.GatewayKind, name)
}

// loadNamedGateway reads an APIGateway with everything that its tree needs.
func loadNamedGateway(ctx context.Context, all *command.AnyClients, asked named) (explained, error) {
	gateway, err := getAPIGateway(ctx, all.Clients, asked.name)
	if err != nil {
		return nil, err
	}
	return loadGateway(ctx, all.Clients, gateway)
}

// loadGateway reads everything that the tree of an APIGateway needs.
func loadGateway(ctx context.Context, c *command.Clients, gateway *slipwayv1alpha1.APIGateway) (explained, error) {
	g := &gatewayFindings{findings: findings{clients: c}, object: gateway, backendPods: map[string][]corev1.Pod{}}
	f := g.facts()
	steps := append(workloadSteps(ctx, c, f, desired.Name(gateway), desired.Selector(gateway)),
		step{"the Ingress", func() (err error) {
			if desired.ExposeType(gateway) == slipwayv1alpha1.ExposeIngress {
				g.ingress, err = orNil(
					c.Kube.NetworkingV1().Ingresses(c.Namespace).Get(ctx, desired.IngressName(gateway), metav1.GetOptions{}),
				)
			}
			return err
		}},
		step{"Services", func() error {
			list, err := c.Kube.CoreV1().Services(c.Namespace).List(ctx, metav1.ListOptions{})
			if err == nil {
				g.services = byName(list.Items)
			}
			return err
		}},
		step{"EndpointSlices", func() error {
			list, err := c.Kube.DiscoveryV1().EndpointSlices(c.Namespace).List(ctx, metav1.ListOptions{})
			if err == nil {
				g.slices = byService(list.Items)
			}
			return err
		}},
		step{"pods of backends", func() error { return loadBackendPods(ctx, c, g) }},
		eventsStep(ctx, c, f))
	if err := f.read(g.ref(), steps); err != nil {
		return nil, err
	}
	var err error
	if g.config, err = loadConfig(ctx, c, f, g.ref(), gatewaySecrets(gateway.Spec)); err != nil {
		return nil, err
	}
	return g, nil
}

// loadBackendPods reads the pods of Services without a ready endpoint.
func loadBackendPods(ctx context.Context, c *command.Clients, g *gatewayFindings) error {
	for _, route := range g.object.Spec.Routes {
		for _, backend := range backendsOf(route) {
			name := string(backend.Name)
			service := g.services[name]
			_, known := g.backendPods[name]
			if known || service == nil || len(service.Spec.Selector) == 0 || g.slices == nil || readyEndpoints(g.slices[name]) > 0 ||
				len(g.backendPods) == maxBackends {
				continue
			}
			list, err := c.Kube.CoreV1().Pods(c.Namespace).List(ctx,
				metav1.ListOptions{LabelSelector: labels.SelectorFromSet(service.Spec.Selector).String()})
			if err != nil {
				return err
			}
			g.backendPods[name] = list.Items
		}
	}
	return nil
}

// backendsOf returns the Services of a route.
func backendsOf(route slipwayv1alpha1.Route) []slipwayv1alpha1.BackendService {
	var list []slipwayv1alpha1.BackendService
	if route.BackendService != nil {
		list = append(list, *route.BackendService)
	}
	for _, backend := range route.Backends {
		list = append(list, slipwayv1alpha1.BackendService{Name: backend.Name, Port: backend.Port})
	}
	return list
}

func byName(services []corev1.Service) map[string]*corev1.Service {
	named := map[string]*corev1.Service{}
	for i := range services {
		named[services[i].Name] = &services[i]
	}
	return named
}

func byService(slices []discoveryv1.EndpointSlice) map[string][]discoveryv1.EndpointSlice {
	of := map[string][]discoveryv1.EndpointSlice{}
	for i := range slices {
		service := slices[i].Labels[discoveryv1.LabelServiceName]
		of[service] = append(of[service], slices[i])
	}
	return of
}

// readyEndpoints counts the endpoints that are ready for requests.
func readyEndpoints(slices []discoveryv1.EndpointSlice) int {
	ready := 0
	for i := range slices {
		for _, endpoint := range slices[i].Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				ready++
			}
		}
	}
	return ready
}

// gatewayRef formats the name of an APIGateway for the output.
func gatewayRef(name string) string { return command.GatewayKind.Ref(name) }
