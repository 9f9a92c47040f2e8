package watch

import (
	"cmp"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// service is the part of a Service that is kept.
type service struct {
	name     types.NamespacedName
	external bool
	family   discoveryv1.AddressType // of its first address
	ports    []servicePort
	udp      []servicePort // ports for UDP
}

type servicePort struct {
	name        string
	number      int32
	appProtocol string
}

// slice is the part of an EndpointSlice that is kept.
type slice struct {
	service types.NamespacedName
	family  discoveryv1.AddressType
	ports   []slicePort
	// ready are the addresses that are ready for requests. draining are terminating ones
	// that still serve.
	ready    []string
	draining []string
}

type slicePort struct {
	name   string
	number int32
	udp    bool
}

func keepService(in *corev1.Service) service {
	out := service{name: types.NamespacedName{Namespace: in.Namespace, Name: in.Name}, external: in.Spec.Type == corev1.ServiceTypeExternalName, family: discoveryv1.AddressTypeIPv4}
	if len(in.Spec.IPFamilies) > 0 && in.Spec.IPFamilies[0] == corev1.IPv6Protocol {
		out.family = discoveryv1.AddressTypeIPv6
	}
	for _, port := range in.Spec.Ports {
		switch cmp.Or(port.Protocol, corev1.ProtocolTCP) {
		case corev1.ProtocolTCP:
			out.ports = append(out.ports, servicePort{port.Name, port.Port, value(port.AppProtocol)})
		case corev1.ProtocolUDP:
			out.udp = append(out.udp, servicePort{name: port.Name, number: port.Port})
		}
	}
	return out
}

func sameService(a, b service) bool {
	return a.name == b.name && a.external == b.external && a.family == b.family && slices.Equal(a.ports, b.ports) && slices.Equal(a.udp, b.udp)
}

// keepSlice sorts the endpoints by their conditions, as kube-proxy does. A missing
// condition counts as good, except terminating.
func keepSlice(in *discoveryv1.EndpointSlice) slice {
	out := slice{service: types.NamespacedName{Namespace: in.Namespace, Name: in.Labels[discoveryv1.LabelServiceName]}, family: in.AddressType}
	for _, port := range in.Ports {
		protocol := cmp.Or(value(port.Protocol), corev1.ProtocolTCP)
		if port.Port != nil && (protocol == corev1.ProtocolTCP || protocol == corev1.ProtocolUDP) {
			out.ports = append(out.ports, slicePort{value(port.Name), *port.Port, protocol == corev1.ProtocolUDP})
		}
	}
	for _, endpoint := range in.Endpoints {
		if len(endpoint.Addresses) == 0 {
			continue
		}
		// The API does not define the meaning of further addresses.
		address, is := endpoint.Addresses[0], endpoint.Conditions
		ready := is.Ready == nil || *is.Ready
		serving := ready
		if is.Serving != nil {
			serving = *is.Serving
		}
		switch {
		case ready:
			out.ready = append(out.ready, address)
		case serving && value(is.Terminating):
			out.draining = append(out.draining, address)
		}
	}
	return out
}

func sameSlice(a, b slice) bool {
	return a.service == b.service && a.family == b.family && slices.Equal(a.ports, b.ports) &&
		slices.Equal(a.ready, b.ready) && slices.Equal(a.draining, b.draining)
}

// resolve returns the part of a Service that a table needs, with its endpoints.
func resolve(in service, from []slice) model.Service {
	out := model.Service{External: in.external, Ports: make(map[int32]model.ServicePort, len(in.ports))}
	for _, port := range in.ports {
		out.Ports[port.number] = model.ServicePort{Name: port.name, AppProtocol: port.appProtocol, Endpoints: endpoints(in, slicePort{name: port.name}, from)}
	}
	for _, port := range in.udp {
		if out.UDP == nil {
			out.UDP = map[int32]model.ServicePort{}
		}
		out.UDP[port.number] = model.ServicePort{Name: port.name, Endpoints: endpoints(in, slicePort{name: port.name, udp: true}, from)}
	}
	return out
}

// endpoints returns the addresses of a port.
func endpoints(in service, port slicePort, from []slice) []string {
	return choose(in, from, func(s slice, addresses []string) (found []string) {
		for _, p := range s.ports {
			if p.name != port.name || p.udp != port.udp {
				continue
			}
			for _, address := range addresses {
				found = append(found, net.JoinHostPort(address, strconv.Itoa(int(p.number))))
			}
		}
		return found
	})
}

// choose returns what at makes of the addresses that get requests. A dual-stack pod has one
// address per family. Only those of the Service's first family are used, so that a pod counts
// once. The other family is used if there are none. Terminating endpoints are used only if no
// endpoint is ready.
func choose(in service, from []slice, at func(s slice, addresses []string) []string) []string {
	other := discoveryv1.AddressTypeIPv6
	if in.family == other {
		other = discoveryv1.AddressTypeIPv4
	}
	for _, addresses := range []func(slice) []string{
		func(s slice) []string { return s.ready },
		func(s slice) []string { return s.draining },
	} {
		for _, family := range []discoveryv1.AddressType{in.family, other} {
			var found []string
			for _, s := range from {
				if s.family == family {
					found = append(found, at(s, addresses(s))...)
				}
			}
			if len(found) > 0 {
				return found
			}
		}
	}
	return nil
}

// value returns what the pointer points to, or the zero value.
func value[T any](pointer *T) T {
	if pointer == nil {
		var zero T
		return zero
	}
	return *pointer
}
