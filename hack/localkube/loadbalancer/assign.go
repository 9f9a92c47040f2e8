package loadbalancer

import (
	"cmp"
	"hash/fnv"
	"net/netip"
	"slices"
)

// assign returns the address of each Service, by UID. held is what assign
// returned before. A Service keeps the address that it holds, or, when this
// program has just started, the one in its status. A Service that asks for an
// address gets this one or none.
func assign(network netip.Prefix, services map[string]service, held map[string]netip.Addr) map[string]netip.Addr {
	assigned := make(map[string]netip.Addr, len(services))
	taken := make(map[netip.Addr]bool, len(services))
	give := func(s service, address netip.Addr) bool {
		if !network.Contains(address) || taken[address] {
			return false
		}
		assigned[s.Metadata.UID], taken[address] = address, true
		return true
	}
	var waiting []service
	for _, s := range inOrder(services) {
		current, found := held[s.Metadata.UID]
		if !found {
			current = s.address()
		}
		wanted := s.Spec.LoadBalancerIP
		if wanted != "" && wanted != current.String() || !give(s, current) {
			waiting = append(waiting, s)
		}
	}
	// Who wants a certain address chooses before those who take any.
	slices.SortStableFunc(waiting, func(a, b service) int {
		return cmp.Compare(b.Spec.LoadBalancerIP, a.Spec.LoadBalancerIP)
	})
	for _, s := range waiting {
		if s.Spec.LoadBalancerIP != "" {
			wanted, _ := netip.ParseAddr(s.Spec.LoadBalancerIP)
			give(s, wanted)
			continue
		}
		for _, candidate := range candidates(network, s) {
			if give(s, candidate) {
				break
			}
		}
	}
	return assigned
}

// inOrder sorts by name, so that the same Services always get the same addresses.
func inOrder(services map[string]service) []service {
	var list []service
	for _, s := range services {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b service) int {
		return cmp.Or(cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return list
}

// candidates lists the addresses that a Service may get. It begins at a place that
// follows from the Service's name, so a Service that was deleted and made again
// mostly gets its old address back.
func candidates(network netip.Prefix, s service) []netip.Addr {
	var all []netip.Addr
	for address := network.Masked().Addr().Next(); network.Contains(address.Next()); address = address.Next() {
		all = append(all, address)
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(s.Metadata.Namespace + "/" + s.Metadata.Name))
	first := int(sum.Sum32() % uint32(len(all)))
	return slices.Concat(all[first:], all[:first])
}
