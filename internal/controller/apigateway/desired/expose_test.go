package desired_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
)

// exposedBy returns a gateway that is exposed so and has a route for each host.
func exposedBy(exposeType slipwayv1alpha1.ExposeType, hosts ...string) *slipwayv1alpha1.APIGateway {
	gateway := &slipwayv1alpha1.APIGateway{}
	gateway.Name, gateway.Namespace = "edge", "team"
	gateway.Spec.Expose = &slipwayv1alpha1.Expose{Type: exposeType}
	if exposeType == slipwayv1alpha1.ExposeHTTPRoute {
		gateway.Spec.Expose.Gateway = &slipwayv1alpha1.ParentGateway{LocalReference: slipwayv1alpha1.LocalReference{Name: "public"}}
	}
	for _, host := range hosts {
		gateway.Spec.Routes = append(gateway.Spec.Routes, slipwayv1alpha1.Route{Host: slipwayv1alpha1.HostName(host)})
	}
	return gateway
}

func hostsOf(from, to int) []string {
	var hosts []string
	for i := from; i < to; i++ {
		hosts = append(hosts, fmt.Sprintf("h%03d.example.com", i))
	}
	return hosts
}

// hostnames are those of the HTTPRoutes, each at its place.
func hostnames(t *testing.T, gateway *slipwayv1alpha1.APIGateway, current [][]string) [][]string {
	t.Helper()
	var places [][]string
	for place, route := range desired.HTTPRoutes(gateway, current, nil) {
		var hosts []string
		if route != nil {
			if got, want := *route.Name, desired.HTTPRouteName(gateway, place); got != want {
				t.Errorf("place %d is called %q, want %q", place, got, want)
			}
			for _, host := range route.Spec.Hostnames {
				hosts = append(hosts, string(host))
			}
		}
		places = append(places, hosts)
	}
	return places
}

func TestAHostIsExposedWhateverOthersThereAre(t *testing.T) {
	tests := map[string]struct {
		hosts   []string
		current [][]string
		want    [][]string
	}{
		"16 fit":             {hostsOf(0, 16), nil, [][]string{hostsOf(0, 16)}},
		"17 do not":          {hostsOf(0, 17), nil, [][]string{hostsOf(0, 16), hostsOf(16, 17)}},
		"a new one is last":  {hostsOf(0, 17), [][]string{hostsOf(1, 17)}, [][]string{hostsOf(1, 17), hostsOf(0, 1)}},
		"the others stay":    {hostsOf(1, 20), [][]string{hostsOf(0, 16), hostsOf(16, 20)}, [][]string{hostsOf(1, 16), hostsOf(16, 20)}},
		"room is used":       {slices.Concat(hostsOf(1, 20), hostsOf(30, 31)), [][]string{hostsOf(0, 16), hostsOf(16, 20)}, [][]string{slices.Concat(hostsOf(1, 16), hostsOf(30, 31)), hostsOf(16, 20)}},
		"the first is empty": {hostsOf(16, 20), [][]string{hostsOf(0, 16), hostsOf(16, 20)}, [][]string{nil, hostsOf(16, 20)}},
		"one in both":        {hostsOf(0, 2), [][]string{hostsOf(0, 2), hostsOf(1, 2)}, [][]string{hostsOf(0, 2), nil}},
		"any host":           {append(hostsOf(0, 40), ""), [][]string{hostsOf(0, 16), hostsOf(16, 32)}, [][]string{nil}},
		"an address":         {append(hostsOf(0, 1), "10.0.0.1", "010.0.0.1"), nil, [][]string{hostsOf(0, 1)}},
		"addresses alone":    {[]string{"10.0.0.1"}, nil, nil},
		"none":               {nil, [][]string{hostsOf(0, 16)}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, hostnames(t, exposedBy(slipwayv1alpha1.ExposeHTTPRoute, tc.hosts...), tc.current)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	ingress := desired.Ingress(exposedBy(slipwayv1alpha1.ExposeIngress, "a.example.com", "10.0.0.1"), nil)
	if len(ingress.Spec.Rules) != 1 || *ingress.Spec.Rules[0].Host != "a.example.com" {
		t.Errorf("the Ingress has %+v, want the name alone", ingress.Spec.Rules)
	}
	if ingress := desired.Ingress(exposedBy(slipwayv1alpha1.ExposeIngress, "10.0.0.1"), nil); ingress != nil {
		t.Errorf("there is an Ingress without a host: %+v", ingress.Spec)
	}
}

// A gateway may be called like a further HTTPRoute of another one.
func TestNoGatewayIsCalledLikeAnHTTPRouteOfAnother(t *testing.T) {
	named := func(name string) *slipwayv1alpha1.APIGateway {
		gateway := exposedBy(slipwayv1alpha1.ExposeHTTPRoute)
		gateway.Name = name
		return gateway
	}
	taken := map[string]string{}
	for _, gateway := range []string{"edge", "edge-hosts", "edge-hosts-2", "edge-hosts-2-hosts-2", "edge-2", "edge-3"} {
		for place := range desired.MaxHTTPRoutes {
			name := desired.HTTPRouteName(named(gateway), place)
			if other, ok := taken[name]; ok {
				t.Errorf("%q is an HTTPRoute of %q and of %q", name, other, gateway)
			}
			taken[name] = gateway
			if place == 0 && name != gateway {
				t.Errorf("the first one of %q is called %q", gateway, name)
			}
			if again := desired.HTTPRouteName(named(gateway), place); again != name {
				t.Errorf("%q is called %q the next time", name, again)
			}
		}
	}
}

// Whatever comes and goes: every host is in one HTTPRoute, none moves, none has more than it
// takes, and there are never more than are looked for.
func TestHostsStayWhereTheyAre(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	all := hostsOf(0, 1000)
	var current [][]string
	for range 200 {
		random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		hosts := slices.Clone(all[:1+random.IntN(len(all))])
		next := hostnames(t, exposedBy(slipwayv1alpha1.ExposeHTTPRoute, hosts...), current)
		before := placesOf(t, current)
		after := placesOf(t, next)
		if len(after) != len(hosts) || len(next) > desired.MaxHTTPRoutes {
			t.Fatalf("%d hosts of %d have a place, in %d HTTPRoutes", len(after), len(hosts), len(next))
		}
		for host, place := range after {
			if had, known := before[host]; known && had != place {
				t.Fatalf("%s moved from %d to %d", host, had, place)
			}
		}
		current = next
	}
}

// placesOf tells where each host is.
func placesOf(t *testing.T, places [][]string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for place, hosts := range places {
		if len(hosts) > 16 {
			t.Fatalf("an HTTPRoute has %d hosts", len(hosts))
		}
		for _, host := range hosts {
			if other, twice := found[host]; twice {
				t.Fatalf("%s is at %d and %d", host, other, place)
			}
			found[host] = place
		}
	}
	return found
}

// What belongs to another gateway is neither in a rule nor beside one. A wildcard of a certificate that does becomes the
// gateway's own hosts below it.
func TestWhatIsWithheldIsNotExposed(t *testing.T) {
	withheld := map[string]bool{"theirs.example.com": true, "*.example.com": true}
	gateway := exposedBy(slipwayv1alpha1.ExposeIngress, "a.example.com", "b.c.example.com", "theirs.example.com")
	certificate := func(hosts ...slipwayv1alpha1.HostName) slipwayv1alpha1.GatewayTLS {
		return slipwayv1alpha1.GatewayTLS{SecretRef: slipwayv1alpha1.LocalReference{Name: "s"}, Hosts: hosts}
	}
	gateway.Spec.TLS = []slipwayv1alpha1.GatewayTLS{certificate("*.example.com"), certificate("theirs.example.com"), certificate("free.example.com"), certificate()}
	ingress := desired.Ingress(gateway, withheld)
	var rules []string
	for _, rule := range ingress.Spec.Rules {
		rules = append(rules, *rule.Host)
	}
	if diff := cmp.Diff([]string{"a.example.com", "b.c.example.com"}, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	var certificates [][]string
	for _, tls := range ingress.Spec.TLS {
		certificates = append(certificates, tls.Hosts)
	}
	if diff := cmp.Diff([][]string{{"a.example.com"}, {"free.example.com"}, nil}, certificates); diff != "" {
		t.Errorf("certificates (-want +got):\n%s", diff)
	}
	withheld["a.example.com"], withheld["b.c.example.com"] = true, true
	if ingress := desired.Ingress(gateway, withheld); ingress != nil {
		t.Errorf("there is an Ingress with %+v", ingress.Spec.Rules)
	}
	gateway = exposedBy(slipwayv1alpha1.ExposeHTTPRoute, "theirs.example.com", "a.test")
	routes := desired.HTTPRoutes(gateway, [][]string{{"theirs.example.com", "a.test"}}, withheld)
	if len(routes) != 1 || len(routes[0].Spec.Hostnames) != 1 || routes[0].Spec.Hostnames[0] != "a.test" {
		t.Errorf("the HTTPRoutes are %+v", routes)
	}
}
