package watch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// endpoint returns an endpoint whose conditions are three letters, for ready, serving and
// terminating: y, n, or - if the condition is missing.
func endpoint(address, conditions string) discoveryv1.Endpoint {
	said := func(letter byte) *bool {
		if letter == '-' {
			return nil
		}
		return new(letter == 'y')
	}
	return discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{
		Ready: said(conditions[0]), Serving: said(conditions[1]), Terminating: said(conditions[2]),
	}}
}

func sliceOf(family discoveryv1.AddressType, port string, number int32, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Labels: map[string]string{discoveryv1.LabelServiceName: "app"}},
		AddressType: family, Endpoints: endpoints, Ports: []discoveryv1.EndpointPort{{Name: &port, Port: &number}},
	}
}

func TestTheEndpointsBehindAPortAreThoseThatKubeProxyWouldUse(t *testing.T) {
	const four, six = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	for name, test := range map[string]struct {
		families []corev1.IPFamily
		slices   []*discoveryv1.EndpointSlice
		want     []string
	}{
		"ready": {
			slices: []*discoveryv1.EndpointSlice{sliceOf(four, "web", 8080, endpoint("10.0.0.1", "yyn"), endpoint("10.0.0.2", "nnn"), endpoint("10.0.0.3", "nyy"))},
			want:   []string{"10.0.0.1:8080"},
		},
		"nothing said is ready": {
			slices: []*discoveryv1.EndpointSlice{sliceOf(four, "web", 8080, endpoint("10.0.0.1", "---"))},
			want:   []string{"10.0.0.1:8080"},
		},
		"those that end, when there is no other": {
			slices: []*discoveryv1.EndpointSlice{sliceOf(four, "web", 8080, endpoint("10.0.0.2", "nnn"), endpoint("10.0.0.3", "nyy"), endpoint("10.0.0.4", "nny"))},
			want:   []string{"10.0.0.3:8080"},
		},
		"not those that are not ready and stay": {
			slices: []*discoveryv1.EndpointSlice{sliceOf(four, "web", 8080, endpoint("10.0.0.1", "nyn"), endpoint("10.0.0.2", "n--"))},
		},
		"several slices, each with its port": {
			slices: []*discoveryv1.EndpointSlice{sliceOf(four, "web", 8080, endpoint("10.0.0.1", "yyn")), sliceOf(four, "web", 9090, endpoint("10.0.0.2", "yyn"))},
			want:   []string{"10.0.0.1:8080", "10.0.0.2:9090"},
		},
		"another port": {
			slices: []*discoveryv1.EndpointSlice{sliceOf(four, "admin", 8080, endpoint("10.0.0.1", "yyn"))},
		},
		"two families count once": {
			families: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
			slices:   []*discoveryv1.EndpointSlice{sliceOf(six, "web", 8080, endpoint("fd00::1", "yyn")), sliceOf(four, "web", 8080, endpoint("10.0.0.1", "yyn"))},
			want:     []string{"10.0.0.1:8080"},
		},
		"the Service's own family": {
			families: []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol},
			slices:   []*discoveryv1.EndpointSlice{sliceOf(six, "web", 8080, endpoint("fd00::1", "yyn")), sliceOf(four, "web", 8080, endpoint("10.0.0.1", "yyn"))},
			want:     []string{"[fd00::1]:8080"},
		},
		"the other family, when there is none of its own": {
			slices: []*discoveryv1.EndpointSlice{sliceOf(six, "web", 8080, endpoint("fd00::1", "yyn")), sliceOf(four, "web", 8080, endpoint("10.0.0.1", "nyy"))},
			want:   []string{"[fd00::1]:8080"},
		},
		"a name is no address": {
			slices: []*discoveryv1.EndpointSlice{sliceOf(discoveryv1.AddressTypeFQDN, "web", 8080, endpoint("example.com", "yyn"))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			app := serviceObject("app", web)
			app.Spec.IPFamilies = test.families
			var slices []slice
			for _, s := range test.slices {
				slices = append(slices, keepSlice(s))
			}
			want := model.Service{Ports: map[int32]model.ServicePort{80: {Name: "web", Endpoints: test.want}}}
			if diff := cmp.Diff(want, resolve(keepService(app), slices)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOfAServiceItsPortsForTCPAndUDPAreKept(t *testing.T) {
	app := serviceObject("app",
		corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP},
		corev1.ServicePort{Name: "sctp", Port: 54, Protocol: corev1.ProtocolSCTP},
		corev1.ServicePort{Name: "web", Port: 80, Protocol: corev1.ProtocolTCP},
		corev1.ServicePort{Name: "grpc", Port: 90, AppProtocol: new("kubernetes.io/h2c")})
	app.Spec.ClusterIP = corev1.ClusterIPNone
	want := model.Service{Ports: map[int32]model.ServicePort{80: {Name: "web"}, 90: {Name: "grpc", AppProtocol: "kubernetes.io/h2c"}}, UDP: map[int32]model.ServicePort{53: {Name: "dns"}}}
	if diff := cmp.Diff(want, resolve(keepService(app), nil)); diff != "" {
		t.Error(diff)
	}
	app.Spec.Type, app.Spec.Ports = corev1.ServiceTypeExternalName, nil
	if diff := cmp.Diff(model.Service{External: true, Ports: map[int32]model.ServicePort{}}, resolve(keepService(app), nil)); diff != "" {
		t.Error(diff)
	}
}
