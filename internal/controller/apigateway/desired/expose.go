package desired

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	netutils "k8s.io/utils/net"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1ac "sigs.k8s.io/gateway-api/applyconfiguration/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Ingress sends every host of the routes to the gateway's Service, whatever the path:
// what happens then is the gateway's business, so that a route of a known host needs no
// change of the Ingress. A host that an Ingress does not take is left out, and so are those that
// are withheld because they belong to somebody else, with their certificates. It returns nil when
// the gateway is exposed in another way, and without hosts, where there is nothing to send.
func Ingress(gateway *slipwayv1alpha1.APIGateway, withheld map[string]bool) *networkingv1ac.IngressApplyConfiguration {
	hosts := exposedHosts(gateway, withheld)
	if ExposeType(gateway) != slipwayv1alpha1.ExposeIngress || len(hosts) == 0 {
		return nil
	}
	spec := networkingv1ac.IngressSpec()
	if expose := gateway.Spec.Expose; expose != nil && expose.IngressClassName != nil {
		spec.WithIngressClassName(*expose.IngressClassName)
	}
	for _, tls := range gateway.Spec.TLS {
		entry := networkingv1ac.IngressTLS().WithSecretName(tls.SecretRef.Name)
		for _, host := range tls.Hosts {
			entry.WithHosts(ownHosts(string(host), hosts, withheld)...)
		}
		if len(entry.Hosts) == 0 && len(tls.Hosts) > 0 {
			continue // without hosts it would be for all
		}
		spec.WithTLS(entry)
	}
	for _, host := range hosts {
		rule := networkingv1ac.IngressRule().WithHTTP(networkingv1ac.HTTPIngressRuleValue().
			WithPaths(networkingv1ac.HTTPIngressPath().
				WithPath("/").
				WithPathType(networkingv1.PathTypePrefix).
				WithBackend(networkingv1ac.IngressBackend().
					WithService(networkingv1ac.IngressServiceBackend().
						WithName(Name(gateway)).
						WithPort(networkingv1ac.ServiceBackendPort().WithNumber(serviceHTTPPort))))))
		if host != "" {
			rule.WithHost(host)
		}
		spec.WithRules(rule)
	}
	return networkingv1ac.Ingress(IngressName(gateway), gateway.Namespace).
		WithLabels(Labels(gateway)).
		WithAnnotations(annotations(gateway, slipwayv1alpha1.ExposeIngress)).
		WithOwnerReferences(ownerReference(gateway)).
		WithSpec(spec)
}

// ownHosts are the hosts of a certificate that are not withheld. In place of a wildcard that is, they are those of the gateway
// that are below it.
func ownHosts(host string, exposed []string, withheld map[string]bool) []string {
	if !withheld[host] {
		return []string{host}
	}
	var below []string
	for _, own := range exposed {
		if _, parent, _ := strings.Cut(own, "."); own != host && host == "*."+parent {
			below = append(below, own)
		}
	}
	return below
}

// IsAddress tells a host that is an IP address, as the API server reads it. Neither an
// Ingress nor an HTTPRoute takes one.
func IsAddress(host string) bool { return netutils.ParseIPSloppy(host) != nil }

// exposedHosts are those of the routes that an Ingress and an HTTPRoute take, without those that are withheld.
func exposedHosts(gateway *slipwayv1alpha1.APIGateway, withheld map[string]bool) []string {
	return slices.DeleteFunc(Hosts(gateway), func(host string) bool { return IsAddress(host) || withheld[host] })
}

const (
	// maxHostnames is how many hosts an HTTPRoute takes.
	maxHostnames = 16
	// MaxHTTPRoutes is how many HTTPRoutes a gateway may have: enough for 1,000 routes.
	MaxHTTPRoutes = (1000 + maxHostnames - 1) / maxHostnames
)

// HTTPRoutesNeeded is how many HTTPRoutes are made at most where there is none yet.
func HTTPRoutesNeeded(gateway *slipwayv1alpha1.APIGateway) int {
	if ExposeType(gateway) != slipwayv1alpha1.ExposeHTTPRoute {
		return 0
	}
	return (len(exposedHosts(gateway, nil)) + maxHostnames - 1) / maxHostnames
}

// HTTPRouteName returns the name of one of the HTTPRoutes of a gateway, which are counted
// from 0. The first has that of the gateway. The others have a hash of it, since another
// gateway may be called edge-hosts-2.
func HTTPRouteName(gateway *slipwayv1alpha1.APIGateway, place int) string {
	if place == 0 {
		return Name(gateway)
	}
	sum := sha256.Sum256([]byte(gateway.Name))
	return fmt.Sprintf("%s-hosts-%d-%x", Name(gateway), place+1, sum[:5])
}

// HTTPRoutes attach the gateway's Service to a Gateway of the Gateway API, for every host of
// the routes that an HTTPRoute takes. There are several where one cannot have all hosts.
// current are the hosts of those that there are, each at its place: a host stays where it
// is. What is nil at its place, or has none, is superfluous. Hosts that are withheld belong to
// somebody else, and are left out. The list is empty when the gateway is exposed in another way,
// and without hosts.
func HTTPRoutes(
	gateway *slipwayv1alpha1.APIGateway, current [][]string, withheld map[string]bool,
) []*gatewayv1ac.HTTPRouteApplyConfiguration {
	hosts := exposedHosts(gateway, withheld)
	if ExposeType(gateway) != slipwayv1alpha1.ExposeHTTPRoute || gateway.Spec.Expose.Gateway == nil || len(hosts) == 0 {
		return nil
	}
	if hosts[0] == "" {
		// A route for any host asks for every host of the Gateway, which no list says.
		return []*gatewayv1ac.HTTPRouteApplyConfiguration{httpRoute(gateway, 0, nil)}
	}
	places := assign(hosts, current)
	routes := make([]*gatewayv1ac.HTTPRouteApplyConfiguration, len(places))
	for place, hosts := range places {
		if len(hosts) > 0 {
			routes[place] = httpRoute(gateway, place, hosts)
		}
	}
	return routes
}

// assign gives every host a place: the one that it has, or the first with room. So a host
// that comes or goes changes nothing about the others.
func assign(hosts []string, current [][]string) [][]string {
	left := make(map[string]bool, len(hosts))
	for _, host := range hosts {
		left[host] = true
	}
	places := make([][]string, len(current))
	for place, had := range current {
		for _, host := range had {
			if left[host] && len(places[place]) < maxHostnames {
				places[place] = append(places[place], host)
				delete(left, host)
			}
		}
	}
	place := 0
	for _, host := range slices.Sorted(maps.Keys(left)) {
		for place < len(places) && len(places[place]) == maxHostnames {
			place++
		}
		if place == len(places) {
			places = append(places, nil)
		}
		places[place] = append(places[place], host)
	}
	for _, hosts := range places {
		slices.Sort(hosts)
	}
	return places
}

func httpRoute(gateway *slipwayv1alpha1.APIGateway, place int, hosts []string) *gatewayv1ac.HTTPRouteApplyConfiguration {
	parent := gateway.Spec.Expose.Gateway
	reference := gatewayv1ac.ParentReference().
		WithGroup(gatewayv1.GroupName).
		WithKind("Gateway").
		WithName(gatewayv1.ObjectName(parent.Name))
	if parent.Namespace != "" {
		reference.WithNamespace(gatewayv1.Namespace(parent.Namespace))
	}
	if parent.SectionName != "" {
		reference.WithSectionName(gatewayv1.SectionName(parent.SectionName))
	}
	// Lists of an HTTPRoute are one value each, so the defaults of what is in them are stated.
	// Otherwise it would never be as stated, and would be written again after every status of
	// its Gateway and every start of an operator.
	spec := gatewayv1ac.HTTPRouteSpec().
		WithParentRefs(reference).
		WithRules(gatewayv1ac.HTTPRouteRule().
			WithMatches(gatewayv1ac.HTTPRouteMatch().
				WithPath(gatewayv1ac.HTTPPathMatch().WithType(gatewayv1.PathMatchPathPrefix).WithValue("/"))).
			WithBackendRefs(gatewayv1ac.HTTPBackendRef().
				WithGroup("").
				WithKind("Service").
				WithName(gatewayv1.ObjectName(Name(gateway))).
				WithPort(serviceHTTPPort).
				WithWeight(1)))
	for _, host := range hosts {
		spec.WithHostnames(gatewayv1.Hostname(host))
	}
	return gatewayv1ac.HTTPRoute(HTTPRouteName(gateway, place), gateway.Namespace).
		WithLabels(Labels(gateway)).
		WithAnnotations(annotations(gateway, slipwayv1alpha1.ExposeHTTPRoute)).
		WithOwnerReferences(ownerReference(gateway)).
		WithSpec(spec)
}
