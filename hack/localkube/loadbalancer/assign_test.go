package loadbalancer

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var network = netip.MustParsePrefix("10.207.16.0/20")

// named makes a Service whose UID is its name.
func named(name, status, wanted string) service {
	var s service
	s.Metadata.Namespace, s.Metadata.Name, s.Metadata.UID = "default", name, name
	s.Spec.LoadBalancerIP = wanted
	if status != "" {
		s.Status.LoadBalancer.Ingress = []ingress{{IP: status}}
	}
	return s
}

func byUID(list ...service) map[string]service {
	services := map[string]service{}
	for _, s := range list {
		services[s.Metadata.UID] = s
	}
	return services
}

func TestAssign(t *testing.T) {
	const first, second, outside = "10.207.17.1", "10.207.17.2", "192.0.2.1"
	usual := candidates(network, named("a", "", ""))[0].String()
	tests := map[string]struct {
		services []service
		held     map[string]string
		want     map[string]string
	}{
		"no Service":                            {held: map[string]string{"gone": first}, want: map[string]string{}},
		"a new one":                             {services: []service{named("a", "", "")}, want: map[string]string{"a": usual}},
		"the status counts after a restart":     {services: []service{named("a", first, "")}, want: map[string]string{"a": first}},
		"what is held counts before the status": {services: []service{named("a", first, "")}, held: map[string]string{"a": second}, want: map[string]string{"a": second}},
		"a status from elsewhere":               {services: []service{named("a", outside, "")}, want: map[string]string{"a": usual}},
		"a status that cannot be read":          {services: []service{named("a", "one", "")}, want: map[string]string{"a": usual}},
		"two with one address":                  {services: []service{named("b", usual, ""), named("a", usual, "")}, want: map[string]string{"a": usual, "b": candidates(network, named("b", "", ""))[0].String()}},
		"the usual address is taken":            {services: []service{named("a", "", ""), named("b", usual, "")}, want: map[string]string{"a": netip.MustParseAddr(usual).Next().String(), "b": usual}},
		"an address that it asks for":           {services: []service{named("a", "", first)}, want: map[string]string{"a": first}},
		"it asks for another than it has":       {services: []service{named("a", second, first)}, held: map[string]string{"a": second}, want: map[string]string{"a": first}},
		"who asks chooses first":                {services: []service{named("a", "", ""), named("b", "", usual)}, want: map[string]string{"a": netip.MustParseAddr(usual).Next().String(), "b": usual}},
		"it asks for a taken one":               {services: []service{named("a", first, ""), named("b", second, first)}, want: map[string]string{"a": first}},
		"it asks for one of elsewhere":          {services: []service{named("a", "", outside)}, want: map[string]string{}},
		"it asks for IPv6":                      {services: []service{named("a", "", "fd00::1")}, want: map[string]string{}},
		"it asks for none that there is":        {services: []service{named("a", "", "one")}, want: map[string]string{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := assign(network, byUID(test.services...), addresses(test.held))
			if diff := cmp.Diff(addresses(test.want), got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
		})
	}
}

func addresses(texts map[string]string) map[string]netip.Addr {
	parsed := map[string]netip.Addr{}
	for uid, text := range texts {
		parsed[uid] = netip.MustParseAddr(text)
	}
	return parsed
}

// A small network has not enough addresses for three Services. All but the
// first and the last may be used.
func TestAssignUsesUpANetwork(t *testing.T) {
	small := netip.MustParsePrefix("10.207.16.0/30")
	services := byUID(named("a", "", ""), named("b", "", ""), named("c", "", ""))
	got := assign(small, services, nil)
	if len(got) != 2 {
		t.Fatalf("assigned %v, want the two addresses between the first and the last", got)
	}
	for uid, address := range got {
		if address.String() != "10.207.16.1" && address.String() != "10.207.16.2" {
			t.Errorf("%s has %s", uid, address)
		}
	}
	for uid := range got {
		delete(services, uid)
		break
	}
	again := assign(small, services, got)
	if len(again) != 2 {
		t.Errorf("assigned %v after one was released, want one address for each of %d", again, len(services))
	}
	for uid, address := range again {
		if old, found := got[uid]; found && old != address {
			t.Errorf("%s moved from %s to %s", uid, old, address)
		}
	}
}
